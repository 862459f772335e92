//! What the hosts themselves did to a fleet that is watched and need not be kept: by the figures and
//! bounds of one that is.

use neph_model::{FleetMessage, Load, Span, Warning};

use crate::meter::Meter;
use crate::plan::Limits;
use crate::warnings::warnings;

/// A fleet's messages, from the beginning on.
#[derive(Debug)]
pub struct WatchedHosts {
    meter: Meter,
}

impl WatchedHosts {
    /// The fleet begins.
    pub fn begin() -> Self {
        Self {
            meter: Meter::new(false),
        }
    }

    /// Takes note of messages.
    pub fn record_messages(&mut self, messages: &[FleetMessage]) {
        self.meter.record_fleet(messages);
    }

    /// How long requests stayed at their reflectors, 99th percentile; `None` if no peer reports it.
    pub fn residence_p99(&self) -> Option<Span> {
        self.meter.residence_times().p99()
    }

    /// Lateness of the messages, 99th percentile; `None` without messages.
    pub fn lateness_p99(&self) -> Option<Span> {
        self.meter.lateness().map(|(_, p99)| p99)
    }

    /// Warnings about this host, which had this load, and the reflectors, by the usual limits. The numbers of
    /// messages and of messages without timestamps are reported as numbers.
    pub fn warnings(&self, load: Option<Load>) -> Vec<Warning> {
        let warnings = warnings(&self.meter, load, &Limits::default()).into_iter();
        let is_of_hosts = |warning: &Warning| {
            warning.is_of_a_busy_host() || matches!(warning, Warning::ReflectorSlow { .. })
        };
        warnings.filter(is_of_hosts).collect()
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{FleetOutcome, Instant, Slot};

    use super::*;

    #[test]
    fn a_late_sender_is_flagged_even_without_replies() {
        let message = |late| FleetMessage {
            slot: Slot(0),
            source_port: 10_000,
            seq: 0,
            sent: Instant::from_nanos(0),
            late,
            outcome: FleetOutcome::Lost,
        };
        let is_late = |late| {
            let mut hosts = WatchedHosts::begin();
            assert_eq!(hosts.lateness_p99(), None);
            hosts.record_messages(&[message(late)]);
            assert_eq!(
                hosts.residence_p99(),
                None,
                "what nobody answered stayed nowhere"
            );
            let warnings = hosts.warnings(None);
            let few = warnings.iter();
            assert!(
                !few.clone()
                    .any(|warning| matches!(warning, Warning::FewMessages { .. }))
            );
            few.clone()
                .any(|warning| matches!(warning, Warning::SenderLate { .. }))
        };
        assert!(is_late(Span::from_millis(122)));
        assert!(!is_late(Span::from_micros(1)));
    }
}
