//! What the transfers of a design show.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::Wall;
use neph_stats::{
    Claim, ConfidenceInterval, Decision, PairedShift, PowerTarget, Sorted, Verdict, Wanted,
    blocks_for, blocks_needed, decide,
};

use super::WITH_PREFIX;

/// How much of two transfers has to be at the same time.
const MIN_OVERLAP: f64 = 0.8;
/// The least goodput, bit/s: a transfer that carried nothing has a share all the same.
const MIN_GOODPUT_BIT_S: f64 = 1.0;
/// The chance with which the blocks that are named show a difference.
const POWER: f64 = 0.8;
/// More blocks than that are not named.
const MAX_BLOCKS: usize = 1000;

/// A transfer that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferReading {
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
    pub goodput_bit_s: f64,
}

/// What a circuit gets while another one is measured, as a share of what it gets alone.
#[derive(Clone, Debug, PartialEq)]
pub struct GoodputShare {
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
    pub alone_bit_s: f64,
}

/// Whether two circuits disturb each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterferenceVerdict {
    /// One or both are shown to get less than the margin allows.
    Interferes,
    /// Both are shown to get as much as alone, within the margin.
    Independent,
    /// Neither is shown.
    Unknown {
        /// How many more blocks would show it, as far as known.
        more_blocks: Option<usize>,
    },
}

/// What is known of two circuits.
#[derive(Clone, Debug, PartialEq)]
pub struct PairFinding {
    /// Of each circuit.
    pub shares: [GoodputShare; 2],
    /// Whether they disturb each other.
    pub verdict: InterferenceVerdict,
}

/// Readings of one circuit in one network, by block.
type Blocks<'a> = BTreeMap<u32, &'a TransferReading>;

/// The logarithms of the shares of one circuit, and what it gets alone.
struct Side {
    circuit: String,
    logs: Vec<f64>,
    alone_bit_s: f64,
}

/// Whether the circuits of each pair disturb each other, all pairs judged together. A circuit is disturbed
/// where its share is shown to be below 1 - `margin`, and not disturbed where it is shown to be within the
/// margin. A block counts for a pair if both transfers were at the same time.
pub fn evaluate_pairs(readings: &[TransferReading], margin: f64) -> Vec<PairFinding> {
    let mut blocks_by_setup: BTreeMap<(&str, &str), Blocks<'_>> = BTreeMap::new();
    for reading in readings {
        let key = (reading.circuit.as_str(), reading.network.as_str());
        blocks_by_setup
            .entry(key)
            .or_default()
            .insert(reading.block, reading);
    }
    let min_shift = -(1.0 - margin).ln();
    let sides: Vec<[Side; 2]> = pairs(readings)
        .into_iter()
        .map(|(first, second)| {
            [
                side(&blocks_by_setup, first, second),
                side(&blocks_by_setup, second, first),
            ]
        })
        .collect();
    let claims = sides
        .iter()
        .flatten()
        .filter_map(|side| claim(side, min_shift));
    let mut decisions = decide(&claims.collect::<Vec<_>>()).into_iter();
    let claim_count = decisions.len();
    let mut pair_finding = |sides: [Side; 2]| {
        let outcomes = sides.each_ref().map(|side| {
            let shift = PairedShift::of_differences(side.logs.clone()).ok()?;
            Some((shift, decisions.next()?))
        });
        PairFinding {
            verdict: pair_verdict(&sides, &outcomes, min_shift, claim_count),
            shares: goodput_shares(sides, outcomes),
        }
    };
    sides.into_iter().map(&mut pair_finding).collect()
}

/// Each pair once, by name: readings come in random order.
fn pairs(readings: &[TransferReading]) -> BTreeSet<(&str, &str)> {
    let alongside = readings.iter();
    let alongside = alongside.filter_map(|reading| {
        let other_circuit = reading.network.strip_prefix(WITH_PREFIX)?;
        Some((&*reading.circuit, other_circuit))
    });
    alongside
        .map(|(first, second)| (first.min(second), first.max(second)))
        .collect()
}

fn side(blocks_by_setup: &BTreeMap<(&str, &str), Blocks<'_>>, circuit: &str, other: &str) -> Side {
    let network = format!("{WITH_PREFIX}{other}");
    let other_network = format!("{WITH_PREFIX}{circuit}");
    let readings_alone = blocks_by_setup.get(&(circuit, super::ALONE_NETWORK));
    let circuit_readings = blocks_by_setup.get(&(circuit, network.as_str()));
    let other_readings = blocks_by_setup.get(&(other, other_network.as_str()));
    let mut logs = Vec::new();
    for (block, reading) in circuit_readings.into_iter().flatten() {
        let alongside = other_readings.and_then(|other_readings| other_readings.get(block));
        let alone_reading = readings_alone.and_then(|readings| readings.get(block));
        if let (Some(alongside), Some(alone_reading)) = (alongside, alone_reading)
            && are_concurrent(reading, alongside)
        {
            let goodput = reading.goodput_bit_s.max(MIN_GOODPUT_BIT_S);
            let alone_goodput = alone_reading.goodput_bit_s.max(MIN_GOODPUT_BIT_S);
            logs.push((goodput / alone_goodput).ln());
        }
    }
    let mut levels: Vec<f64> = readings_alone
        .into_iter()
        .flat_map(BTreeMap::values)
        .map(|reading| reading.goodput_bit_s)
        .collect();
    let sorted = Sorted::sort(&mut levels).ok();
    let median = sorted.and_then(|sorted| neph_stats::median(sorted, 0).ok()?.number());
    Side {
        circuit: circuit.to_owned(),
        logs,
        alone_bit_s: median.unwrap_or(0.0),
    }
}

