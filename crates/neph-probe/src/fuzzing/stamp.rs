//! A STAMP session with a reflector that sends arbitrary data, for fuzzing.
//!
//! Owns driving one session with replies that `bytes` corrupt, and the invariants.

use std::net::{Ipv4Addr, SocketAddr};

use neph_model::{Entry, Instant, Local, Message, Span, Target, Wall};
use neph_wire::marks::{PeerMarks, PreviousTx};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format, ReplyFields, Timestamp, decode_request, reflect,
};

use super::steps::Steps;
use crate::datagram::session::Session;
use crate::datagram::{Codec, udp};
use crate::exchange::SendPoint;
use crate::spec::FlowSpec;

/// In 2023, within the range of STAMP's time format.
const WALL: i64 = 1_700_000_000_000_000_000;
const INTERVAL: Span = Span::from_millis(10);

/// Runs a flow whose reflector answers by `bytes`. Returns its messages.
///
/// # Panics
/// When a stage of a message is negative, or its stages do not add up to its response time.
pub fn stamp(bytes: &[u8]) -> Vec<Message> {
    let mut steps = Steps(bytes);
    let mut world = World::new();
    while let Some(step) = steps.next() {
        world.step(step, &mut steps);
    }
    while let Some(message) = world.session.take_rest() {
        world.messages.push(message);
    }
    for message in &world.messages {
        check(message);
    }
    world.messages
}

fn check(message: &Message) {
    let Some(ledger) = message.ledger() else {
        return;
    };
    let times = ledger.entries().iter().map(Entry::time);
    assert!(times.clone().all(|time| time >= Span::ZERO), "{ledger:?}");
    assert_eq!(times.sum::<Span>(), ledger.response_time(), "{ledger:?}");
}

struct World {
    session: Session,
    codec: udp::Udp,
    now: Instant<Local>,
    latest: u64,
    /// The latest requests.
    requests: Vec<Vec<u8>>,
    messages: Vec<Message>,
}

impl World {
    fn new() -> Self {
        let target = Target::parse("udp://192.0.2.1:9").expect("a target");
        let mut spec = FlowSpec::plain(target, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)));
        (spec.schedule.interval, spec.timeout) = (INTERVAL, INTERVAL.times(20));
        (spec.request_size, spec.reflector) = (200, true);
        let mut session = Session::new(&spec);
        session.begin(Instant::from_nanos(1_000_000));
        Self {
            session,
            codec: udp::codec(&spec),
            now: Instant::from_nanos(0),
            latest: 0,
            requests: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn step(&mut self, step: u8, steps: &mut Steps<'_>) {
        match step & 3 {
            0 => self.send(),
            1 => {
                let at = self.now;
                self.session
                    .stamped(SendPoint::NicTx, u32::from(step >> 2), at);
            }
            _ => self.reply(step >> 2, steps),
        }
        self.now = self.now + Span::from_micros(i64::from(step));
        self.session.at_time(self.now);
        self.session.take_notes();
        while let Some(message) = self.session.take_finished(self.now) {
            self.messages.push(message);
        }
    }

    fn send(&mut self) {
        let Some(due) = self.session.next_due() else {
            return;
        };
        self.now = self.now.max(due);
        let Some(seq) = self.session.sending(self.now) else {
            return;
        };
        let mut request = Vec::new();
        let wall = Wall::from_unix_nanos(WALL + self.now.nanos());
        self.codec.request(seq.0, wall, &mut request);
        self.latest = seq.0;
        self.requests.insert(0, request);
        self.requests.truncate(8);
    }

    /// Answers one of the latest requests by `how`, possibly with one byte of the reply changed.
    fn reply(&mut self, how: u8, steps: &mut Steps<'_>) {
        let Some(request) = self.requests.get(usize::from(how & 7)) else {
            return;
        };
        let request = decode_request(request, Auth::Open).expect("a request of this client");
        let mut reply = Vec::new();
        let answer = claimed(request.packet.seq, steps);
        reflect(&request, &answer, Auth::Open, &mut reply);
        if how & 8 != 0 {
            let at = usize::from(steps.next().unwrap_or(0)) % reply.len();
            reply[at] ^= steps.next().unwrap_or(0);
        }
        let stamp = (how & 16 == 0).then_some(self.now);
        self.now = self.now + Span::from_nanos(i64::from(how));
        if let Some(answered) = self.codec.answer(&reply, self.latest) {
            self.session.answered(&answered, stamp, self.now);
        }
    }
}

/// Times of the peer, possible or not.
fn claimed(seq: u32, steps: &mut Steps<'_>) -> ReplyFields {
    let which = steps.next().unwrap_or(0);
    let mut time = |bit: u8| (which & bit == 0).then(|| steps.number());
    let (rx, app_rx, app_tx, left) = (time(1), time(2), time(4), time(8));
    let wall_offset = steps.number();
    let stamp = |nanos: Option<i64>| {
        let unix = nanos.and_then(|nanos| nanos.checked_add(wall_offset));
        let time = unix.and_then(|unix| Timestamp::from_unix(unix, Format::Ntp).ok());
        time.unwrap_or(Timestamp(0))
    };
    ReplyFields {
        seq,
        receive: stamp(rx),
        timestamp: stamp(app_tx),
        error: ErrorEstimate::from_nanos(1_000, Format::Ntp),
        sender_ttl: 64,
        timestamps: PeerMarks {
            rx,
            app_rx,
            app_tx,
            wall_offset,
            previous: left.map(|nic_tx| PreviousTx {
                seq: u64::from(seq).saturating_sub(1),
                nic_tx,
            }),
        },
        follow_up: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_honest_exchange_is_measured() {
        // A message, its timestamp, and a reply without times.
        let messages = stamp(&[0, 1, 2, 255]);
        assert_eq!(messages.len(), 1);
        assert!(messages[0].ledger().is_some());
    }

    proptest! {
        #[test]
        fn no_stage_is_negative_for_any_reflector_timestamps(bytes in vec(any::<u8>(), 0..400)) {
            stamp(&bytes);
        }
    }
}
