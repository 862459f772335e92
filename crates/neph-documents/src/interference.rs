//! Which circuits disturb each other.

use std::fmt::Write;

use neph_campaign::interference::{Answer, PairFinding, Share, shared_links};
use neph_model::{CampaignId, Quantity};
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

/// What a circuit gets beside another one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CircuitShare {
    /// The circuit: its site and its endpoint.
    pub circuit: String,
    /// Blocks that count: both transfers were at the same time.
    pub blocks: usize,
    /// The median goodput alone.
    pub alone_bit_s: f64,
    /// Goodput beside the other circuit, percent of the goodput alone; `null` without a block.
    pub share_percent: Option<f64>,
    /// The lower end of an interval of the share that holds together with all others in 95 %; `null` where there are too few
    /// blocks.
    pub share_low_percent: Option<f64>,
    /// Its upper end.
    pub share_high_percent: Option<f64>,
}

/// Two circuits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CircuitPair {
    /// `interfere`, `independent` or `unknown`.
    pub answer: &'static str,
    /// How many more blocks are likely to show it, where the answer is unknown; `null` where no number can be named.
    pub more_blocks: Option<usize>,
    /// Each of both.
    pub circuits: [CircuitShare; 2],
}

/// Which circuits disturb each other.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InterferenceDocument {
    /// The version of these keys.
    pub schema: Version,
    /// The campaign that measured it.
    pub campaign: CampaignId,
    /// What was measured.
    pub measure: String,
    /// A share within this of 100 % is no interference, percent.
    pub margin_percent: f64,
    /// Each pair of circuits that was measured.
    pub pairs: Vec<CircuitPair>,
    /// The circuits of each link that the plan should declare.
    pub shared_links: Vec<Vec<String>>,
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

impl CircuitShare {
    fn of(share: &Share) -> Self {
        Self {
            circuit: share.circuit.clone(),
            blocks: share.blocks,
            alone_bit_s: share.alone,
            share_percent: share.estimate.map(percent),
            share_low_percent: share.interval.map(|interval| percent(interval.low)),
            share_high_percent: share.interval.map(|interval| percent(interval.high)),
        }
    }

    /// `51.2 % of 19.80 Mbit/s (49.0 to 53.1 %)`.
    fn in_words(&self) -> String {
        let alone = Quantity::UpGoodput.in_words(self.alone_bit_s);
        let Some(share) = self.share_percent else {
            return format!("nothing measured with the other ({alone} alone)");
        };
        let interval = match (self.share_low_percent, self.share_high_percent) {
            (Some(low), Some(high)) => format!("{low:.1} to {high:.1} %"),
            _ => "too few blocks for an interval".to_owned(),
        };
        format!("{share:.1} % of {alone} ({interval})")
    }
}

impl CircuitPair {
    fn of(finding: &PairFinding) -> Self {
        let (answer, more_blocks) = match finding.answer {
            Answer::Interferes => ("interfere", None),
            Answer::Independent => ("independent", None),
            Answer::Unknown { more } => ("unknown", more),
        };
        Self {
            answer,
            more_blocks,
            circuits: finding.shares.each_ref().map(CircuitShare::of),
        }
    }

    fn sentence(&self, margin: f64) -> String {
        let [a, b] = self.circuits.each_ref().map(|one| one.circuit.as_str());
        match self.answer {
            "interfere" => format!("Circuits '{a}' and '{b}' interfere."),
            "independent" => {
                format!("Circuits '{a}' and '{b}' do not interfere (margin {margin} %).")
            }
            _ => {
                let more = match self.more_blocks {
                    Some(1) => "not decided; about 1 more block is likely to decide it".to_owned(),
                    Some(more) => {
                        format!("not decided; about {more} more blocks are likely to decide it")
                    }
                    None => format!(
                        "not decided: the share is at the margin ({margin} %); choose another --margin"
                    ),
                };
                format!("Circuits '{a}' and '{b}': {more}.")
            }
        }
    }
}

impl InterferenceDocument {
    /// What a campaign of a design shows. `margin` is a share.
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
            for one in &pair.circuits {
                let _ = writeln!(text, "  {}: {}", one.circuit, one.in_words());
            }
        }
        let _ = writeln!(
            text,
            "Measured: {}, each circuit alone and both at the same time. Rate with the other circuit, as a share of the rate alone; simultaneous 95 % intervals.",
            self.measure
        );
        if self.shared_links.is_empty() {
            return text;
        }
        let _ = writeln!(text, "Add to the plan:");
        for (place, circuits) in self.shared_links.iter().enumerate() {
            let names: Vec<String> = circuits.iter().map(|one| quoted(one)).collect();
            let _ = writeln!(
                text,
                "\n[[shared_link]]\nname = \"found by interference {}\"\ncircuits = [{}]",
                place + 1,
                names.join(", ")
            );
        }
        text
    }
}

/// A text as TOML writes it. Names in plans have no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use neph_stats::Interval;

    use super::*;

    fn finding(names: [&str; 2], answer: Answer) -> PairFinding {
        PairFinding {
            shares: names.map(|circuit| Share {
                circuit: circuit.to_owned(),
                blocks: 7,
                estimate: Some(0.5),
                interval: Some(Interval {
                    low: 0.49,
                    high: 0.52,
                }),
                alone: 19.8e6,
            }),
            answer,
        }
    }

    #[test]
    fn each_pair_has_a_sentence_and_each_link_its_lines() {
        let findings = [
            finding(["a -> x", "b -> \"y\""], Answer::Interferes),
            finding(["a -> x", "c -> z"], Answer::Independent),
            finding(["b -> x", "c -> z"], Answer::Unknown { more: Some(4) }),
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