/// Whether two transfers were at the same time for most of the longer one.
fn are_concurrent(reading: &TransferReading, other: &TransferReading) -> bool {
    let length_s = |from: Wall, until: Wall| {
        let nanos = until.unix_nanos().saturating_sub(from.unix_nanos()).max(0);
        std::time::Duration::from_nanos(nanos.unsigned_abs()).as_secs_f64()
    };
    let overlap = length_s(reading.from.max(other.from), reading.until.min(other.until));
    let longer = length_s(reading.from, reading.until).max(length_s(other.from, other.until));
    overlap > 0.0 && overlap >= MIN_OVERLAP * longer
}

fn claim(side: &Side, min_shift: f64) -> Option<Claim> {
    let shift = PairedShift::of_differences(side.logs.clone()).ok()?;
    Some(Claim::Shift {
        shift,
        margin: min_shift,
        wanted: Wanted::Higher,
    })
}

type ShiftDecision = Option<(PairedShift, Decision)>;

fn goodput_shares(sides: [Side; 2], decisions: [ShiftDecision; 2]) -> [GoodputShare; 2] {
    let mut decisions = decisions.into_iter();
    sides.map(|side| {
        let decision = decisions.next().flatten();
        let from_logarithms = |interval: ConfidenceInterval| ConfidenceInterval {
            low: interval.low.exp(),
            high: interval.high.exp(),
        };
        GoodputShare {
            circuit: side.circuit,
            blocks: side.logs.len(),
            estimate: decision.as_ref().map(|(shift, _)| shift.estimate().exp()),
            interval: decision
                .and_then(|(_, decision)| decision.interval)
                .map(from_logarithms),
            alone_bit_s: side.alone_bit_s,
        }
    })
}

fn pair_verdict(
    sides: &[Side; 2],
    decisions: &[ShiftDecision; 2],
    min_shift: f64,
    claim_count: usize,
) -> InterferenceVerdict {
    let verdicts = decisions
        .each_ref()
        .map(|entry| entry.as_ref().map(|(_, decision)| decision.verdict));
    if verdicts.contains(&Some(Verdict::Worse)) {
        return InterferenceVerdict::Interferes;
    }
    let is_shown =
        |verdict: &Option<Verdict>| matches!(verdict, Some(Verdict::Equivalent | Verdict::Better));
    if verdicts.iter().all(is_shown) {
        return InterferenceVerdict::Independent;
    }
    let undecided = sides.iter().zip(decisions).zip(&verdicts);
    let undecided = undecided.filter(|(_, verdict)| !is_shown(verdict));
    let estimates: Vec<(bool, Option<usize>)> = undecided
        .map(|((side, decision), _)| {
            let estimate = decision.as_ref().map_or(0.0, |(shift, _)| shift.estimate());
            (
                estimate < -min_shift,
                more_blocks(side, estimate, min_shift, claim_count),
            )
        })
        .collect();
    let disturbed = estimates.iter().filter(|(is_disturbed, _)| *is_disturbed);
    let disturbed = disturbed.filter_map(|(_, more_blocks)| *more_blocks).min();
    // To show that nothing is disturbed takes both, to show that something is takes one.
    let block_counts = estimates.iter().map(|(_, more_blocks)| *more_blocks);
    let more_blocks =
        disturbed.or_else(|| block_counts.collect::<Option<Vec<_>>>()?.into_iter().max());
    InterferenceVerdict::Unknown { more_blocks }
}

/// How many more blocks are likely to show on which side of the margin the share is.
fn more_blocks(side: &Side, estimate: f64, min_shift: f64, claim_count: usize) -> Option<usize> {
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
        return Some(
            blocks_needed(claim_count)
                .saturating_sub(side.logs.len())
                .max(1),
        );
    }
    let beyond = (estimate.abs() - min_shift).abs();
    let target = PowerTarget {
        effect: min_shift + beyond,
        margin: min_shift,
        spread: standard_deviation(&side.logs) / f64::sqrt(2.0),
        family: claim_count,
        power: POWER,
    };
    let needed = blocks_for(&target).filter(|needed| *needed <= MAX_BLOCKS)?;
    Some(needed.saturating_sub(side.logs.len()).max(1))
}

/// The standard deviation; a small one where there are too few values for it.
fn standard_deviation(values: &[f64]) -> f64 {
    const DEFAULT_DEVIATION: f64 = 0.05;
    let mut count = 0.0;
    let mut sum = 0.0;
    for value in values {
        count += 1.0;
        sum += value;
    }
    if count < 2.0 {
        return DEFAULT_DEVIATION;
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
        .filter(|finding| finding.verdict == InterferenceVerdict::Interferes)
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
            let has_common_circuit = !known.is_disjoint(&group);
            if has_common_circuit {
                group.extend(known);
            }
            !has_common_circuit
        });
        groups.push(group);
    }
    let mut links = Vec::new();
    for group in groups {
        let group_pairs = interfering.iter().filter(|pair| group.contains(pair[0]));
        let group_pairs: Vec<&[&str; 2]> = group_pairs.collect();
        let pair_count = group.len() * (group.len() - 1) / 2;
        if group_pairs.len() == pair_count {
            links.push(group.into_iter().map(str::to_owned).collect());
        } else {
            links.extend(
                group_pairs
                    .iter()
                    .map(|pair| pair.map(str::to_owned).to_vec()),
            );
        }
    }
    links
}
