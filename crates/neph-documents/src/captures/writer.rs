//! The output of flows that ended: a line for each, or the first lines in order.

use std::fmt::Write as _;
use std::io::{self, Write};

use neph_capture::{
    Event, ExchangeKey, ExchangeRoundTrip, Flow, FlowName, HostPair, Listener, Method, Sample, Side,
};
use neph_model::{Span, Wall};
use serde::Serialize;

use neph_capture::reading::conversations::{ConversationListener, Conversations};
use neph_capture::reading::file::File;
use neph_text::counted::counted;

use super::row::{COLUMNS, row};
use super::{
    CaptureLine, EventDocument, ExchangeSample, FlowDocument, SampleDocument, SampleOf, Sending,
    Sort, Summary, TopLines, csv, exchanges,
};
use crate::format::Format;
use crate::rows::json_line;
use crate::table::Table;

/// The options of the output.
#[derive(Clone, Copy, Debug)]
pub struct OutputOptions {
    /// The format.
    pub format: Format,
    /// Sort order of the table.
    pub sort: Sort,
    /// Maximum number of lines of the table.
    pub top: usize,
    /// Method of the round trips in the table.
    pub method: Method,
    /// Whether each round trip and each event is written too.
    pub samples: bool,
}

/// Writes flows and exchanges as they end, and the summary.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    options: OutputOptions,
    out: W,
    /// The first error of the output.
    first_error: Option<io::Error>,
    lines: TopLines,
    exchanges: TopLines,
    /// Number of dropped lines: of flows, and of exchanges.
    dropped_lines: [u64; 2],
    /// Exchanges that ended, as JSON, for the JSON document: flows are written before them.
    documents: String,
    summary: Summary,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to `out`.
    pub fn new(options: OutputOptions, out: W) -> Self {
        let mut writer = Self {
            options,
            out,
            first_error: None,
            lines: TopLines::new(options.top),
            exchanges: TopLines::new(options.top),
            dropped_lines: [0; 2],
            documents: String::new(),
            summary: Summary::default(),
        };
        if options.format == Format::Csv {
            writer.text_line(&csv::header());
        }
        writer
    }

    /// Whether the reader of the output has closed it.
    pub const fn is_refused(&self) -> bool {
        self.first_error.is_some()
    }

    /// Totals of everything that ended.
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Where the data goes.
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Writes the rest, after all flows.
    pub fn finish(mut self, conversations: &Conversations, files: &[File]) -> io::Result<()> {
        if let Some(error) = self.first_error {
            return Err(error);
        }
        match self.options.format {
            Format::Text => {
                let [flows, pairs] = self.dropped_lines;
                for (columns, mut lines, dropped_lines) in [
                    (&COLUMNS[..], self.lines, flows),
                    (&exchanges::COLUMNS[..], self.exchanges, pairs),
                ] {
                    let mut table = Table::new(columns);
                    lines.take().into_iter().for_each(|row| table.push(row));
                    if !table.is_empty() {
                        self.out.write_all(table.text().as_bytes())?;
                        if dropped_lines > 0 {
                            let dropped_text = counted(dropped_lines, "line");
                            writeln!(self.out, "{dropped_text} more; a larger --top shows them.")?;
                        }
                        writeln!(self.out)?;
                    }
                }
                let method = self.options.method;
                self.summary
                    .write(method, conversations, files, &mut self.out)?;
            }
            Format::Ndjson => {
                let summary =
                    CaptureLine::Summary(Box::new(self.summary.document(conversations, files)));
                writeln!(self.out, "{}", json_line(&summary))?;
            }
            Format::Csv => {}
            Format::Json => {
                let opening = if self.summary.flows == 0 {
                    "{\"flows\": ["
                } else {
                    ""
                };
                let summary =
                    CaptureLine::Summary(Box::new(self.summary.document(conversations, files)));
                let summary = json_line(&summary);
                let exchanges = self.documents;
                writeln!(
                    self.out,
                    "{opening}],\n\"exchanges\": [{exchanges}],\n\"summary\": {summary}}}"
                )?;
            }
        }
        self.out.flush()
    }

    fn text_line(&mut self, line: &str) {
        let result = writeln!(self.out, "{line}");
        self.keep_error(result);
    }

    /// A line of JSON.
    pub fn line(&mut self, value: &impl Serialize) {
        let result = self.value(value).and_then(|()| writeln!(self.out));
        self.keep_error(result);
    }

    fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        Ok(serde_json::to_writer(&mut self.out, value)?)
    }

    /// Stores an error of the output.
    pub fn keep_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.first_error.get_or_insert(error);
        }
    }
}

