//! A scenario: one fixation of all parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ByteSize, ProbeKind, ScenarioId, Span};

/// One fixation of all parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// What it fixes, hashed: equal in every campaign that fixes the same.
    pub id: ScenarioId,
    /// Its place in the plan's matrix, from 0.
    pub index: u32,
    /// The endpoint's name in the plan.
    pub endpoint: String,
    /// The endpoint's address as the plan writes it (`ws://host:port/path`).
    pub target: String,
    /// The kind of exchange.
    pub probe: ProbeKind,
    /// Time between two requests.
    pub interval: Span,
    /// Request payload.
    pub request_size: ByteSize,
    /// Reply payload.
    pub response_size: ByteSize,
    /// Messages per experiment.
    pub messages: u64,
    /// Every other parameter that the plan fixes (`tls`, `new_connection`, `congestion` ...), by
    /// name, as the plan writes its value.
    pub parameters: BTreeMap<String, String>,
    /// The names in `parameters` that differ between scenarios of this plan: they belong in labels.
    pub varied: Vec<String>,
}

impl Scenario {
    /// `continent · every 100 ms · 10 KiB`, and what else varies in this plan.
    pub fn label(&self) -> String {
        let mut label = format!(
            "{} · every {} · {}",
            self.endpoint,
            short(self.interval),
            self.request_size
        );
        for name in &self.varied {
            if let Some(value) = self.parameters.get(name) {
                label.push_str(&format!(" · {name} {value}"));
            }
        }
        label
    }
}

/// Without trailing zeros: `25 ms`, `2.5 ms`, `1 s`.
fn short(span: Span) -> String {
    let (unit, name) = match span.nanos() {
        n if n >= 1_000_000_000 => (1_000_000_000, "s"),
        n if n >= 1_000_000 => (1_000_000, "ms"),
        n if n >= 1_000 => (1_000, "us"),
        _ => (1, "ns"),
    };
    let whole = span.nanos() / unit;
    if whole * unit == span.nanos() {
        return format!("{whole} {name}");
    }
    #[expect(clippy::cast_precision_loss, reason = "display")]
    let value = span.nanos() as f64 / unit as f64;
    let digits = format!("{value:.3}");
    format!(
        "{} {name}",
        digits.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_read_without_trailing_zeros() {
        assert_eq!(short(Span::from_millis(25)), "25 ms");
        assert_eq!(short(Span::from_micros(2_500)), "2.5 ms");
        assert_eq!(short(Span::from_secs(1)), "1 s");
        assert_eq!(short(Span::from_millis(1_500)), "1.5 s");
    }
}
