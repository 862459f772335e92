//! Reports alarms: destinations, text, and what happens if a line cannot be written.
//!
//! Does not own the evaluation, nor which alarms are new at the end ([`super::final_alarms`]).

use std::io;

use neph_documents::Format;
use neph_documents::alarm::{AlarmDocument, OfSegment, sentence};
use neph_documents::rows::json_line;
use neph_model::Stop;

use super::Args;
use crate::exit::Failure;
use crate::metrics::hops::HopsMetrics;
use crate::output;
use crate::resolving::addresses;
use neph_capture::Direction;
use neph_capture::clocks::words;
use neph_capture::path::alarms::SegmentChange;
use neph_export::Webhook;
use neph_listen::recording::AlarmListener;

/// The counters.
const NOUN: &str = "packet";

/// Destinations of alarms, and the alarms that were reported.
#[derive(Debug)]
pub(super) struct AlarmReporter {
    webhook: Option<Webhook>,
    /// Whether standard output has one JSON object per line.
    has_lines: bool,
    /// Ends the recording.
    stop: Stop,
    /// A line could not be written: later lines are not written either.
    is_cut_off: bool,
    found: Vec<SegmentChange>,
    /// Metrics that are exported while points record.
    metrics: Option<HopsMetrics>,
}

impl AlarmReporter {
    /// Without alarms so far; `stop` ends the recording.
    pub(super) fn nothing(args: &Args, stop: &Stop) -> Self {
        Self {
            // Not on the evaluating thread: a thread that it starts inherits its idle priority.
            webhook: (args.alarms.webhook.clone())
                .map(|url| Webhook::begin(url, "neph hops", output::say, addresses)),
            has_lines: args.format == Format::Ndjson,
            stop: stop.clone(),
            is_cut_off: false,
            found: Vec::new(),
            metrics: None,
        }
    }

    /// As above, and exports alarms as metrics.
    pub(super) fn exporting(self, metrics: Option<HopsMetrics>) -> Self {
        Self { metrics, ..self }
    }

    /// With these alarms, without any destination.
    #[cfg(test)]
    pub(super) fn of(found: Vec<SegmentChange>) -> Self {
        Self {
            webhook: None,
            has_lines: true,
            stop: Stop::new(),
            is_cut_off: false,
            found,
            metrics: None,
        }
    }

    /// Ends the recording. A reader that closed its pipe gets no message.
    fn cut_off(&mut self, error: io::Error) {
        self.is_cut_off = true;
        self.stop.set();
        if let Failure::Refused(reason) = Failure::from(error) {
            output::say(&format!("neph hops: {reason}; the recording ends"));
        }
    }

    /// Whether a line could not be written; the error is already reported.
    pub(super) const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Whether an alarm was raised.
    pub(super) fn is_alarmed(&self) -> bool {
        self.found.iter().any(|found| found.change.is_raised)
    }

    /// Reported alarms and ends of alarms.
    pub(super) fn found(&self) -> &[SegmentChange] {
        &self.found
    }

    /// Waits until the webhook has received all alarms.
    pub(super) fn finish(self) {
        if let Some(webhook) = self.webhook {
            webhook.finish();
        }
    }

    /// Prints an alarm, and sends it to the webhook.
    pub(super) fn say(&self, found: &SegmentChange, reporting: &AlarmDocument<OfSegment>) {
        output::say(&printed(found));
        if let Some(webhook) = &self.webhook {
            webhook.report(json_line(reporting));
        }
    }
}

impl AlarmListener for AlarmReporter {
    fn hear(&mut self, found: SegmentChange) {
        let reporting = reporting(&found, "live");
        if output::is_lively() {
            // Clears the progress line.
            output::rewrite("");
        }
        if self.has_lines
            && !self.is_cut_off
            && let Err(error) = output::line(&json_line(&reporting))
        {
            self.cut_off(error);
        }
        self.say(&found, &reporting);
        if let Some(metrics) = &self.metrics {
            metrics.alarm(&found);
        }
        self.found.push(found);
    }

    fn wants_delays(&self) -> bool {
        self.metrics.is_some()
    }

    fn crossed(&mut self, segment: &str, direction: Direction, took: i64) {
        if let Some(metrics) = &self.metrics {
            metrics.crossed(segment, direction, took);
        }
    }
}

/// As text.
pub(super) fn printed(found: &SegmentChange) -> String {
    let printed = sentence(found.at, &found.change, NOUN);
    let direction = found.direction.name();
    format!(
        "{printed} [{}, {direction}; ± {}]",
        found.segment,
        words::up(found.bound)
    )
}

/// As JSON, with the evaluated data: complete captures, or windows while points recorded.
pub(super) fn reporting(found: &SegmentChange, verdict: &'static str) -> AlarmDocument<OfSegment> {
    let about = OfSegment {
        segment: found.segment.clone(),
        direction: found.direction.name(),
        since_ns: found.change.at,
        bound_ns: found.bound,
        evaluated_on: verdict,
    };
    AlarmDocument::of_packets(found.at, &found.change, about)
}