impl<W: Write> ConversationListener for CaptureWriter<W> {
    fn pair_ended(&mut self, pair: &HostPair) {
        match self.options.format {
            Format::Text => {
                let counts = pair.counts();
                if exchanges::has_exchanges(&counts) {
                    let rank = exchanges::sort_key(pair, &counts);
                    let is_kept = self.exchanges.keep(rank, || exchanges::row(pair, &counts));
                    self.dropped_lines[1] += u64::from(!is_kept);
                }
            }
            Format::Ndjson => self.line(&CaptureLine::exchange(pair)),
            Format::Csv => self.text_line(&csv::pair(pair)),
            Format::Json => {
                let separator = if self.documents.is_empty() { "" } else { "," };
                // Writing to a string never fails.
                let _ = write!(
                    self.documents,
                    "{separator}{}",
                    json_line(&CaptureLine::exchange(pair))
                );
            }
        }
        self.summary.add_exchange(pair);
    }

    fn request_answered(&mut self, key: &ExchangeKey, answer: ExchangeRoundTrip) {
        self.summary.zero_round_trips += u64::from(answer.round_trip == Span::ZERO);
        if self.options.samples {
            let sample = SampleOf::Exchange(ExchangeSample::of(key, answer));
            self.line(&CaptureLine::Sample(sample));
        }
    }
}

impl<W: Write> Listener for CaptureWriter<W> {
    fn sample(&mut self, name: &FlowName, sample: &Sample) {
        if self.options.samples {
            let sample = SampleOf::Tcp(SampleDocument::of(name, sample));
            self.line(&CaptureLine::Sample(sample));
        }
    }

    fn event(&mut self, name: &FlowName, at: Wall, side: Side, event: Event) {
        if self.options.samples {
            let sending = Sending { name, at, side };
            self.line(&CaptureLine::Event(EventDocument::of(sending, event)));
        }
    }

    fn found_spurious(&mut self, name: &FlowName, at: Wall, side: Side, previous_kind: Event) {
        if self.options.samples {
            let sending = Sending { name, at, side };
            let event = EventDocument::reclassified_spurious(sending, previous_kind);
            self.line(&CaptureLine::Event(event));
        }
    }

    fn negative_round_trip(&mut self) {
        self.summary.negative_round_trips += 1;
    }

    fn zero_round_trip(&mut self) {
        self.summary.zero_round_trips += 1;
    }

    fn ended(&mut self, flow: &Flow) {
        match self.options.format {
            Format::Text => {
                let method = self.options.method;
                let rank = self.options.sort.rank(flow, method);
                let is_kept = self.lines.keep(rank, || row(flow, method));
                self.dropped_lines[0] += u64::from(!is_kept);
            }
            Format::Ndjson => self.line(&CaptureLine::Flow(Box::new(FlowDocument::from(flow)))),
            Format::Csv => self.text_line(&csv::flow(flow, self.options.method)),
            Format::Json => {
                let separator = if self.summary.flows == 0 {
                    "{\"flows\": [\n"
                } else {
                    ",\n"
                };
                let result = write!(self.out, "{separator}");
                let result = result.and_then(|()| {
                    self.value(&CaptureLine::Flow(Box::new(FlowDocument::from(flow))))
                });
                self.keep_error(result);
            }
        }
        self.summary.add(flow);
    }
}
