//! Fleets of scenarios that differ in one parameter only, such as the season: path changes,
//! inflation and unfairness, an experiment's value each.
//!
//! The unit is the experiment, not the flow: flows of one experiment share the network's mood.

use std::collections::BTreeMap;

use neph_flows::{FleetView, Measure, NoValue, PairView, SeasonShift, Values, compare_seasons};
use neph_model::{Scenario, Span};
use neph_stats::{Level, Shift, Verdict, Wanted, Yardstick, holm, verdict};

use super::compare::{ALPHA, blocks_needed, median};
use super::{Finding, FindingKind, plural, real};
use crate::axis::{count, percent};
use crate::data::{Factor, factors};
use crate::figure::groups;
use crate::{CampaignData, PlotSettings};

/// Path changes differ if by so much of the first level's.
const SHARE_OF_CHANGES: f64 = 0.05;
/// Inflation and unfairness differ if by 5 % of the latency that they are told in.
const SHARE_OF_LATENCY: f64 = 0.05;

/// An experiment's value in each block.
type ByBlock = BTreeMap<u32, Level>;

/// One measure of one level against the first level.
struct Compared {
    measure: Measure,
    shift: SeasonShift,
    least: f64,
    /// Whether both levels were measured in the same blocks.
    paired: bool,
}

/// One level against the first, to one endpoint.
struct Against {
    title: String,
    level: String,
    first: String,
    endpoint: String,
    compared: Vec<Compared>,
    /// Sentences about what could not be compared, or only in part.
    limits: Vec<String>,
}

/// For each group of scenarios, a sentence for each level beside the first. All comparisons are
/// told together, so they are one family to Holm.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let all = compared(data, settings);
    let family: Vec<&Compared> = all.iter().flat_map(|one| &one.compared).collect();
    let mut verdicts = verdicts(&family).into_iter();
    let together = family.len();
    all.iter()
        .filter_map(|against| {
            let own: Vec<Verdict> = verdicts.by_ref().take(against.compared.len()).collect();
            against.sentence(&own, together)
        })
        .collect()
}

fn compared(data: &CampaignData, settings: &PlotSettings) -> Vec<Against> {
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
            let Some((first, others)) = group.members.split_first() else {
                continue;
            };
            let names = endpoints(data, settings, first.0);
            for other in others {
                for (endpoint, name) in names.iter().enumerate() {
                    // With one endpoint, the title names it already.
                    let title = match names.as_slice() {
                        [_] => group.title.clone(),
                        _ => format!("{}, {name}", group.title),
                    };
                    let sides = [first, other].map(|(scenario, level)| Side {
                        level,
                        fleets: fleets(data, settings, *scenario),
                        endpoint,
                    });
                    found.push(Against::of(title, name, &sides));
                }
            }
        }
    }
    found
}

/// A level's fleets, of which one endpoint is looked at.
struct Side<'a> {
    level: &'a str,
    /// By block.
    fleets: Vec<(u32, &'a FleetView)>,
    endpoint: usize,
}

impl Side<'_> {
    fn by_block(&self, measure: Measure) -> ByBlock {
        let value = |(block, view): &(u32, &FleetView)| {
            Some((*block, measure.of(view, self.endpoint).ok()?))
        };
        self.fleets.iter().filter_map(value).collect()
    }

    /// The share of the flows' time in which a queue hid path changes.
    fn hidden(&self) -> f64 {
        let pairs = || {
            let views = self.fleets.iter();
            views.filter_map(|(_, view)| view.pairs.get(self.endpoint))
        };
        let time = |of: fn(&PairView) -> Span| pairs().map(of).sum::<Span>().secs_f64();
        time(|pair| pair.hidden.time) / time(|pair| pair.watched).max(1e-9)
    }

    /// How many flows unfairness takes, where no experiment has as many.
    fn too_few_flows(&self) -> Option<usize> {
        let mut why =
            self.fleets.iter().map(
                |(_, view)| match Measure::Unfairness.of(view, self.endpoint) {
                    Err(NoValue::TooFewFlows { needs }) => Some(needs),
                    _ => None,
                },
            );
        let first = why.next()??;
        why.all(|one| one.is_some()).then_some(first)
    }
}

