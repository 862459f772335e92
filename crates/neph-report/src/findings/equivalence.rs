//! That endpoints do not differ: shown by intervals that lie within a margin, which the plan states
//! beforehand. That no difference was found is no sentence of this kind.

use neph_stats::Verdict;

use super::compare::{Comparison, LeastEffect, Medians, compare, medians_of_layer, told, verdicts};
use super::levels::{Compared, compared_by};
use super::{Finding, FindingKind, plural, real};
use crate::axis::millis;
use crate::data::Factor;
use crate::settings::Margin;
use crate::{CampaignData, Layer, PlotSettings};

/// Names are told one by one up to this many.
const NAMED: usize = 4;

/// Two endpoints of a group, held against the margin.
struct Pair<'g> {
    group: &'g str,
    names: [&'g str; 2],
    compared: Comparison,
}

impl Pair<'_> {
    /// How far apart the two may be, in milliseconds.
    fn reach(&self) -> f64 {
        let interval = self.compared.interval;
        interval.map_or(f64::INFINITY, |one| one.low.abs().max(one.high.abs()))
    }

    fn is_equivalent(&self) -> bool {
        verdicts(&[self.compared]) == [Verdict::Equivalent]
    }
}

/// A sentence for each margin that the plan states.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let margins = settings.margins.iter();
    margins
        .filter_map(|margin| {
            let groups = compared_by(data, settings, &Factor::Endpoint, |scenario| {
                // A plan may have a margin for each few of its endpoints.
                if margin.is_about(&data.scenarios[scenario].endpoint) {
                    medians_of_layer(data, settings, scenario, &margin.layer)
                } else {
                    Medians::new()
                }
            });
            sentence(&groups, margin)
        })
        .collect()
}

/// Every two endpoints that the margin is about. All of them have to lie within it, so that no
/// correction for their number is due (an intersection-union test).
fn pairs<'g>(groups: &'g [Compared], margin: &Margin) -> Vec<Pair<'g>> {
    let least = LeastEffect {
        share: 0.0,
        millis: margin.width.millis_f64(),
    };
    let mut found = Vec::new();
    for group in groups {
        let levels: Vec<_> = group
            .levels
            .iter()
            .filter(|(name, _)| margin.is_about(name))
            .collect();
        for (place, (name, medians)) in levels.iter().enumerate() {
            for (other, others) in &levels[place + 1..] {
                let compared = compare(medians, others, least);
                found.extend(compared.map(|compared| Pair {
                    group: &group.title,
                    names: [name, other],
                    compared,
                }));
            }
        }
    }
    found
}

fn sentence(groups: &[Compared], margin: &Margin) -> Option<Finding> {
    let pairs = pairs(groups, margin);
    let Some(widest) = pairs.iter().max_by(|a, b| a.reach().total_cmp(&b.reach())) else {
        return (margin.layer != Layer::Response).then(|| unseen(&margin.layer));
    };
    let mut names: Vec<&str> = Vec::new();
    for name in pairs.iter().flat_map(|pair| pair.names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let who = match names.as_slice() {
        few if few.len() <= NAMED => few.join(", "),
        many => format!("The {}", plural(many.len(), "endpoint")),
    };
    let width = millis(margin.width.millis_f64());
    let equivalent = pairs.iter().filter(|pair| pair.is_equivalent()).count();
    let is_shown = equivalent == pairs.len();
    let text = if is_shown {
        format!(
            "{who} are equivalent: no median{} differs from another one's by {width} or more. {}.",
            of_what(&margin.layer),
            farthest(widest)
        )
    } else {
        format!(
            "{who} are not shown to be equivalent within {width}{}. {}.",
            of_what(&margin.layer),
            farthest(widest)
        )
    };
    let topic = if is_shown {
        "equivalence"
    } else {
        "no_equivalence"
    };
    let mut finding = Finding::new(FindingKind::StandsOut, topic, text);
    for name in names {
        finding = finding.about(name);
    }
    let finding = finding
        .with("margin_ms", margin.width.millis_f64())
        .with("pairs", real(pairs.len()))
        .with("equivalent_pairs", real(equivalent))
        .with("shift_ms", widest.compared.shift)
        .with("reach_ms", widest.reach())
        .with("blocks", real(widest.compared.blocks));
    Some(finding)
}

/// What a plan wanted to be compared, and nobody saw.
fn unseen(layer: &Layer) -> Finding {
    let text = format!(
        "Whether the {} is equivalent cannot be told: no two endpoints have it in the same block. Kernel stamps are needed for it, and root for some of them.",
        layer.name()
    );
    Finding::new(FindingKind::StandsOut, "no_equivalence", text)
}

/// What the medians are of, where it is not what a sentence speaks of by itself.
fn of_what(layer: &Layer) -> String {
    match layer {
        Layer::Response => String::new(),
        other => format!(" of the {}", other.name()),
    }
}

/// The two that may be farthest apart.
fn farthest(pair: &Pair<'_>) -> String {
    let [name, other] = pair.names;
    let blocks = plural(pair.compared.blocks, "block");
    let how_far = match pair.compared.interval {
        Some(interval) => format!(
            "differ by {}, with 95 % confidence by {} to {} ({}; {blocks})",
            told(pair.compared.shift),
            told(interval.low),
            told(interval.high),
            pair.group,
        ),
        None => format!(
            "differ by {}, of which {blocks} allow no interval: it takes 6 ({})",
            told(pair.compared.shift),
            pair.group,
        ),
    };
    format!("Farthest apart may be {name} and {other}: they {how_far}")
}
