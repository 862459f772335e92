//! Reports of a fleet through a channel that blocks its thread only when very many are waiting.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::spec::{FleetReport, FleetTally};

/// Room for this many reports: seconds of the fastest fleet.
const MAX_QUEUED_REPORTS: usize = 256;
/// Messages that are kept for a slow receiver: about 30 MB.
const MAX_WAITING: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct FleetReports {
    channel: SyncSender<FleetReport>,
    /// Reports that found no room, in order.
    waiting: VecDeque<FleetReport>,
    /// Messages among them.
    messages: usize,
}

impl FleetReports {
    pub(crate) fn new() -> (Self, Receiver<FleetReport>) {
        let (channel, receiver) = sync_channel(MAX_QUEUED_REPORTS);
        let reports = Self {
            channel,
            waiting: VecDeque::new(),
            messages: 0,
        };
        (reports, receiver)
    }

    /// Sends a report, or keeps it up to a limit. Beyond the limit the thread waits, which shows as lateness.
    /// A receiver that is gone gets nothing.
    pub(crate) fn report(&mut self, report: FleetReport) {
        self.messages += weight(&report);
        self.waiting.push_back(report);
        while let Some(report) = self.waiting.pop_front() {
            let carried = weight(&report);
            let outcome = if self.messages > MAX_WAITING {
                self.channel.send(report).map_err(|_| None)
            } else {
                self.channel.try_send(report).map_err(|error| match error {
                    TrySendError::Full(report) => Some(report),
                    TrySendError::Disconnected(_) => None,
                })
            };
            match outcome {
                Ok(()) => self.messages -= carried,
                Err(Some(report)) => {
                    self.waiting.push_front(report);
                    return;
                }
                Err(None) => {
                    self.waiting.clear();
                    self.messages = 0;
                }
            }
        }
    }

    /// Sends all waiting reports, and the end.
    pub(crate) fn end(mut self, tally: FleetTally) {
        self.waiting.push_back(FleetReport::Ended(tally));
        for report in self.waiting {
            if self.channel.send(report).is_err() {
                return;
            }
        }
    }
}

fn weight(report: &FleetReport) -> usize {
    match report {
        FleetReport::Messages(messages) => messages.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_receiver_gets_all_reports() {
        let (mut reports, receiver) = FleetReports::new();
        let step = |n| FleetReport::ClockStepped(neph_model::Span::from_nanos(n));
        let count = 3 * i64::try_from(MAX_QUEUED_REPORTS).expect("small");
        for n in 0..count {
            reports.report(step(n));
        }
        let reading = std::thread::spawn(move || receiver.iter().collect::<Vec<_>>());
        reports.end(FleetTally::default());
        let reports = reading.join().expect("no panic");
        assert_eq!(reports.len(), 3 * MAX_QUEUED_REPORTS + 1);
        for (n, report) in (0..count).zip(&reports) {
            assert!(matches!(report, FleetReport::ClockStepped(by) if by.nanos() == n));
        }
        assert!(matches!(reports.last(), Some(FleetReport::Ended(_))));
    }
}
