//! One second of a flow that is too fast for a line per message.

use neph_model::{Instant, Local, Message, Span, Tally};

use crate::cell::OrDash;
use crate::p50::P50;

/// The time in which the messages of a line were sent.
const LINE_INTERVAL: Span = Span::from_secs(1);

/// The messages of the current second.
#[derive(Debug, Default)]
pub struct Second {
    start: Option<Instant<Local>>,
    times: Vec<Span>,
    tally: Tally,
}

impl Second {
    /// Adds a message; returns a line if the second ends with it.
    pub fn add(&mut self, message: &Message) -> Option<String> {
        let start = *self.start.get_or_insert(message.marks.intended);
        self.tally.count(message.outcome);
        let time = message.ledger().map(|ledger| ledger.response_time());
        self.times.extend(time);
        if message.marks.intended - start < LINE_INTERVAL {
            return None;
        }
        Some(std::mem::take(self).line(message.seq.0 + 1))
    }

    fn line(self, messages: u64) -> String {
        let unanswered = self.tally.without_response();
        let time_text = |time: Option<&Span>| time.or_dash(Span::to_string);
        format!(
            "{messages:>6} messages: {} replies, {} without a reply; response time: median {}, min {}, max {}",
            self.times.len(),
            unanswered.count(),
            P50::of(self.times.iter().copied(), unanswered),
            time_text(self.times.iter().min()),
            time_text(self.times.iter().max()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of replies after these milliseconds and of so many messages without one.
    fn line(millis: &[i64], lost: u64) -> String {
        let times: Vec<Span> = millis.iter().copied().map(Span::from_millis).collect();
        let messages = times.len() as u64 + lost;
        let tally = Tally {
            messages,
            replies: times.len() as u64,
            lost,
            ..Tally::default()
        };
        let second = Second {
            start: None,
            times,
            tally,
        };
        second.line(messages)
    }

    #[test]
    fn the_median_counts_lost_messages_as_slower_than_every_reply() {
        assert_eq!(
            line(&[5, 1, 4, 2, 3], 2),
            "     7 messages: 5 replies, 2 without a reply; response time: median 4.00 ms, min 1.00 ms, max 5.00 ms"
        );
        let half_lost = line(&[4, 1, 2, 3], 4);
        assert!(
            half_lost.contains("median lost, min 1.00 ms"),
            "{half_lost}"
        );
        let all_lost = line(&[], 8);
        assert!(
            all_lost.ends_with("median lost, min -, max -"),
            "{all_lost}"
        );
    }
}
