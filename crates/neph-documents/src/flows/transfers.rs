//! Transfers on the source ports of latency classes, to one endpoint.

use neph_flows::Completion;
use neph_model::Span;
use neph_text::counted::counted;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cell::{Cell, OrDash};

/// If one in this number of transfers took another path than expected, ports are not reliable.
const MIN_TRANSFERS_PER_MOVE: u64 = 10;

/// The transfers to one endpoint.
#[derive(Debug, Default)]
pub struct EndpointTransfers {
    /// Completion times by class.
    pub by_class: Vec<Completion>,
    /// Number of transfers.
    pub n: u64,
    /// Those that took the path of another class than their flow had when the measurement ended.
    pub moved: u64,
}

/// Transfers on the ports of one class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompletionDocument {
    /// Latency class, from 0.
    pub class: usize,
    /// Number of transfers, failed ones included.
    pub n: u64,
    /// Number of source ports.
    pub ports: u64,
    /// Number of failed transfers; they count as longer than all others.
    pub failed: u64,
    /// Median over ports of each port's median completion time, connecting included; null without a
    /// number.
    pub median_ns: Option<Span>,
    /// Lower end of its 95 % confidence interval; null below 6 ports, or if it lies among failed
    /// transfers.
    pub low_ns: Option<Span>,
    /// Upper end of its 95 % confidence interval; null below 6 ports, or if it lies among failed
    /// transfers.
    pub high_ns: Option<Span>,
    /// Median divided by that of the first class that has one; null without a median.
    pub ratio: Option<f64>,
}

impl From<&Completion> for CompletionDocument {
    fn from(completion: &Completion) -> Self {
        Self {
            class: completion.class,
            n: completion.n,
            ports: completion.ports,
            failed: completion.failed,
            median_ns: completion.median,
            low_ns: completion.interval.map(|(low, _)| low),
            high_ns: completion.interval.map(|(_, high)| high),
            ratio: completion.ratio,
        }
    }
}

impl EndpointTransfers {
    /// The documents of all classes.
    pub(super) fn documents(&self) -> Vec<CompletionDocument> {
        self.by_class.iter().map(CompletionDocument::from).collect()
    }

    /// A table as text; empty without transfers.
    pub fn text(&self) -> String {
        if self.by_class.is_empty() {
            return String::new();
        }
        let mut text =
            "\ntransfer on class      median  95 % confidence interval   ratio     n  ports  failed\n"
                .to_owned();
        for class_times in &self.by_class {
            let interval = class_times
                .interval
                .or_dash(|(low, high)| format!("{low} to {high}"));
            let ratio = class_times.ratio.or_dash(|ratio| format!("{ratio:.3}"));
            text.push_str(&format!(
                "{:>17}  {:>10}  {interval:<24}  {ratio:>6}  {:>4}  {:>5}  {:>6}\n",
                class_times.class + 1,
                class_times.median.cell(),
                class_times.n,
                class_times.ports,
                class_times.failed
            ));
        }
        text.push_str(&self.moved_text());
        text
    }

    /// A sentence if transfers took another path.
    fn moved_text(&self) -> String {
        if self.moved == 0 {
            return String::new();
        }
        let percent = (100 * self.moved + self.n / 2) / self.n.max(1);
        let mut text = format!(
            "{} of {} ({percent} %) took another path than their flow had when the measurement ended, by their connect time; each counts for the class of the path it took\n",
            self.moved,
            counted(self.n, "transfer"),
        );
        if self.moved >= self.n.div_ceil(MIN_TRANSFERS_PER_MOVE) {
            text.push_str(
                "the network moved flows during the transfers: ports of a class may be on another path now; repeat before you choose one\n",
            );
        }
        text
    }
}
