//! Fleets of scenarios that differ in one parameter only, such as the season: path changes,
//! inflation and unfairness, an experiment's value each.
//!
//! The unit is the experiment, not the flow: flows of one experiment share the network's mood.

use std::collections::BTreeMap;

use neph_flows::{Measure, SeasonShift, Values, compare_seasons};
use neph_model::Scenario;
use neph_stats::{Shift, Verdict, Wanted, Yardstick, holm, verdict};

use super::compare::{ALPHA, blocks_needed, median};
use super::{Finding, FindingKind, plural, real};
use crate::axis::count;
use crate::data::{Factor, factors};
use crate::figure::groups;
use crate::{CampaignData, PlotSettings};

/// Path changes differ if by so much of the first level's.
const SHARE_OF_CHANGES: f64 = 0.05;
/// Inflation and unfairness differ if by 5 % of the latency that they are told in.
const SHARE_OF_LATENCY: f64 = 0.05;

/// An experiment's value in each block.
type ByBlock = BTreeMap<u32, f64>;

/// One measure of one level against the first level.
struct Compared {
    measure: Measure,
    shift: SeasonShift,
    least: f64,
    /// Whether both levels were measured in the same blocks.
    paired: bool,
}

/// One level against the first, to one endpoint.
struct Against<'a> {
    title: String,
    level: &'a str,
    first: &'a str,
    endpoint: String,
}

/// For each group of scenarios, a sentence for each level beside the first.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut shown = data.measured(settings);
    shown.retain(|index| {
        let mut all = data.experiments_of(*index, settings);
        all.any(|one| one.fleet.is_some())
    });
    let scenarios: Vec<&Scenario> = shown.iter().map(|index| &data.scenarios[*index]).collect();
    let mut found = Vec::new();
    for factor in factors(&scenarios) {
        // Two endpoints are two networks: their paths have nothing to do with each other.
        if factor == Factor::Endpoint {
            continue;
        }
        for group in groups(data, &shown, &factor) {
            let Some(((one, first), others)) = group.members.split_first() else {
                continue;
            };
            let names = endpoints(data, settings, *one);
            for (other, level) in others {
                for (endpoint, name) in names.iter().enumerate() {
                    // With one endpoint, the title names it already.
                    let title = match names.as_slice() {
                        [_] => group.title.clone(),
                        _ => format!("{}, {name}", group.title),
                    };
                    let against = Against {
                        title,
                        level,
                        first,
                        endpoint: name.clone(),
                    };
                    let values = |scenario: usize, measure: Measure| {
                        by_block(data, settings, scenario, (measure, endpoint))
                    };
                    let compared: Vec<Compared> = Measure::ALL
                        .into_iter()
                        .filter_map(|m| compare(m, &values(*one, m), &values(*other, m)))
                        .collect();
                    found.extend(sentence(&against, &compared));
                }
            }
        }
    }
    found
}

