//! Interference between circuits.

use std::fmt::Write;

use neph_campaign::interference::{GoodputShare, InterferenceVerdict, PairFinding, shared_links};
use neph_model::{CampaignId, Quantity};
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

/// The goodput of a circuit at the same time as another one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CircuitShare {
    /// Name of the circuit.
    pub circuit: String,
    /// Number of blocks in which both transfers ran at the same time.
    pub blocks: usize,
    /// Median goodput without the other circuit.
    pub alone_bit_s: f64,
    /// Goodput at the same time as the other circuit, percent of the goodput without it; null
    /// without a block.
    pub share_percent: Option<f64>,
    /// Lower end of the share's 95 % confidence interval, which is simultaneous for all shares;
    /// null with too few blocks.
    pub share_low_percent: Option<f64>,
    /// Upper end of the same interval; null with too few blocks.
    pub share_high_percent: Option<f64>,
}

/// A pair of circuits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CircuitPair {
    /// Result: `interfere`, `independent` or `unknown`.
    pub verdict: &'static str,
    /// Number of further blocks that are likely to decide an unknown result; null if no number is
    /// known.
    pub more_blocks: Option<usize>,
    /// Results of both circuits.
    pub circuits: [CircuitShare; 2],
}

/// Interference between circuits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InterferenceDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Id of the campaign.
    pub campaign: CampaignId,
    /// Name of the measured transfer.
    pub measure: String,
    /// Margin: a share within this distance of 100 % is no interference.
    pub margin_percent: f64,
    /// Each pair of circuits.
    pub pairs: Vec<CircuitPair>,
    /// Circuits that share a link, for each link that the plan should declare.
    pub shared_links: Vec<Vec<String>>,
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

impl CircuitShare {
    fn of(share: &GoodputShare) -> Self {
        Self {
            circuit: share.circuit.clone(),
            blocks: share.blocks,
            alone_bit_s: share.alone_bit_s,
            share_percent: share.estimate.map(percent),
            share_low_percent: share.interval.map(|interval| percent(interval.low)),
            share_high_percent: share.interval.map(|interval| percent(interval.high)),
        }
    }

    /// `51.2 % of 19.80 Mbit/s (49.0 to 53.1 %)`.
    fn to_text(&self) -> String {
        let alone_text = Quantity::UpGoodput.to_text(self.alone_bit_s);
        let Some(share) = self.share_percent else {
            return format!("no result with the other circuit ({alone_text} without it)");
        };
        let interval = match (self.share_low_percent, self.share_high_percent) {
            (Some(low), Some(high)) => format!("{low:.1} to {high:.1} %"),
            _ => "too few blocks for an interval".to_owned(),
        };
        format!("{share:.1} % of {alone_text} ({interval})")
    }
}

impl CircuitPair {
    fn of(finding: &PairFinding) -> Self {
        let (verdict, more_blocks) = match finding.verdict {
            InterferenceVerdict::Interferes => ("interfere", None),
            InterferenceVerdict::Independent => ("independent", None),
            InterferenceVerdict::Unknown { more_blocks } => ("unknown", more_blocks),
        };
        Self {
            verdict,
            more_blocks,
            circuits: finding.shares.each_ref().map(CircuitShare::of),
        }
    }

    fn sentence(&self, margin: f64) -> String {
        let [a, b] = self
            .circuits
            .each_ref()
            .map(|circuit| circuit.circuit.as_str());
        match self.verdict {
            "interfere" => format!("Circuits '{a}' and '{b}' interfere."),
            "independent" => {
                format!("Circuits '{a}' and '{b}' do not interfere (margin {margin} %).")
            }
            _ => {
                let decision = match self.more_blocks {
                    Some(1) => "not decided; about 1 more block is likely to decide it".to_owned(),
                    Some(count) => {
                        format!("not decided; about {count} more blocks are likely to decide it")
                    }
                    None => format!(
                        "not decided: the share is at the margin ({margin} %); choose another --margin"
                    ),
                };
                format!("Circuits '{a}' and '{b}': {decision}.")
            }
        }
    }
}

impl InterferenceDocument {
    /// The result of a campaign; `margin` is a share.
    pub fn new(
        campaign: CampaignId,
        measure: String,
        margin: f64,
        findings: &[PairFinding],
    ) -> Self {
        Self {
            schema: Version,
            campaign,
            measure,
            margin_percent: percent(margin),
            pairs: findings.iter().map(CircuitPair::of).collect(),
            shared_links: shared_links(findings),
        }
    }

    /// The text form: a sentence for each pair, and the lines for the plan.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for pair in &self.pairs {
            let _ = writeln!(text, "{}", pair.sentence(self.margin_percent));
            for circuit in &pair.circuits {
                let _ = writeln!(text, "  {}: {}", circuit.circuit, circuit.to_text());
            }
        }
        let _ = writeln!(
            text,
            "Measured: {}, first each circuit by itself, then both at the same time. Rate with the other circuit, as a share of the rate without it; simultaneous 95 % confidence intervals.",
            self.measure
        );
        if self.shared_links.is_empty() {
            return text;
        }
        let _ = writeln!(text, "Add to the plan:");
        for (index, circuits) in self.shared_links.iter().enumerate() {
            let names: Vec<String> = circuits
                .iter()
                .map(|circuit| to_toml_string(circuit))
                .collect();
            let _ = writeln!(
                text,
                "\n[[shared_link]]\nname = \"found by interference {}\"\ncircuits = [{}]",
                index + 1,
                names.join(", ")
            );
        }
        text
    }
}

/// A text as a TOML string. Names in plans have no control characters.
fn to_toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use neph_stats::ConfidenceInterval;

    use super::*;

    fn finding(names: [&str; 2], verdict: InterferenceVerdict) -> PairFinding {
        PairFinding {
            shares: names.map(|circuit| GoodputShare {
                circuit: circuit.to_owned(),
                blocks: 7,
                estimate: Some(0.5),
                interval: Some(ConfidenceInterval {
                    low: 0.49,
                    high: 0.52,
                }),
                alone_bit_s: 19.8e6,
            }),
            verdict,
        }
    }

    #[test]
    fn each_pair_has_a_sentence_and_each_link_its_lines() {
        let findings = [
            finding(["a -> x", "b -> \"y\""], InterferenceVerdict::Interferes),
            finding(["a -> x", "c -> z"], InterferenceVerdict::Independent),
            finding(
                ["b -> x", "c -> z"],
                InterferenceVerdict::Unknown {
                    more_blocks: Some(4),
                },
            ),
        ];
        let campaign = CampaignId::new();
        let measure = "tcp throughput 100Mbit/s".to_owned();
        let document = InterferenceDocument::new(campaign, measure, 0.1, &findings);
        let text = document.text();
        for part in [
            "Circuits 'a -> x' and 'b -> \"y\"' interfere.\n  a -> x: 50.0 % of 19.80 Mbit/s (49.0 to 52.0 %)",
            "Circuits 'a -> x' and 'c -> z' do not interfere (margin 10 %).",
            "Circuits 'b -> x' and 'c -> z': not decided; about 4 more blocks are likely to",
            "\n[[shared_link]]\nname = \"found by interference 1\"\ncircuits = [\"a -> x\", \"b -> \\\"y\\\"\"]\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let json = serde_json::to_value(&document).expect("JSON");
        assert_eq!(json["pairs"][2]["more_blocks"], 4);
        assert_eq!(json["shared_links"][0][0], "a -> x");
    }
}