impl Against {
    fn of(title: String, endpoint: &str, [first, other]: &[Side<'_>; 2]) -> Self {
        let compared = Measure::ALL
            .into_iter()
            .filter_map(|m| compare(m, &first.by_block(m), &other.by_block(m)));
        Self {
            title,
            level: other.level.to_owned(),
            first: first.level.to_owned(),
            endpoint: endpoint.to_owned(),
            compared: compared.collect(),
            limits: limits(first, other),
        }
    }
}

/// A difference below this in what queues hid is not worth a sentence.
const HARDLY: f64 = 0.01;

fn limits(first: &Side<'_>, other: &Side<'_>) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(needs) = first.too_few_flows().or_else(|| other.too_few_flows()) {
        limits.push(format!(
            "Unfairness is not compared: p95 takes {needs} flows"
        ));
    }
    let hidden = (first.hidden(), other.hidden());
    if hidden.0.max(hidden.1) >= HARDLY {
        limits.push(format!(
            "Queues that all flows shared hid path changes for {} of the time in {} and {} in {}; the rates are of the rest",
            percent(hidden.1),
            other.level,
            percent(hidden.0),
            first.level
        ));
    }
    limits
}

fn fleets<'a>(
    data: &'a CampaignData,
    settings: &'a PlotSettings,
    scenario: usize,
) -> Vec<(u32, &'a FleetView)> {
    data.experiments_of(scenario, settings)
        .filter_map(|one| Some((one.block(), one.fleet.as_ref()?)))
        .collect()
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

/// Block by block where any block has both levels, else all of one against all of the other.
fn compare(measure: Measure, first: &ByBlock, other: &ByBlock) -> Option<Compared> {
    let both = first
        .iter()
        .filter_map(|(block, one)| Some((*one, *other.get(block)?)));
    let both: Vec<(Level, Level)> = both.collect();
    let paired = !both.is_empty();
    let mut ones: Vec<Level> = both.iter().map(|(one, _)| *one).collect();
    let others: Vec<Level> = other.values().copied().collect();
    if !paired {
        ones = first.values().copied().collect();
    }
    let least = match measure {
        Measure::Changes => {
            let mut known: Vec<f64> = ones.iter().filter_map(|one| one.number()).collect();
            SHARE_OF_CHANGES * median(&mut known)?
        }
        Measure::Inflation | Measure::Unfairness => SHARE_OF_LATENCY,
    };
    let values = if paired {
        Values::Paired(&both)
    } else {
        Values::Apart(&ones, &others)
    };
    Some(Compared {
        measure,
        shift: compare_seasons(values).ok()?,
        least,
        paired,
    })
}

/// What may be said of each after Holm's correction.
fn verdicts(compared: &[&Compared]) -> Vec<Verdict> {
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

impl Against {
    /// `together`: how many comparisons are judged at once.
    fn sentence(&self, verdicts: &[Verdict], together: usize) -> Option<Finding> {
        let first = self.compared.first()?;
        let parts: Vec<String> = self
            .compared
            .iter()
            .zip(verdicts)
            .map(|(one, verdict)| one.in_words(*verdict))
            .collect();
        let mut text = format!(
            "{}: {} against {}: {}. {}.",
            self.title,
            self.level,
            self.first,
            parts.join("; "),
            first.evidence(together)
        );
        for limit in &self.limits {
            text.push_str(&format!(" {limit}."));
        }
        let mut finding = Finding::new(FindingKind::StandsOut, "flows", text)
            .about(&self.endpoint)
            .about(&self.level)
            .about(&self.first)
            .with("experiments_first", real(first.shift.n.0))
            .with("experiments_other", real(first.shift.n.1))
            .with("comparisons_together", real(together));
        for one in &self.compared {
            let key = one.key();
            finding = finding
                .with(&format!("{key}_shift"), one.shift.shift)
                .with(&format!("{key}_p"), one.shift.p);
        }
        Some(finding)
    }
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
            _ if difference.is_infinite() => "∞".to_owned(),
            Measure::Changes => format!("{difference:.2}"),
            Measure::Inflation | Measure::Unfairness => format!("{:.1}", difference * 100.0),
        }
    }

    /// A difference without its sign, with the measure's unit.
    fn size(&self, difference: f64) -> String {
        if difference.is_infinite() {
            return "immeasurably".to_owned();
        }
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
