//! One-way delays of messages on the forward and reverse path, each with its error bound.
//!
//! Owns the choice of messages that have both delays; neph-capture estimates the peer's clock. No verdict
//! uses these delays: an asymmetric path shifts both by up to the bound.

use neph_capture::clocks::peer_clock::PeerClock;
use neph_model::{ClockOffset, Instant, Span};
use neph_stats::{ClockFit, FourTimestamps};

use crate::data::FlowData;

/// Nanoseconds between two estimates of the peer's clock; the rate is known in between.
const STEP: i64 = 1_000_000_000;
/// The error within a step: clocks wander by at most 2 ppm.
const STEP_DOUBT: Span = Span::from_micros(2);

/// Timestamps of one clock are in disorder by less than this: kernel timestamps have errors of up to a microsecond,
/// and more while the wall clock is slewed.
const MAX_DISORDER: Span = Span::from_millis(1);

/// One-way delays of a flow's messages through the network, by the kernel timestamps of both hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Delays of requests, of the messages that have both delays.
    pub forward: Vec<Span>,
    /// Delays of their replies.
    pub reverse: Vec<Span>,
    /// Error bound of any of them; an error of the forward delay has the opposite sign on the reverse path.
    /// Zero if both ends use the same clock.
    pub bound: Span,
    /// The peer's raw clock minus the local clock at the first of them.
    pub offset: Span,
    /// Messages with all timestamps but no delay: the clocks could not be compared at that moment.
    pub messages_without_delay: usize,
}

impl Directions {
    /// The delays of a flow; `None` if no message has a delay.
    pub fn of(flow: &FlowData) -> Option<Self> {
        let mut stamps = flow.stamps.clone();
        stamps.sort_by_key(|stamps| stamps.sent);
        let mut directions = Self::default();
        if flow.flow.same_clock && stamps.iter().all(has_one_origin) {
            for stamps in &stamps {
                directions.add(stamps, ClockOffset::SAME_CLOCK);
            }
        } else {
            directions.compare(&stamps);
        }
        (!directions.forward.is_empty()).then_some(directions)
    }

    /// Adds messages whose peer has a clock of its own.
    fn compare(&mut self, stamps: &[FourTimestamps]) {
        let mut clock = PeerClock::default();
        for timestamps in stamps {
            clock.add_timestamps(*timestamps);
        }
        let Some(course) = clock.course() else {
            self.messages_without_delay = stamps.len();
            return;
        };
        let mut latest: Option<ClockFit> = None;
        for timestamps in stamps {
            if latest.is_none_or(|fit| timestamps.sent.saturating_sub(fit.at) >= STEP) {
                latest = course.at(timestamps.sent);
            }
            match latest {
                Some(fit) => self.add(timestamps, offset_at(fit, timestamps.sent)),
                None => self.messages_without_delay += 1,
            }
        }
    }

    fn add(&mut self, stamps: &FourTimestamps, offset: ClockOffset) {
        if self.forward.is_empty() {
            self.offset = offset.value();
        }
        let instant = |at| Instant::from_nanos(at);
        let forward = offset.forward(instant(stamps.sent), Instant::from_nanos(stamps.arrived));
        let reverse = offset.reverse(
            Instant::from_nanos(stamps.answered),
            instant(stamps.returned),
        );
        self.forward.push(forward.delay);
        self.reverse.push(reverse.delay);
        self.bound = self.bound.max(forward.bound);
    }
}

/// Whether both ends count from one start. Workspaces of earlier versions keep the peer's timestamps since its boot,
/// so its reply seems to leave long after it returned.
fn has_one_origin(stamps: &FourTimestamps) -> bool {
    stamps.answered - stamps.returned < MAX_DISORDER.nanos()
}

/// The offset shortly after its estimate.
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

    /// A thousand messages at an interval of 10 ms with these forward and reverse delays; the peer's clock is
    /// 7 s ahead and 100 ppm fast.
    fn flow(forward: i64, reverse: i64, same_clock: bool) -> FlowData {
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
                // Some messages wait: the fastest ones decide.
                let waits = number % 7 * MILLI / 2;
                let arrived = sent + forward + waits;
                let mut marks = Marks::intended_at(Instant::from_nanos(sent));
                marks.app_send = Some(Instant::from_nanos(sent));
                marks.nic_tx = Some(Instant::from_nanos(sent));
                marks.peer.rx = Some(Instant::from_nanos(peer(arrived)));
                marks.peer.nic_tx = Some(Instant::from_nanos(peer(arrived)));
                marks.nic_rx = Some(Instant::from_nanos(arrived + reverse));
                marks.app_recv = Some(Instant::from_nanos(arrived + reverse));
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
    fn one_way_delays_are_exact_if_both_hosts_share_a_clock() {
        let directions = Directions::of(&flow(3 * MILLI, MILLI, true)).expect("delays");
        assert_eq!(directions.bound, Span::ZERO);
        assert_eq!(
            directions.forward.iter().min(),
            Some(&Span::from_nanos(3 * MILLI))
        );
        assert_eq!(
            directions.reverse.iter().max(),
            Some(&Span::from_nanos(MILLI))
        );
    }

    #[test]
    fn timestamps_out_of_order_within_their_error_keep_exact_delays() {
        let mut stored = flow(3 * MILLI, MILLI, true);
        for stamps in stored.stamps.iter_mut().take(10) {
            stamps.answered = stamps.returned + 300;
        }
        let directions = Directions::of(&stored).expect("delays");
        assert_eq!(
            (directions.bound, directions.messages_without_delay),
            (Span::ZERO, 0)
        );
    }

    #[test]
    fn true_delays_of_asymmetric_paths_are_within_the_error_bound() {
        for (forward, reverse) in [(2, 2), (9, 1), (1, 9)] {
            let directions =
                Directions::of(&flow(forward * MILLI, reverse * MILLI, false)).expect("delays");
            assert_eq!(
                (directions.forward.len(), directions.messages_without_delay),
                (1_000, 0)
            );
            let half = (forward + reverse) * MILLI / 2;
            let bound = directions.bound.nanos();
            assert!((half - MILLI..half + MILLI / 2).contains(&bound), "{bound}");
            let min = directions.forward.iter().min().expect("some").nanos();
            assert!((min - forward * MILLI).abs() <= bound, "{min} {bound}");
            let min = directions.reverse.iter().min().expect("some").nanos();
            assert!((min - reverse * MILLI).abs() <= bound, "{min} {bound}");
            let ahead = directions.offset.nanos() - 7_000 * MILLI;
            assert!(ahead.abs() <= bound, "{ahead}");
        }
    }

    #[test]
    fn peer_timestamps_since_boot_give_delays_within_the_error_bound() {
        let mut stored = flow(8 * MILLI, 2 * MILLI, false);
        stored.flow.same_clock = true;
        let directions = Directions::of(&stored).expect("delays");
        let bound = directions.bound.nanos();
        assert!((4 * MILLI..6 * MILLI).contains(&bound), "{bound}");
        let min = directions.forward.iter().min().expect("some").nanos();
        assert!((min - 8 * MILLI).abs() <= bound, "{min} {bound}");
    }
}
