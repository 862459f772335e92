//! Detects several machines behind one address by their clocks, and whether one has the local clock.
//!
//! Each answered message limits the offset of the peer's clock: it read the request after the send and
//! answered before the receive. Messages whose limits exclude each other were answered by different clocks.
//! Owns this evaluation of timestamps. Knows no socket.

use neph_model::{Local, Message, Span};

/// Largest drift between two clocks, in parts per million. Two raw clocks drift by a few hundred at most.
const DRIFT_PPM: i128 = 500;
/// Nanoseconds of error when a kernel timestamp is converted to the raw clock by reading both clocks.
const DOUBT: i64 = 1_000;
/// More machines than this are counted as this many.
const MAX_COUNTED: usize = 16;

/// The machines that answered the messages of one flow.
#[derive(Clone, Debug, Default)]
pub struct Backends {
    known: Vec<Clock>,
    /// Index of the clock that answered last.
    latest_index: Option<usize>,
    /// How often another clock answered than before.
    changes: u32,
    /// Messages whose limits exclude that the peer reads the local clock.
    not_ours: u64,
}

/// Limits of one clock's offset to the local clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Clock {
    low: i64,
    high: i64,
    /// When they were found, on the local clock.
    at: i64,
}

impl Clock {
    /// The limits from one message. `None` without timestamps of the peer.
    fn of(message: &Message) -> Option<Self> {
        let marks = &message.marks;
        let nanos_of = |at: Option<neph_model::Instant<Local>>| Some(at?.nanos());
        let sent = nanos_of(marks.app_send)?;
        let returned = nanos_of(marks.app_recv)?;
        let arrived = marks.peer.rx.or(marks.peer.app_rx)?.nanos();
        let answered = marks.peer.app_tx.or(marks.peer.nic_tx)?.nanos();
        let (low, high) = (answered - returned - DOUBT, arrived - sent + DOUBT);
        // Timestamps that contradict each other give no limits.
        (low <= high).then_some(Self {
            low,
            high,
            at: returned,
        })
    }

    /// The limits at a later moment.
    fn drifted(self, at: i64) -> Self {
        let passed = i128::from((at - self.at).abs());
        let drift = i64::try_from(passed * DRIFT_PPM / 1_000_000).unwrap_or(i64::MAX / 4);
        Self {
            low: self.low.saturating_sub(drift),
            high: self.high.saturating_add(drift),
            at,
        }
    }

    /// The intersection of both limits. `None` where they exclude each other.
    fn and(self, other: Self) -> Option<Self> {
        let intersection = Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            at: other.at,
        };
        (intersection.low <= intersection.high).then_some(intersection)
    }
}

impl Backends {
    /// Adds a message.
    pub fn add(&mut self, message: &Message) {
        let Some(message_clock) = Clock::of(message) else {
            return;
        };
        if message_clock.low > 0 || message_clock.high < 0 {
            self.not_ours += 1;
        }
        let fits = |clock: &Clock| clock.drifted(message_clock.at).and(message_clock);
        let index = match self.known.iter().position(|clock| fits(clock).is_some()) {
            Some(index) => index,
            None if self.known.len() < MAX_COUNTED => {
                self.known.push(message_clock);
                self.known.len() - 1
            }
            None => return,
        };
        if let Some(clock) = fits(&self.known[index]) {
            self.known[index] = clock;
        }
        if self
            .latest_index
            .is_some_and(|latest_index| latest_index != index)
        {
            self.changes += 1;
        }
        self.latest_index = Some(index);
    }

    /// How many machines alternately answer behind the address. `None` while it may be one: if one clock
    /// permanently replaces another, one machine may have been restarted or its clock set.
    pub fn count_if_several(&self) -> Option<usize> {
        (self.changes > 1).then_some(self.known.len())
    }

    /// Whether the peer may read the same clock as this host.
    pub const fn may_share_local_clock(&self) -> bool {
        self.not_ours == 0
    }

    /// Largest offset between the clocks, where several machines answer.
    pub fn apart(&self) -> Option<Span> {
        self.count_if_several()?;
        let middle = |clock: &Clock| i128::midpoint(clock.low.into(), clock.high.into());
        let max = self.known.iter().map(middle).max()?;
        let min = self.known.iter().map(middle).min()?;
        Some(Span::from_nanos(
            i64::try_from(max - min).unwrap_or(i64::MAX),
        ))
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowIndex, Instant, Marks, Seq};

    use super::*;

    const MS: i64 = 1_000_000;

    /// A message at this local time to a peer whose clock is ahead by `ahead`; 1 ms in each direction.
    fn message(at: i64, ahead: i64) -> Message {
        let mut marks = Marks::intended_at(Instant::from_nanos(at));
        marks.app_send = Some(Instant::from_nanos(at));
        marks.peer.app_rx = Some(Instant::from_nanos(at + MS + ahead));
        marks.peer.app_tx = Some(Instant::from_nanos(at + MS + ahead + 1_000));
        marks.app_recv = Some(Instant::from_nanos(at + 2 * MS));
        Message::new(FlowIndex(0), Seq(0), marks)
    }

    fn backends_of(clocks: impl Iterator<Item = i64>) -> Backends {
        let mut backends = Backends::default();
        for (number, ahead) in clocks.enumerate() {
            let at = i64::try_from(number).expect("few") * 100 * MS;
            backends.add(&message(at, ahead));
        }
        backends
    }

    #[test]
    fn two_reflectors_behind_a_balancer_are_distinguished_by_clock() {
        let turns = (0..50).map(|n| if n % 2 == 0 { 0 } else { 5_000_000 * MS });
        let backends = backends_of(turns);
        assert_eq!(backends.count_if_several(), Some(2));
        assert!(!backends.may_share_local_clock());
        let apart = backends.apart().expect("two").nanos();
        assert!((apart - 5_000_000 * MS).abs() < 3 * MS, "{apart}");
    }

    #[test]
    fn a_drifting_or_once_set_clock_counts_as_one_backend() {
        let drifting = (0..10_000).map(|n| 40 * MS + n * 100 * MS / 5_000);
        assert_eq!(backends_of(drifting).count_if_several(), None, "200 ppm");
        let set = (0..50).map(|n| if n < 20 { 0 } else { 1_000 * MS });
        assert_eq!(backends_of(set).count_if_several(), None);
        let ours = backends_of((0..50).map(|_| 0));
        assert!(ours.may_share_local_clock() && ours.count_if_several().is_none());
    }

    #[test]
    fn the_number_of_tracked_backends_is_bounded() {
        let many = backends_of((0..500).map(|n| n % 100 * 10 * MS));
        assert_eq!(many.count_if_several(), Some(MAX_COUNTED));
    }

    #[test]
    fn without_peer_timestamps_no_second_backend_is_detected() {
        let mut backends = Backends::default();
        let mut silent = message(0, 0);
        silent.marks.peer = neph_model::PeerMarks::default();
        backends.add(&silent);
        assert!(backends.may_share_local_clock() && backends.count_if_several().is_none());
    }
}
