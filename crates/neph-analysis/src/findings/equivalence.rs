//! Equivalence of endpoints: intervals that lie within a margin, which the plan states in advance. A
//! non-significant difference is no equivalence.

use neph_stats::{Claim, Interval, PairedShift, Verdict, blocks_needed, simultaneous};

use super::compare::{Family, Judged, Medians, Place, reported};
use super::levels::{Compared, compared_by};
use super::{Finding, FindingKind};
use crate::data::Factor;
use crate::numbers::millis;
use crate::settings::Margin;
use crate::words::{plural, real};
use crate::{CampaignData, Layer, PlotSettings};

/// Maximum number of names that are listed.
const NAMED: usize = 4;

/// Two endpoints of a group, compared with the margin.
#[derive(Debug)]
struct Pair {
    group: String,
    names: [String; 2],
    shift: PairedShift,
}

impl Pair {
    /// The interval for a family of this many statements.
    fn interval(&self, family: usize) -> Option<Interval> {
        self.shift.interval(simultaneous(family))
    }

    /// The largest possible difference, in milliseconds.
    fn reach(&self, family: usize) -> f64 {
        let interval = self.interval(family);
        interval.map_or(f64::INFINITY, |one| one.low.abs().max(one.high.abs()))
    }
}

/// A margin of the plan, with all pairs of endpoints that it covers.
#[derive(Debug)]
pub(crate) struct Held {
    margin: Margin,
    pairs: Vec<Pair>,
    /// The place of the statement that all pairs lie within the margin; `None` without a pair.
    place: Option<Place>,
}

/// Every margin of the plan.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<Held> {
    let held = |margin: &Margin| {
        let groups = compared_by(data, settings, &Factor::Endpoint, |scenario| {
            // A plan may have several margins, each for some of its endpoints.
            if margin.is_about(&data.scenarios[scenario].endpoint) {
                Medians::of_layer(data, settings, scenario, &margin.layer)
            } else {
                Medians::default()
            }
        });
        let pairs = pairs(groups, margin);
        let claim = Claim::AllWithin {
            shifts: pairs.iter().map(|pair| pair.shift.clone()).collect(),
            least: margin.width.millis_f64(),
        };
        Held {
            margin: margin.clone(),
            place: (!pairs.is_empty()).then(|| family.add(claim)),
            pairs,
        }
    };
    settings.margins.iter().map(held).collect()
}

/// A sentence for each margin.
pub(crate) fn findings(held: &[Held], judged: &Judged) -> Vec<Finding> {
    held.iter()
        .filter_map(|held| held.sentence(judged))
        .collect()
}

/// Every pair of endpoints that the margin covers.
fn pairs(groups: Vec<Compared>, margin: &Margin) -> Vec<Pair> {
    let mut found = Vec::new();
    for group in groups {
        let levels: Vec<_> = group
            .levels
            .iter()
            .filter(|(name, _)| margin.is_about(name))
            .collect();
        for (place, (name, medians)) in levels.iter().enumerate() {
            for (other, others) in &levels[place + 1..] {
                let shift = medians.shift_from(others);
                found.extend(shift.map(|shift| Pair {
                    group: group.title.clone(),
                    names: [name.clone(), other.clone()],
                    shift,
                }));
            }
        }
    }
    found
}

impl Held {
    fn sentence(&self, judged: &Judged) -> Option<Finding> {
        let Self {
            margin,
            pairs,
            place,
        } = self;
        let Some(place) = place else {
            return (margin.layer != Layer::Response).then(|| unseen(&margin.layer));
        };
        let judgement = judged.at(*place);
        let family = judgement.family;
        let reach = |pair: &&Pair| pair.reach(family);
        let widest = pairs.iter().max_by(|a, b| reach(a).total_cmp(&reach(b)))?;
        let is_shown = judgement.verdict == Verdict::Equivalent;
        let who = who(pairs);
        let width = millis(margin.width.millis_f64());
        let text = if is_shown {
            format!(
                "{who} are equivalent: no median{} differs from another one's by {width} or more. {}.",
                of_what(&margin.layer),
                farthest(widest, family)
            )
        } else {
            format!(
                "{who} are not shown to be equivalent within {width}{}. {}.",
                of_what(&margin.layer),
                farthest(widest, family)
            )
        };
        let topic = if is_shown {
            "equivalence"
        } else {
            "no_equivalence"
        };
        let within = |pair: &&Pair| reach(pair) < margin.width.millis_f64();
        let mut finding = Finding::new(FindingKind::Notable, topic, text);
        for name in names(pairs) {
            finding = finding.about(name);
        }
        let finding = finding
            .with("margin_ms", margin.width.millis_f64())
            .with("pairs", real(pairs.len()))
            .with(
                "equivalent_pairs",
                real(pairs.iter().filter(within).count()),
            )
            .with("shift_ms", widest.shift.estimate())
            .with("reach_ms", widest.reach(family))
            .with("p", judgement.p)
            .with("blocks", real(widest.shift.n()));
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

fn who(pairs: &[Pair]) -> String {
    match names(pairs).as_slice() {
        few if few.len() <= NAMED => few.join(", "),
        many => format!("The {}", plural(many.len(), "endpoint")),
    }
}

/// A comparison that the plan asks for and that has no data.
fn unseen(layer: &Layer) -> Finding {
    let text = format!(
        "Equivalence of the {} was not evaluated: no two endpoints have this layer in the same block. It needs kernel timestamps, some of which need root.",
        layer.name()
    );
    Finding::new(FindingKind::Notable, "no_equivalence", text)
}

/// The layer of the medians, if it is not the default one.
fn of_what(layer: &Layer) -> String {
    match layer {
        Layer::Response => String::new(),
        other => format!(" of the {}", other.name()),
    }
}

/// The pair with the largest possible difference.
fn farthest(pair: &Pair, family: usize) -> String {
    let [name, other] = &pair.names;
    let blocks = plural(pair.shift.n(), "block");
    let how_far = match pair.interval(family) {
        Some(interval) => format!(
            "differ by {} (95 % confidence interval {} to {}; {}; {blocks})",
            reported(pair.shift.estimate()),
            reported(interval.low),
            reported(interval.high),
            pair.group,
        ),
        None => format!(
            "differ by {}; a confidence interval needs {} blocks, and there are {blocks} ({})",
            reported(pair.shift.estimate()),
            blocks_needed(family),
            pair.group,
        ),
    };
    format!("The largest possible difference is between {name} and {other}: they {how_far}")
}
