//! Reports alarms: destinations, text, and what happens if a line cannot be written.
//!
//! Does not own the evaluation, nor which alarms are new at the end ([`super::final_alarms`]).

use std::io;

use neph_documents::Format;
use neph_documents::alarm::{AlarmDocument, SegmentReference, format_alarm_line};
use neph_documents::rows::json_line;
use neph_model::Stop;

use super::Args;
use crate::exit::Failure;
use crate::metrics::hops::HopsMetrics;
use crate::output;
use crate::resolving::addresses;
use neph_capture::Direction;
use neph_capture::clocks::value_format;
use neph_capture::path::alarms::SegmentChange;
use neph_export::Webhook;
use neph_listen::recording::AlarmListener;

/// The samples that the text of an alarm counts.
const SAMPLE_NOUN: &str = "packet";

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
    reported_alarms: Vec<SegmentChange>,
    /// Metrics that are exported while points record.
    metrics: Option<HopsMetrics>,
}

impl AlarmReporter {
    /// Without alarms so far; `stop` ends the recording.
    pub(super) fn new(args: &Args, stop: &Stop) -> Self {
        Self {
            // Not on the evaluating thread: a thread that it starts inherits its idle priority.
            webhook: (args.alarms.webhook.clone())
                .map(|url| Webhook::begin(url, "neph hops", output::say, addresses)),
            has_lines: args.format == Format::Ndjson,
            stop: stop.clone(),
            is_cut_off: false,
            reported_alarms: Vec::new(),
            metrics: None,
        }
    }

    /// As above, and exports alarms as metrics.
    pub(super) fn with_metrics(self, metrics: Option<HopsMetrics>) -> Self {
        Self { metrics, ..self }
    }

    /// With these alarms, without any destination.
    #[cfg(test)]
    pub(super) fn of(alarms: Vec<SegmentChange>) -> Self {
        Self {
            webhook: None,
            has_lines: true,
            stop: Stop::new(),
            is_cut_off: false,
            reported_alarms: alarms,
            metrics: None,
        }
    }

    /// Ends the recording. A reader that closed its pipe gets no message.
    fn end_recording(&mut self, error: io::Error) {
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
        self.reported_alarms
            .iter()
            .any(|alarm| alarm.change.is_raised)
    }

    /// Reported alarms and ends of alarms.
    pub(super) fn reported_alarms(&self) -> &[SegmentChange] {
        &self.reported_alarms
    }

    /// Waits until the webhook has received all alarms.
    pub(super) fn finish(self) {
        if let Some(webhook) = self.webhook {
            webhook.finish();
        }
    }

    /// Prints an alarm, and sends it to the webhook.
    pub(super) fn send(&self, alarm: &SegmentChange, document: &AlarmDocument<SegmentReference>) {
        output::say(&alarm_text(alarm));
        if let Some(webhook) = &self.webhook {
            webhook.report(json_line(document));
        }
    }
}

impl AlarmListener for AlarmReporter {
    fn hear(&mut self, alarm: SegmentChange) {
        let document = build_document(&alarm, "live");
        if output::can_rewrite() {
            // Clears the progress line.
            output::rewrite("");
        }
        if self.has_lines
            && !self.is_cut_off
            && let Err(error) = output::print_line(&json_line(&document))
        {
            self.end_recording(error);
        }
        self.send(&alarm, &document);
        if let Some(metrics) = &self.metrics {
            metrics.add_alarm(&alarm);
        }
        self.reported_alarms.push(alarm);
    }

    fn wants_delays(&self) -> bool {
        self.metrics.is_some()
    }

    fn crossed(&mut self, segment: &str, direction: Direction, took: i64) {
        if let Some(metrics) = &self.metrics {
            metrics.add_delay(segment, direction, took);
        }
    }
}

/// As text.
pub(super) fn alarm_text(alarm: &SegmentChange) -> String {
    let text = format_alarm_line(alarm.at, &alarm.change, SAMPLE_NOUN);
    let direction = alarm.direction.name();
    format!(
        "{text} [{}, {direction}; ± {}]",
        alarm.segment,
        value_format::bound_text(alarm.bound)
    )
}

/// As JSON, with the evaluated data: complete captures, or windows while points recorded.
pub(super) fn build_document(
    alarm: &SegmentChange,
    verdict: &'static str,
) -> AlarmDocument<SegmentReference> {
    let segment_ref = SegmentReference {
        segment: alarm.segment.clone(),
        direction: alarm.direction.name(),
        since_ns: alarm.change.at,
        bound_ns: alarm.bound,
        evaluated_on: verdict,
    };
    AlarmDocument::of_packets(alarm.at, &alarm.change, segment_ref)
}
