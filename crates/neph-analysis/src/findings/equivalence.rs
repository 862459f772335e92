//! Equivalence of endpoints: intervals that lie within a margin, which the plan states in advance. A
//! non-significant difference is no equivalence.

use neph_stats::{Claim, ConfidenceInterval, PairedShift, Verdict, blocks_needed, simultaneous};

use super::compare::{ClaimIndex, Decisions, Family, Medians, format_millis};
use super::levels::{LevelGroup, level_groups_with};
use super::{Finding, FindingKind};
use crate::data::Factor;
use crate::numbers::millis;
use crate::settings::Margin;
use crate::text::{plural, to_f64};
use crate::{CampaignData, Layer, PlotSettings};

/// Maximum number of names that are listed.
const MAX_NAMED: usize = 4;

/// Two endpoints of a group, compared with the margin.
#[derive(Debug)]
struct Pair {
    group: String,
    names: [String; 2],
    shift: PairedShift,
}

impl Pair {
    /// The interval for a family of this many statements.
    fn interval(&self, family: usize) -> Option<ConfidenceInterval> {
        self.shift.interval(simultaneous(family))
    }

    /// The largest possible difference, in milliseconds.
    fn max_difference(&self, family: usize) -> f64 {
        let interval = self.interval(family);
        interval.map_or(f64::INFINITY, |bounds| {
            bounds.low.abs().max(bounds.high.abs())
        })
    }
}

/// A margin of the plan, with all pairs of endpoints that it covers.
#[derive(Debug)]
pub(crate) struct EquivalenceCheck {
    margin: Margin,
    pairs: Vec<Pair>,
    /// The place of the statement that all pairs lie within the margin; `None` without a pair.
    claim_index: Option<ClaimIndex>,
}

/// Every margin of the plan.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<EquivalenceCheck> {
    let check = |margin: &Margin| {
        let groups = level_groups_with(data, settings, &Factor::Endpoint, |scenario| {
            // A plan may have several margins, each for some of its endpoints.
            if margin.includes(&data.scenarios[scenario].endpoint) {
                Medians::of_layer(data, settings, scenario, &margin.layer)
            } else {
                Medians::default()
            }
        });
        let pairs = pairs(groups, margin);
        let claim = Claim::AllWithin {
            shifts: pairs.iter().map(|pair| pair.shift.clone()).collect(),
            margin: margin.width.millis_f64(),
        };
        EquivalenceCheck {
            margin: margin.clone(),
            claim_index: (!pairs.is_empty()).then(|| family.add(claim)),
            pairs,
        }
    };
    settings.margins.iter().map(check).collect()
}

/// A sentence for each margin.
pub(crate) fn findings(checks: &[EquivalenceCheck], decisions: &Decisions) -> Vec<Finding> {
    checks
        .iter()
        .filter_map(|check| check.sentence(decisions))
        .collect()
}

/// Every pair of endpoints that the margin covers.
fn pairs(groups: Vec<LevelGroup>, margin: &Margin) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for group in groups {
        let levels: Vec<_> = group
            .levels
            .iter()
            .filter(|(name, _)| margin.includes(name))
            .collect();
        for (index, (name, medians)) in levels.iter().enumerate() {
            for (other_name, other_medians) in &levels[index + 1..] {
                let shift = medians.shift_from(other_medians);
                pairs.extend(shift.map(|shift| Pair {
                    group: group.title.clone(),
                    names: [name.clone(), other_name.clone()],
                    shift,
                }));
            }
        }
    }
    pairs
}

impl EquivalenceCheck {
    fn sentence(&self, decisions: &Decisions) -> Option<Finding> {
        let Self {
            margin,
            pairs,
            claim_index,
        } = self;
        let Some(claim_index) = claim_index else {
            return (margin.layer != Layer::Response).then(|| not_evaluated(&margin.layer));
        };
        let decision = decisions.for_claim(*claim_index);
        let family = decision.family;
        let max_difference = |pair: &&Pair| pair.max_difference(family);
        let widest = pairs
            .iter()
            .max_by(|a, b| max_difference(a).total_cmp(&max_difference(b)))?;
        let is_equivalent = decision.verdict == Verdict::Equivalent;
        let subject = subject_text(pairs);
        let width = millis(margin.width.millis_f64());
        let text = if is_equivalent {
            format!(
                "{subject} are equivalent: no median{} differs from another one's by {width} or more. {}.",
                layer_text(&margin.layer),
                farthest_text(widest, family)
            )
        } else {
            format!(
                "{subject} are not shown to be equivalent within {width}{}. {}.",
                layer_text(&margin.layer),
                farthest_text(widest, family)
            )
        };
        let topic = if is_equivalent {
            "equivalence"
        } else {
            "no_equivalence"
        };
        let is_within = |pair: &&Pair| max_difference(pair) < margin.width.millis_f64();
        let mut finding = Finding::new(FindingKind::Notable, topic, text);
        for name in names(pairs) {
            finding = finding.about(name);
        }
        let finding = finding
            .with("margin_ms", margin.width.millis_f64())
            .with("pairs", to_f64(pairs.len()))
            .with(
                "equivalent_pairs",
                to_f64(pairs.iter().filter(is_within).count()),
            )
            .with("shift_ms", widest.shift.estimate())
            .with("reach_ms", widest.max_difference(family))
            .with("p", decision.p)
            .with("blocks", to_f64(widest.shift.n()));
        Some(finding)
    }
}

/// Each endpoint once.
fn names(pairs: &[Pair]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in pairs.iter().flat_map(|pair| &pair.names) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn subject_text(pairs: &[Pair]) -> String {
    match names(pairs).as_slice() {
        few if few.len() <= MAX_NAMED => few.join(", "),
        names => format!("The {}", plural(names.len(), "endpoint")),
    }
}

/// A comparison that the plan asks for and that has no data.
fn not_evaluated(layer: &Layer) -> Finding {
    let text = format!(
        "Equivalence of the {} was not evaluated: no two endpoints have this layer in the same block. It needs kernel timestamps, some of which need root.",
        layer.name()
    );
    Finding::new(FindingKind::Notable, "no_equivalence", text)
}

/// The layer of the medians, if it is not the default one.
fn layer_text(layer: &Layer) -> String {
    match layer {
        Layer::Response => String::new(),
        other => format!(" of the {}", other.name()),
    }
}

/// The pair with the largest possible difference.
fn farthest_text(pair: &Pair, family: usize) -> String {
    let [name, other] = &pair.names;
    let blocks = plural(pair.shift.n(), "block");
    let difference_text = match pair.interval(family) {
        Some(interval) => format!(
            "differ by {} (95 % confidence interval {} to {}; {}; {blocks})",
            format_millis(pair.shift.estimate()),
            format_millis(interval.low),
            format_millis(interval.high),
            pair.group,
        ),
        None => format!(
            "differ by {}; a confidence interval needs {} blocks, and there are {blocks} ({})",
            format_millis(pair.shift.estimate()),
            blocks_needed(family),
            pair.group,
        ),
    };
    format!("The largest possible difference is between {name} and {other}: they {difference_text}")
}
