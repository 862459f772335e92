//! `neph load --levels` and `--find-knee`: runs of several numbers of workers, in random order within blocks.

use std::io::Write;

use neph_analysis::queueing::fit::LEVELS_NEEDED;
use neph_analysis::queueing::level::Level;
use neph_analysis::queueing::levels::analyse;
use neph_documents::Format;
use neph_documents::load::{
    LevelRow, LevelRun, LevelsDocument, LevelsInput, RunRow, levels_text, run_line,
};
use neph_documents::rows::{self, RowWriter};
use neph_load::workload::{
    Demand, GeneratorLimit, Tally, Workers, WorkloadSecond, WorkloadSpec, generate,
};
use neph_model::{Span, Stop, TimeDistribution};
use neph_stats::{Random, warmup_length};

use crate::exit::{Failure, Outcome};
use crate::output;

/// Minimum duration of a run.
pub(super) const MIN_DURATION: Span = Span::from_secs(1);
/// Intervals of a run, from which the end of the warm-up is found.
const INTERVALS: i64 = 60;
/// A rate that grows less than this when the workers are doubled has reached its plateau.
const PLATEAU_GAIN: f64 = 1.03;
/// Levels of `--find-knee`, as multiples of the knee that the pilot runs found.
const KNEE_MULTIPLES: [f64; 8] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0];

/// What to run.
#[derive(Debug)]
pub(super) struct LevelsPlan<'a> {
    /// Numbers of workers, ascending; empty to find them.
    pub(super) levels: Vec<u32>,
    pub(super) blocks: u32,
    pub(super) spec: &'a WorkloadSpec,
    pub(super) workers: Workers,
    pub(super) url: &'a str,
    pub(super) format: Format,
}

/// Numbers of workers, ascending. A type of its own, because clap takes a list for a repeated option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels(pub(super) Vec<u32>);

/// Levels as `1,2,4`: ascending, without repetition.
pub(super) fn parse_levels(text: &str) -> Result<Levels, String> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    let mut levels = numbers.unwrap_or_default();
    levels.sort_unstable();
    levels.dedup();
    let is_valid = levels.first().is_some_and(|first| *first > 0);
    if !is_valid || levels.last().is_some_and(|last| *last > Workers::MAX) {
        return Err("write numbers of workers from 1 to 100000, with commas: 1,2,4,8".to_owned());
    }
    Ok(Levels(levels))
}

