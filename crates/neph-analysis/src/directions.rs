//! How long messages took there and back, each with how far it may be wrong.
//!
//! Owns which messages have a delay in each direction; the estimate of the peer's clock is neph-capture's. No
//! verdict rests on these delays: a path that is slower one way than the other shifts both by up to the bound.

use neph_capture::clocks::peer_clock::PeerClock;
use neph_model::{ClockOffset, Instant, Span};
use neph_stats::{ClockFit, FourStamps};

use crate::data::FlowData;

/// The peer's clock is looked up once in so many nanoseconds; in between its rate is known.
const STEP: i64 = 1_000_000_000;
/// What that may be wrong by: clocks wander by 2 ppm at most within a step.
const STEP_DOUBT: Span = Span::from_micros(2);

/// The delays of a flow's messages through the network, by the stamps of both kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Of requests; of the messages that have both.
    pub there: Vec<Span>,
    /// Of their replies.
    pub back: Vec<Span>,
    /// How far any of them may be wrong, either way; what is too long there is too short back. Zero where both
    /// ends read one clock.
    pub bound: Span,
    /// The peer's raw clock minus ours when the first of them was sent.
    pub offset: Span,
    /// Messages that have all stamps, but no delay: the clocks could not be compared at that moment.
    pub without: usize,
}

impl Directions {
    /// Those of a flow; `None` where no message has all stamps of both kernels, or none has a delay.
    pub fn of(flow: &FlowData) -> Option<Self> {
        let mut stamps = flow.stamps.clone();
        stamps.sort_by_key(|stamps| stamps.sent);
        let mut found = Self::default();
        if flow.flow.same_clock {
            for stamps in &stamps {
                found.add(stamps, ClockOffset::SAME_CLOCK);
            }
        } else {
            found.compare(&stamps);
        }
        (!found.there.is_empty()).then_some(found)
    }

    /// Adds messages whose peer has a clock of its own.
    fn compare(&mut self, stamps: &[FourStamps]) {
        let mut clock = PeerClock::default();
        for one in stamps {
            clock.add(*one);
        }
        let Some(course) = clock.course() else {
            self.without = stamps.len();
            return;
        };
        let mut latest: Option<ClockFit> = None;
        for one in stamps {
            if latest.is_none_or(|fit| one.sent.saturating_sub(fit.at) >= STEP) {
                latest = course.at(one.sent);
            }
            match latest {
                Some(fit) => self.add(one, offset_at(fit, one.sent)),
                None => self.without += 1,
            }
        }
    }

    fn add(&mut self, stamps: &FourStamps, offset: ClockOffset) {
        if self.there.is_empty() {
            self.offset = offset.value();
        }
        let own = |at| Instant::from_nanos(at);
        let there = offset.there(own(stamps.sent), Instant::from_nanos(stamps.arrived));
        let back = offset.back(Instant::from_nanos(stamps.answered), own(stamps.returned));
        self.there.push(there.delay);
        self.back.push(back.delay);
        self.bound = self.bound.max(there.bound);
    }
}

/// The offset a little later than it was looked up.
fn offset_at(fit: ClockFit, at: i64) -> ClockOffset {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a second times a rate of at most 1e-3"
    )]
    let moved = ((at - fit.at) as f64 * fit.rate) as i64;
    ClockOffset::new(
        Span::from_nanos(fit.offset.saturating_add(moved)),
        Span::from_nanos(fit.bound) + STEP_DOUBT,
    )
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use neph_model::{Flow, FlowIndex, FlowRole, Marks, Message, Outcome, ProbeKind, Seq};

    use super::*;

    const MILLI: i64 = 1_000_000;

    /// A thousand messages, one each 10 ms, that take so long there and back; the peer's clock is 7 s ahead and
    /// 100 ppm fast.
    fn flow(there: i64, back: i64, same_clock: bool) -> FlowData {
        let peer = |at: i64| {
            if same_clock {
                at
            } else {
                at + 7_000 * MILLI + at / 10_000
            }
        };
        let mut flow = FlowData::new(Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Udp,
            name: "circuit".into(),
            source: None,
            target: SocketAddr::new([192, 0, 2, 7].into(), 8600),
            reflector: true,
            same_clock,
        });
        let messages: Vec<Message> = (0..1_000)
            .map(|number| {
                let sent = number * 10 * MILLI;
                // Some wait: the quickest messages decide.
                let waits = number % 7 * MILLI / 2;
                let arrived = sent + there + waits;
                let mut marks = Marks::intended_at(Instant::from_nanos(sent));
                marks.app_send = Some(Instant::from_nanos(sent));
                marks.nic_tx = Some(Instant::from_nanos(sent));
                marks.peer.rx = Some(Instant::from_nanos(peer(arrived)));
                marks.peer.nic_tx = Some(Instant::from_nanos(peer(arrived)));
                marks.nic_rx = Some(Instant::from_nanos(arrived + back));
                marks.app_recv = Some(Instant::from_nanos(arrived + back));
                let seq = Seq(number.unsigned_abs());
                let mut message = Message::new(FlowIndex(0), seq, marks);
                message.outcome = Outcome::Reply;
                message
            })
            .collect();
        flow.add(&messages);
        flow
    }

    #[test]
    fn two_ends_of_one_clock_have_exact_delays() {
        let found = Directions::of(&flow(3 * MILLI, MILLI, true)).expect("delays");
        assert_eq!(found.bound, Span::ZERO);
        assert_eq!(found.there.iter().min(), Some(&Span::from_nanos(3 * MILLI)));
        assert_eq!(found.back.iter().max(), Some(&Span::from_nanos(MILLI)));
    }

    #[test]
    fn the_truth_is_within_the_bound_however_unequal_the_ways_and_the_clocks() {
        for (there, back) in [(2, 2), (9, 1), (1, 9)] {
            let found = Directions::of(&flow(there * MILLI, back * MILLI, false)).expect("delays");
            assert_eq!((found.there.len(), found.without), (1_000, 0));
            let half = (there + back) * MILLI / 2;
            let bound = found.bound.nanos();
            assert!((half - MILLI..half + MILLI / 2).contains(&bound), "{bound}");
            let least = found.there.iter().min().expect("some").nanos();
            assert!((least - there * MILLI).abs() <= bound, "{least} {bound}");
            let least = found.back.iter().min().expect("some").nanos();
            assert!((least - back * MILLI).abs() <= bound, "{least} {bound}");
            let ahead = found.offset.nanos() - 7_000 * MILLI;
            assert!(ahead.abs() <= bound, "{ahead}");
        }
    }
}