/// The names of those whom a scenario's fleets ask.
fn endpoints(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Vec<String> {
    let mut fleets = data
        .experiments_of(scenario, settings)
        .filter_map(|one| one.fleet.as_ref());
    let asked = fleets.next().map(|view| &view.fleet.endpoints);
    asked
        .into_iter()
        .flatten()
        .map(|one| one.name.clone())
        .collect()
}

fn by_block(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    (measure, endpoint): (Measure, usize),
) -> ByBlock {
    data.experiments_of(scenario, settings)
        .filter_map(|one| {
            let value = measure.of(one.fleet.as_ref()?, endpoint)?;
            Some((one.block(), value))
        })
        .collect()
}

/// Block by block where any block has both levels, else all of one against all of the other.
fn compare(measure: Measure, first: &ByBlock, other: &ByBlock) -> Option<Compared> {
    let both = first
        .iter()
        .filter_map(|(block, one)| Some((*one, *other.get(block)?)));
    let (mut ones, mut others): (Vec<f64>, Vec<f64>) = both.unzip();
    let paired = !ones.is_empty();
    if !paired {
        ones = first.values().copied().collect();
        others = other.values().copied().collect();
    }
    let least = match measure {
        Measure::Changes => SHARE_OF_CHANGES * median(&mut ones.clone())?,
        Measure::Inflation | Measure::Unfairness => SHARE_OF_LATENCY,
    };
    let values = if paired {
        Values::Paired(&ones, &others)
    } else {
        Values::Apart(&ones, &others)
    };
    Some(Compared {
        measure,
        shift: compare_seasons(values, least).ok()?,
        least,
        paired,
    })
}

/// What may be said of each after Holm's correction.
fn verdicts(compared: &[Compared]) -> Vec<Verdict> {
    let p_values: Vec<f64> = compared.iter().map(|one| one.shift.p).collect();
    let corrected = holm(&p_values).expect("a test's p values lie between 0 and 1");
    let judged = compared.iter().zip(corrected).map(|(one, p)| {
        let shift = Shift {
            estimate: one.shift.shift,
            interval: one.shift.interval,
        };
        let yardstick = Yardstick {
            minimum_effect: one.least,
            alpha: ALPHA,
            wanted: Wanted::Lower,
        };
        verdict(shift, p, yardstick).unwrap_or(Verdict::Inconclusive)
    });
    judged.collect()
}

fn sentence(against: &Against<'_>, compared: &[Compared]) -> Option<Finding> {
    let first = compared.first()?;
    let parts: Vec<String> = compared
        .iter()
        .zip(verdicts(compared))
        .map(|(one, verdict)| one.in_words(verdict))
        .collect();
    let text = format!(
        "{}: {} against {}: {}. {}.",
        against.title,
        against.level,
        against.first,
        parts.join("; "),
        first.evidence(compared.len())
    );
    let mut finding = Finding::new(FindingKind::StandsOut, "flows", text)
        .about(&against.endpoint)
        .about(against.level)
        .about(against.first)
        .with("experiments_first", real(first.shift.n.0))
        .with("experiments_other", real(first.shift.n.1));
    for one in compared {
        let key = one.key();
        finding = finding
            .with(&format!("{key}_shift"), one.shift.shift)
            .with(&format!("{key}_p"), one.shift.p);
    }
    Some(finding)
}

impl Compared {
    const fn key(&self) -> &'static str {
        match self.measure {
            Measure::Changes => "changes_per_flow_hour",
            Measure::Inflation => "inflation",
            Measure::Unfairness => "unfairness",
        }
    }

    /// A difference as a number; the two that are shares are told in hundredths.
    fn number(&self, difference: f64) -> String {
        match self.measure {
            Measure::Changes => format!("{difference:.2}"),
            Measure::Inflation | Measure::Unfairness => format!("{:.1}", difference * 100.0),
        }
    }

    /// A difference without its sign, with the measure's unit.
    fn size(&self, difference: f64) -> String {
        let unit = match self.measure {
            Measure::Changes => "",
            Measure::Inflation | Measure::Unfairness => " percentage points",
        };
        format!("{}{unit}", self.number(difference))
    }

    /// `latency inflation 12.0 percentage points higher (95 % interval 11.0 to 13.0): worse`.
    fn in_words(&self, verdict: Verdict) -> String {
        let SeasonShift {
            shift, interval, ..
        } = self.shift;
        let sign = if shift < 0.0 { -1.0 } else { 1.0 };
        let way = match shift {
            0.0 => "no different".to_owned(),
            shift if shift > 0.0 => format!("{} higher", self.size(shift)),
            shift => format!("{} lower", self.size(-shift)),
        };
        let interval = interval.map_or_else(String::new, |interval| {
            let (low, high) = if sign < 0.0 {
                (-interval.high, -interval.low)
            } else {
                (interval.low, interval.high)
            };
            let (low, high) = (self.number(low), self.number(high));
            format!(" (95 % interval {low} to {high})")
        });
        let judged = match verdict {
            Verdict::Better => "better".to_owned(),
            Verdict::Worse => "worse".to_owned(),
            Verdict::Equivalent => {
                format!("equivalent, as {} would matter", self.size(self.least))
            }
            Verdict::Inconclusive => "undecided".to_owned(),
        };
        format!("{} {way}{interval}: {judged}", self.measure.name())
    }

    /// What all of it rests on; `together` are judged.
    fn evidence(&self, together: usize) -> String {
        let (first, other) = self.shift.n;
        if !self.paired {
            let of = |n: usize| plural(n, "experiment");
            return format!(
                "{} against {}, of different blocks",
                of(other),
                count(first)
            );
        }
        let counted = format!("An experiment of each in {}", plural(first, "block"));
        match blocks_needed(together) {
            needed if first < needed => {
                format!("{counted}, too few to tell this from chance; it takes {needed}")
            }
            _ => counted,
        }
    }
}
