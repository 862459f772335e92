//! `neph stress cpu`: threads that hash for a share of the time, by their CPU clocks.

use std::num::NonZeroU16;

use clap::Args as ClapArgs;
use neph_agent::CpuResult;
use neph_documents::generated_load::CpuRow;
use neph_load::{CpuPlacement, CpuThreadResult, HELD, LoadError, Overcommit, Room, Work};
use neph_model::{CpuShare, CpuThreads, LoadOrder, LoadWork, Span};

use super::load_report::{LoadReportOptions, write_rows};
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::{format, output, value};
use neph_documents::Format;

/// Options of `neph stress cpu`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 target reached within 3 percentage points, 1 target missed, 2 usage error, 130 interrupted by ctrl-C."
)]
pub(super) struct Args {
    /// Share of the time for which neph keeps each core busy, 1% to 100%
    #[arg(long, value_name = "SHARE", value_parser = value::cpu_share)]
    target: CpuShare,
    /// Number of cores to load, 1 to 1024; the kernel chooses which ones [default: all available]
    #[arg(long, value_name = "N", value_parser = parse_cores, conflicts_with = "cpus")]
    cores: Option<NonZeroU16>,
    /// Load exactly these CPUs, with one thread each, such as 0,1
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Generate the load for this time, such as 30s or 5min
    #[arg(short = 'w', long, value_name = "TIME", default_value = "1min",
          value_parser = value::positive_span)]
    duration: Span,
    /// Print a line on standard error as soon as the load runs, so that a measurement can start
    #[arg(long)]
    announce: bool,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    pub(super) user: UserChoice,
}

impl Args {
    /// The options as an order.
    pub(super) fn order(&self) -> LoadOrder {
        let threads = match self.cores {
            _ if !self.cpus.is_empty() => CpuThreads::Pinned(self.cpus.clone()),
            Some(cores) => CpuThreads::Anywhere(cores),
            None => CpuThreads::EachCore,
        };
        LoadOrder {
            work: LoadWork::Cpu {
                share: self.target,
                threads,
            },
            duration: self.duration,
        }
    }

    pub(super) const fn report_options(&self) -> LoadReportOptions {
        LoadReportOptions {
            format: self.format,
            announce: self.announce,
            capacity: None,
        }
    }
}

fn parse_cores(text: &str) -> Result<NonZeroU16, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &NonZeroU16| number.get() <= CpuThreads::MAXIMUM);
    number.ok_or_else(|| {
        format!(
            "'{text}' is no number of cores from 1 to {}",
            CpuThreads::MAXIMUM
        )
    })
}

/// Other processes that use the CPU, if any; printed before the load starts.
pub(super) fn detect_overcommit(order: &LoadOrder, thread_count: usize) -> Option<Overcommit> {
    let LoadWork::Cpu { share, threads } = &order.work else {
        return None;
    };
    let cpu_placement = match threads {
        CpuThreads::Pinned(_) => CpuPlacement::Pinned,
        CpuThreads::EachCore | CpuThreads::Anywhere(_) => CpuPlacement::Anywhere,
    };
    let work = Work::of(thread_count, share.in_percent() / 100.0, cpu_placement);
    let overcommit = Overcommit::of(work, Room::here())?;
    output::say(&format!("neph stress: {overcommit}"));
    Some(overcommit)
}

/// Reports the achieved load, and why targets were missed.
pub(super) fn show(
    cpu_result: &CpuResult,
    report_options: &LoadReportOptions,
    overcommit: Option<&Overcommit>,
    is_stopped: impl Fn() -> bool,
) -> Result<Outcome, Failure> {
    let requested_percent = cpu_result.share.in_percent();
    write_rows(&CpuRow::all(cpu_result), report_options.format)?;
    if is_stopped() {
        return Ok(Outcome::Interrupted);
    }
    let results = cpu_result.threads.iter();
    let missed_threads: Vec<&CpuThreadResult> = results
        .clone()
        .filter(|result| (result.percent() - requested_percent).abs() > HELD)
        .collect();
    let unknown_reason = || "other processes used it, or a CPU limit applies".to_owned();
    let total_percent = results.map(CpuThreadResult::percent).sum();
    let reason = overcommit.map_or_else(unknown_reason, |overcommit| {
        overcommit.explanation(total_percent)
    });
    // Threads that are not pinned are shown together, pinned CPUs one by one.
    let is_pinned = missed_threads.iter().any(|result| result.cpu.is_some());
    let chunk_len = if is_pinned {
        1
    } else {
        missed_threads.len().max(1)
    };
    for threads in missed_threads.chunks(chunk_len) {
        report_missed(threads, requested_percent, &reason);
    }
    Ok(if missed_threads.is_empty() {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

pub(super) fn to_failure(error: LoadError) -> Failure {
    match error {
        LoadError::Cpu { cpu, source, hint } => {
            Failure::Usage(format!("--cpus {cpu}: {source}{hint}"))
        }
        LoadError::Threads { .. } => Failure::refused(format!("{error}; give fewer --cores")),
        LoadError::Socket { .. } | LoadError::Stream { .. } => Failure::refused(error),
    }
}

/// Reports that these threads missed the target, and why; nothing for none.
fn report_missed(missed_threads: &[&CpuThreadResult], requested_percent: f64, reason: &str) {
    let percents = missed_threads.iter().map(|result| result.percent());
    let range = percents
        .clone()
        .reduce(f64::min)
        .zip(percents.reduce(f64::max));
    let Some((min, max)) = range else { return };
    let name = match missed_threads {
        [result] => result
            .cpu
            .map_or_else(|| "a thread".to_owned(), |cpu| format!("CPU {cpu}")),
        threads => format!("{} threads", threads.len()),
    };
    let percent_text = if missed_threads.len() == 1 {
        format!("{min:.1}")
    } else {
        format!("{min:.1} to {max:.1}")
    };
    output::say(&format!(
        "neph stress: {name} used {percent_text} % of the CPU time, {requested_percent:.0} % was requested: {reason}"
    ));
}