impl LevelsPlan<'_> {
    /// Runs all levels; keeps complete blocks after ctrl-C.
    pub(super) fn run(mut self, stop: &Stop) -> Result<Outcome, Failure> {
        output::check_open()?;
        if self.levels.is_empty() {
            self.levels = self.find_levels(stop)?;
        }
        let mut runs: Vec<LevelRun> = Vec::new();
        let mut complete = 0;
        let mut random = Random::new(self.spec.seed);
        while complete < self.blocks && !stop.is_set() {
            let mut order = self.levels.clone();
            for index in (1..order.len()).rev() {
                order.swap(index, random.below(index + 1));
            }
            let mut block = Vec::new();
            for workers in order {
                block.push(self.run_level(complete, workers, stop)?);
                if stop.is_set() {
                    break;
                }
            }
            if !stop.is_set() {
                complete += 1;
                block.sort_by_key(|run| run.workers);
                runs.extend(block);
            }
        }
        self.write(complete, &runs)?;
        let has_responses = runs.iter().any(|run| run.tally.successes() > 0);
        Ok(match has_responses {
            _ if stop.is_set() => Outcome::Interrupted,
            true => Outcome::Done,
            false => Outcome::Nothing,
        })
    }

    /// Doubles the workers until the rate stays the same, and places the levels around the knee.
    fn find_levels(&self, stop: &Stop) -> Result<Vec<u32>, Failure> {
        let mut workers = 1;
        let mut pilots: Vec<Level> = Vec::new();
        loop {
            let run = self.run_level(0, workers, stop)?;
            let level = run.level(&self.workers.think);
            let before = pilots.last().map_or(0.0, |before| before.rate);
            pilots.push(level);
            let is_plateau = level.rate < before * PLATEAU_GAIN;
            if stop.is_set() || is_plateau || level.rate <= 0.0 || workers > Workers::MAX / 2 {
                break;
            }
            workers *= 2;
        }
        let capacity = pilots.iter().map(|level| level.rate).fold(0.0, f64::max);
        let cycle = pilots
            .first()
            .map_or(0.0, |first| first.response + first.think);
        Ok(levels_around(capacity * cycle))
    }

    /// One run of one level.
    fn run_level(&self, block: u32, workers: u32, stop: &Stop) -> Result<LevelRun, Failure> {
        let duration = self.spec.duration;
        let spec = WorkloadSpec {
            demand: Demand::Closed(Workers {
                count: workers,
                ..self.workers.clone()
            }),
            // Other draws in each block.
            seed: self.spec.seed.wrapping_add(u64::from(block)),
            // A request that is overdue must end within the run.
            timeout: self
                .spec
                .timeout
                .min(Span::from_nanos(duration.nanos() / 2)),
            interval: Span::from_nanos((duration.nanos() / INTERVALS).max(1)),
            threads: self.spec.threads.min(workers),
            ..self.spec.clone()
        };
        let mut intervals: Vec<WorkloadSecond> = Vec::new();
        let measured = generate(&spec, stop, &mut |interval| {
            intervals.push(interval.clone());
        });
        let measured = measured.map_err(Failure::refused)?;
        let validity = &measured.validity;
        intervals.truncate(usize::try_from(INTERVALS).unwrap_or(usize::MAX));
        let run = LevelRun {
            block,
            workers,
            // A busy generator without think times is never late: its own capacity would be the plateau.
            is_generated: validity.is_generated()
                && !validity.limits.contains(&GeneratorLimit::Cpu),
            ..cut_warmup(&intervals, spec.interval)
        };
        if self.format == Format::Text && !stop.is_set() {
            output::print_line(&run_line(&RunRow::of(&run)))?;
        }
        Ok(run)
    }

    fn write(&self, blocks: u32, runs: &[LevelRun]) -> Result<(), Failure> {
        let think: &TimeDistribution = &self.workers.think;
        let of_blocks: Vec<Vec<Level>> = (0..blocks)
            .map(|block| {
                let of_block = runs.iter().filter(|run| run.block == block);
                of_block.map(|run| run.level(think)).collect()
            })
            .collect();
        let analysis = analyse(&of_blocks);
        let document = LevelsDocument::new(&LevelsInput {
            url: self.url,
            think,
            seed: self.spec.seed,
            duration: self.spec.duration,
            blocks,
            runs,
            analysis: &analysis,
        });
        let mut out = output::data();
        match self.format {
            Format::Text => out.write_all(levels_text(&document).as_bytes())?,
            Format::Json => rows::write_json(&document, &mut out)?,
            Format::Ndjson => rows::write_json_line(&document, &mut out)?,
            Format::Csv => {
                let mut writer = RowWriter::begin(Format::Csv, &mut out)?;
                writer.heading::<LevelRow>()?;
                document.levels.iter().try_for_each(|row| writer.row(row))?;
                writer.end()?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Levels around a knee: one worker, and multiples of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limited to the numbers of workers"
)]
fn levels_around(knee: f64) -> Vec<u32> {
    let max = f64::from(Workers::MAX);
    let multiples = KNEE_MULTIPLES.map(|multiple| (multiple * knee).round().clamp(1.0, max) as u32);
    let mut levels = multiples.to_vec();
    levels.dedup();
    // Models need several levels, also where the knee is low.
    while levels.len() < LEVELS_NEEDED {
        levels.push(levels.last().map_or(1, |last| last + 1));
    }
    levels
}

/// The counts of a run without its warm-up, whose end MSER-5 finds in the mean response times of intervals. If
/// it finds none, the first half is cut off.
fn cut_warmup(intervals: &[WorkloadSecond], length: Span) -> LevelRun {
    let mut last = 0.0;
    let means: Vec<f64> = intervals
        .iter()
        .map(|interval| {
            last = interval.tally.response.mean().map_or(last, Span::secs_f64);
            last
        })
        .collect();
    let found = warmup_length(&means);
    let cut = found.unwrap_or(intervals.len() / 2);
    let mut tally = Tally::default();
    let kept = intervals.iter().skip(cut);
    kept.clone()
        .for_each(|interval| tally.merge(&interval.tally));
    let times = |count: usize| length.times(i64::try_from(count).unwrap_or(i64::MAX));
    LevelRun {
        block: 0,
        workers: 0,
        tally,
        measured: times(kept.count()),
        warmup: times(cut),
        is_steady: found.is_some(),
        is_generated: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ascending_and_without_repetition() {
        assert_eq!(parse_levels("8,1, 4,8"), Ok(Levels(vec![1, 4, 8])));
        for wrong in ["", "0,1", "1,x", "1,,2", "100001"] {
            assert!(parse_levels(wrong).is_err(), "{wrong}");
        }
        assert_eq!(levels_around(10.5), [1, 3, 5, 8, 11, 16, 21, 32]);
        assert_eq!(levels_around(0.0), [1, 2, 3, 4, 5, 6]);
    }
}
