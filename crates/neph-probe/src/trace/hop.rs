//! The state that all flows share at one distance: how often it may be asked, and whether it answers.

use std::collections::VecDeque;

use neph_model::{Instant, Local, Span};

/// Slowest pace for a router that answered the same flow before and becomes silent.
const MAX_PROBE_INTERVAL: Span = Span::from_secs(1);
/// If the silent flow never got an answer, its router may be silent while another one answers. Then the
/// slowest pace is this many times slower than the settings.
const DOUBT: i64 = 4;
/// After this many unanswered probes of any flows, the distance counts as silent.
const SILENT: u32 = 6;
/// Probes per flow where nothing has answered yet.
const TRIES_UNKNOWN: u32 = 3;
/// Probes per flow where another flow got an answer: the probe was lost, or answers are limited.
const TRIES_KNOWN: u32 = 5;
/// Probes per flow where a limit is known: at the pace of the answers most are answered.
const TRIES_LIMITED: u32 = 12;

/// One distance.
#[derive(Debug)]
pub(super) struct HopState {
    /// Flows that want to ask, in order.
    pub(super) waiting: VecDeque<usize>,
    /// When the next may.
    pub(super) next_send_at: Instant<Local>,
    /// Current time between two probes.
    interval: Span,
    /// By the settings.
    min_interval: Span,
    answers: u32,
    silences: u32,
    /// A flow that had got an answer here got none later: answers are limited.
    limited: bool,
    /// When the interval was last made longer.
    slowed: Option<Instant<Local>>,
}

impl HopState {
    pub(super) fn new(min_interval: Span, now: Instant<Local>) -> Self {
        Self {
            waiting: VecDeque::new(),
            next_send_at: now,
            interval: min_interval,
            min_interval,
            answers: 0,
            silences: 0,
            limited: false,
            slowed: None,
        }
    }

    /// A probe leaves.
    pub(super) fn note_request(&mut self, now: Instant<Local>) {
        self.next_send_at = now + self.interval;
    }

    /// Records an answer: back to the settings' pace, a little each time.
    pub(super) fn answered(&mut self) {
        self.answers += 1;
        let shorter = Span::from_nanos(self.interval.nanos() - self.interval.nanos() / 32);
        self.interval = shorter.max(self.min_interval);
    }

    /// Records a timeout; the flow had this many answers here before. If any flow got answers, it may be a
    /// limit: halves the pace, once for all probes that were in flight together.
    pub(super) fn silent(&mut self, now: Instant<Local>, timeout: Span, answers: u32) {
        self.silences += 1;
        let is_repeat = self.slowed.is_none_or(|slowed| now - slowed >= timeout);
        self.limited |= answers > 0;
        let slowest = if self.limited {
            MAX_PROBE_INTERVAL.max(self.min_interval)
        } else {
            self.min_interval.times(DOUBT)
        };
        if self.answers > 0 && is_repeat && self.interval < slowest {
            self.interval = self.interval.times(2).min(slowest);
            self.slowed = Some(now);
            self.next_send_at = self.next_send_at.max(now + self.interval);
        }
    }

    /// How many probes a flow with this many answers may send here.
    pub(super) fn allowance(&self, answers: u32, queries: u32) -> u32 {
        match (answers, self.answers) {
            // Where answers are scarce the flows share them.
            (1.., _) if self.interval >= self.min_interval.times(DOUBT) => 1,
            (1.., _) => queries,
            (0, 0) if self.silences >= SILENT => 1,
            (0, 0) => TRIES_UNKNOWN,
            (0, _) if self.limited => TRIES_LIMITED.max(queries),
            (0, _) => TRIES_KNOWN.max(queries),
        }
    }

    /// The same if the destination answers one hop farther away, so that it may be the silent host here.
    pub(super) fn allowance_before_end(&self) -> u32 {
        if self.silences < 3 * SILENT {
            TRIES_KNOWN
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Instant<Local> {
        Instant::from_nanos(0) + Span::from_millis(millis)
    }

    #[test]
    fn a_router_that_stops_answering_is_probed_more_slowly() {
        let second = Span::from_secs(1);
        let mut hop = HopState::new(Span::from_millis(20), at(0));
        hop.silent(at(1000), second, 0);
        assert_eq!(hop.interval, Span::from_millis(20), "it never answered");
        hop.answered();
        for (now, interval) in [
            (2000, 40),
            (2001, 40),
            (3000, 80),
            (9000, 160),
            (19_000, 320),
        ] {
            hop.silent(at(now), second, 1);
            assert_eq!(hop.interval, Span::from_millis(interval), "{now}");
        }
        hop.silent(at(29_000), second, 1);
        hop.silent(at(39_000), second, 1);
        assert_eq!(hop.interval, MAX_PROBE_INTERVAL);
        for _ in 0..130 {
            hop.answered();
        }
        assert_eq!(hop.interval, Span::from_millis(20));
    }

    #[test]
    fn a_hop_without_answers_to_a_flow_is_slowed_only_a_little() {
        let mut hop = HopState::new(Span::from_millis(20), at(0));
        hop.answered();
        for second in 1..10 {
            hop.silent(at(second * 1000), Span::from_secs(1), 0);
        }
        assert_eq!(hop.interval, Span::from_millis(80));
    }

    #[test]
    fn a_hop_that_never_answered_gets_few_probes() {
        let mut hop = HopState::new(Span::from_millis(20), at(0));
        assert_eq!(hop.allowance(0, 1), TRIES_UNKNOWN);
        for _ in 0..SILENT {
            hop.silent(at(0), Span::from_secs(1), 0);
        }
        assert_eq!(hop.allowance(0, 3), 1);
        hop.answered();
        assert_eq!(hop.allowance(0, 3), TRIES_KNOWN);
        assert_eq!(hop.allowance(1, 3), 3);
    }
}
