//! What the transfers of a design show.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::Wall;
use neph_stats::{
    Claim, ConfidenceInterval, Decision, PairedShift, PowerTarget, Sorted, Verdict, Wanted,
    blocks_for, blocks_needed, decide,
};

use super::WITH;

/// How much of two transfers has to be at the same time.
const OVERLAP: f64 = 0.8;
/// The least goodput, bit/s: a transfer that carried nothing has a share all the same.
const MINIMUM: f64 = 1.0;
/// The chance with which the blocks that are named show a difference.
const POWER: f64 = 0.8;
/// More blocks than that are not named.
const MAX_BLOCKS: usize = 1000;

/// A transfer that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The circuit, as the design names it.
    pub circuit: String,
    /// Its network: alone, or with which other circuit.
    pub network: String,
    /// The block.
    pub block: u32,
    /// When it was.
    pub from: Wall,
    /// Until when.
    pub until: Wall,
    /// Goodput, bit/s.
    pub goodput: f64,
}

/// What a circuit gets while another one is measured, as a share of what it gets alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The circuit.
    pub circuit: String,
    /// Blocks that count.
    pub blocks: usize,
    /// The centre (Hodges-Lehmann, of the logarithms); absent without any block.
    pub estimate: Option<f64>,
    /// A simultaneous 95 % confidence interval, together with all others of the answer; `None` with too few
    /// blocks.
    pub interval: Option<ConfidenceInterval>,
    /// The median goodput alone, bit/s.
    pub alone: f64,
}

/// Whether two circuits disturb each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One or both are shown to get less than the margin allows.
    Interferes,
    /// Both are shown to get as much as alone, within the margin.
    Independent,
    /// Neither is shown.
    Unknown {
        /// How many more blocks would show it, as far as known.
        more: Option<usize>,
    },
}

/// What is known of two circuits.
#[derive(Clone, Debug, PartialEq)]
pub struct PairFinding {
    /// Of each circuit.
    pub shares: [Share; 2],
    /// Whether they disturb each other.
    pub answer: Answer,
}

/// Readings of one circuit in one network, by block.
type Blocks<'a> = BTreeMap<u32, &'a Reading>;

/// The logarithms of the shares of one circuit, and what it gets alone.
struct Side {
    circuit: String,
    logs: Vec<f64>,
    alone: f64,
}

/// Whether the circuits of each pair disturb each other, all pairs judged together. A circuit is disturbed
/// where its share is shown to be below 1 - `margin`, and not disturbed where it is shown to be within the
/// margin. A block counts for a pair if both transfers were at the same time.
pub fn evaluate_pairs(readings: &[Reading], margin: f64) -> Vec<PairFinding> {
    let mut of: BTreeMap<(&str, &str), Blocks<'_>> = BTreeMap::new();
    for reading in readings {
        let key = (reading.circuit.as_str(), reading.network.as_str());
        of.entry(key).or_default().insert(reading.block, reading);
    }
    let min_shift = -(1.0 - margin).ln();
    let sides: Vec<[Side; 2]> = pairs(readings)
        .into_iter()
        .map(|(a, b)| [side(&of, a, b), side(&of, b, a)])
        .collect();
    let claims = sides
        .iter()
        .flatten()
        .filter_map(|side| claim(side, min_shift));
    let mut decisions = decide(&claims.collect::<Vec<_>>()).into_iter();
    let family = decisions.len();
    let mut finding = |sides: [Side; 2]| {
        let outcomes = sides.each_ref().map(|side| {
            let shift = PairedShift::of_differences(side.logs.clone()).ok()?;
            Some((shift, decisions.next()?))
        });
        PairFinding {
            answer: answer(&sides, &outcomes, min_shift, family),
            shares: share_each(sides, outcomes),
        }
    };
    sides.into_iter().map(&mut finding).collect()
}

/// Each pair once, by name: readings come in random order.
fn pairs(readings: &[Reading]) -> BTreeSet<(&str, &str)> {
    let alongside = readings.iter();
    let alongside = alongside
        .filter_map(|reading| Some((&*reading.circuit, reading.network.strip_prefix(WITH)?)));
    alongside.map(|(a, b)| (a.min(b), a.max(b))).collect()
}

fn side(blocks_by_setup: &BTreeMap<(&str, &str), Blocks<'_>>, circuit: &str, other: &str) -> Side {
    let (with, back) = (format!("{WITH}{other}"), format!("{WITH}{circuit}"));
    let readings_alone = blocks_by_setup.get(&(circuit, super::ALONE));
    let circuit_readings = blocks_by_setup.get(&(circuit, with.as_str()));
    let other_readings = blocks_by_setup.get(&(other, back.as_str()));
    let mut logs = Vec::new();
    for (block, reading) in circuit_readings.into_iter().flatten() {
        let alongside = other_readings.and_then(|other_readings| other_readings.get(block));
        let alone_reading = readings_alone.and_then(|readings| readings.get(block));
        if let (Some(alongside), Some(alone_reading)) = (alongside, alone_reading)
            && are_together(reading, alongside)
        {
            logs.push((reading.goodput.max(MINIMUM) / alone_reading.goodput.max(MINIMUM)).ln());
        }
    }
    let mut levels: Vec<f64> = readings_alone
        .into_iter()
        .flat_map(BTreeMap::values)
        .map(|reading| reading.goodput)
        .collect();
    let sorted = Sorted::sort(&mut levels).ok();
    let median = sorted.and_then(|sorted| neph_stats::median(sorted, 0).ok()?.number());
    Side {
        circuit: circuit.to_owned(),
        logs,
        alone: median.unwrap_or(0.0),
    }
}

/// Whether two transfers were at the same time for most of the longer one.
fn are_together(reading: &Reading, other: &Reading) -> bool {
    let length = |from: Wall, until: Wall| {
        let nanos = until.unix_nanos().saturating_sub(from.unix_nanos()).max(0);
        std::time::Duration::from_nanos(nanos.unsigned_abs()).as_secs_f64()
    };
    let overlap = length(reading.from.max(other.from), reading.until.min(other.until));
    let longer = length(reading.from, reading.until).max(length(other.from, other.until));
    overlap > 0.0 && overlap >= OVERLAP * longer
}

fn claim(side: &Side, min_shift: f64) -> Option<Claim> {
    let shift = PairedShift::of_differences(side.logs.clone()).ok()?;
    Some(Claim::Shift {
        shift,
        margin: min_shift,
        wanted: Wanted::Higher,
    })
}

type JudgedShift = Option<(PairedShift, Decision)>;

fn share_each(sides: [Side; 2], decisions: [JudgedShift; 2]) -> [Share; 2] {
    let mut decisions = decisions.into_iter();
    sides.map(|side| {
        let decision = decisions.next().flatten();
        let exp = |interval: ConfidenceInterval| ConfidenceInterval {
            low: interval.low.exp(),
            high: interval.high.exp(),
        };
        Share {
            circuit: side.circuit,
            blocks: side.logs.len(),
            estimate: decision.as_ref().map(|(shift, _)| shift.estimate().exp()),
            interval: decision
                .and_then(|(_, decision)| decision.interval)
                .map(exp),
            alone: side.alone,
        }
    })
}

fn answer(
    sides: &[Side; 2],
    decisions: &[JudgedShift; 2],
    min_shift: f64,
    family: usize,
) -> Answer {
    let verdicts = decisions
        .each_ref()
        .map(|entry| entry.as_ref().map(|(_, decision)| decision.verdict));
    if verdicts.contains(&Some(Verdict::Worse)) {
        return Answer::Interferes;
    }
    let is_shown =
        |verdict: &Option<Verdict>| matches!(verdict, Some(Verdict::Equivalent | Verdict::Better));
    if verdicts.iter().all(is_shown) {
        return Answer::Independent;
    }
    let open = sides.iter().zip(decisions).zip(&verdicts);
    let open = open.filter(|(_, verdict)| !is_shown(verdict));
    let wished: Vec<(bool, Option<usize>)> = open
        .map(|((side, decision), _)| {
            let estimate = decision.as_ref().map_or(0.0, |(shift, _)| shift.estimate());
            (
                estimate < -min_shift,
                more(side, estimate, min_shift, family),
            )
        })
        .collect();
    let disturbed = wished.iter().filter(|(is_disturbed, _)| *is_disturbed);
    let disturbed = disturbed.filter_map(|(_, more)| *more).min();
    // To show that nothing is disturbed takes both, to show that something is takes one.
    let extra = wished.iter().map(|(_, more)| *more);
    let more = disturbed.or_else(|| extra.collect::<Option<Vec<_>>>()?.into_iter().max());
    Answer::Unknown { more }
}

/// How many more blocks are likely to show on which side of the margin the share is.
fn more(side: &Side, estimate: f64, min_shift: f64, family: usize) -> Option<usize> {
    let is_disturbed = estimate < -min_shift;
    let is_shown = |log: &f64| {
        if is_disturbed {
            *log < -min_shift
        } else {
            log.abs() < min_shift
        }
    };
    if side.logs.iter().all(is_shown) {
        // The fewest that can decide, if what comes is as what was.
        return Some(blocks_needed(family).saturating_sub(side.logs.len()).max(1));
    }
    let beyond = (estimate.abs() - min_shift).abs();
    let target = PowerTarget {
        effect: min_shift + beyond,
        margin: min_shift,
        spread: deviation(&side.logs) / f64::sqrt(2.0),
        family,
        power: POWER,
    };
    let needed = blocks_for(&target).filter(|needed| *needed <= MAX_BLOCKS)?;
    Some(needed.saturating_sub(side.logs.len()).max(1))
}

/// The standard deviation; a small one where there are too few values for it.
fn deviation(values: &[f64]) -> f64 {
    const UNKNOWN: f64 = 0.05;
    let mut count = 0.0;
    let mut sum = 0.0;
    for value in values {
        count += 1.0;
        sum += value;
    }
    if count < 2.0 {
        return UNKNOWN;
    }
    let mean = sum / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt().max(1e-6)
}

/// The circuits of each link that has to be declared: all that disturb each other, each with each, on one
/// link; else a link for each pair.
pub fn shared_links(findings: &[PairFinding]) -> Vec<Vec<String>> {
    let interfering: Vec<[&str; 2]> = findings
        .iter()
        .filter(|finding| finding.answer == Answer::Interferes)
        .map(|finding| {
            finding
                .shares
                .each_ref()
                .map(|share| share.circuit.as_str())
        })
        .collect();
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for pair in &interfering {
        let mut group: BTreeSet<&str> = pair.iter().copied().collect();
        groups.retain(|known| {
            let meets = !known.is_disjoint(&group);
            if meets {
                group.extend(known);
            }
            !meets
        });
        groups.push(group);
    }
    let mut links = Vec::new();
    for group in groups {
        let inside = interfering.iter().filter(|pair| group.contains(pair[0]));
        let inside: Vec<&[&str; 2]> = inside.collect();
        let pair_count = group.len() * (group.len() - 1) / 2;
        if inside.len() == pair_count {
            links.push(group.into_iter().map(str::to_owned).collect());
        } else {
            links.extend(inside.iter().map(|pair| pair.map(str::to_owned).to_vec()));
        }
    }
    links
}
