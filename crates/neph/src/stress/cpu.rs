//! `neph stress cpu`: threads that hash, each for a share of the time by its own CPU clock.

use std::io::Write;
use std::num::NonZeroUsize;
use std::thread;

use clap::Args as ClapArgs;
use neph_model::{CpuShare, Span};

use neph_load::{Beginning, CpuLoad, Crowd, HELD, LoadError, Place, Room, Work, Worked};

use super::announce::Announce;
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{interrupt, output, value};

/// Options of `neph stress cpu`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 the load was held within 3 points, 1 it was not, 2 usage, 130 interrupted."
)]
pub(super) struct Args {
    /// The share of the time that each core works: 25%, 80%, 98%
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    target: f64,
    /// On how many cores, wherever the kernel puts them; by default on all that may be used
    #[arg(long, value_name = "N", value_parser = cores, conflicts_with = "cpus")]
    cores: Option<NonZeroUsize>,
    /// On these CPUs, one thread each: 0,1
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Stop after this long
    #[arg(short = 'w', long, value_name = "TIME", default_value = "1min",
          value_parser = value::positive_span)]
    duration: Span,
    #[command(flatten)]
    announce: Announce,
    /// How to write what was held
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    pub(super) user: UserChoice,
}

impl Args {
    /// As an order asks for it.
    pub(super) fn ordered(share: CpuShare, duration: Span) -> Self {
        Self {
            target: share.in_percent() / 100.0,
            cores: None,
            cpus: Vec::new(),
            duration,
            announce: Announce::YES,
            format: Format::Json,
            user: UserChoice::default(),
        }
    }
}

/// More threads than this are a mistake, and take minutes to begin.
const MOST_CORES: usize = 1024;

fn cores(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &NonZeroUsize| number.get() <= MOST_CORES);
    number.ok_or_else(|| format!("'{text}' is no number of cores from 1 to {MOST_CORES}"))
}

/// Makes the load until its time is over or ctrl-C, and tells what was held.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let there = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let cores = args.cores.map_or(there, NonZeroUsize::get);
    let load = CpuLoad {
        share: args.target,
        cpus: if args.cpus.is_empty() {
            vec![None; cores]
        } else {
            args.cpus.iter().copied().map(Some).collect()
        },
        duration: args.duration,
    };
    load.try_pins().map_err(failure)?;
    let place = if args.cpus.is_empty() {
        Place::Anywhere
    } else {
        Place::Pinned
    };
    let crowd = Crowd::of(Work::of(load.cpus.len(), args.target, place), Room::here());
    if let Some(crowd) = &crowd {
        output::say(&format!("neph stress: {crowd}"));
    }
    let stop = interrupt::stop_on_ctrl_c()?;
    let works = || args.announce.works();
    let all = load.run(&Beginning::of(load.cpus.len(), &works), &stop);
    let all = all.map_err(failure)?;
    tell(&all, args)?;
    let missed: Vec<&Worked> = all
        .iter()
        .filter(|one| (one.percent() - args.target * 100.0).abs() > HELD)
        .collect();
    if stop.is_set() {
        return Ok(Outcome::Interrupted);
    }
    let unknown = || "somebody else had it, or a limit holds here".to_owned();
    let worked = all.iter().map(Worked::percent).sum();
    let why = (crowd.as_ref()).map_or_else(unknown, |crowd| crowd.why(worked));
    // Threads that are anywhere are as one, CPUs that were named are told one by one.
    let together = match place {
        Place::Anywhere => missed.len().max(1),
        Place::Pinned => 1,
    };
    for some in missed.chunks(together) {
        say_missed(some, args, &why);
    }
    Ok(if missed.is_empty() {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

fn failure(error: LoadError) -> Failure {
    match error {
        LoadError::Cpu { cpu, source, there } => {
            Failure::Usage(format!("--cpus {cpu}: {source}{there}"))
        }
        LoadError::Threads { .. } => Failure::refused(format!("{error}; give fewer --cores")),
        LoadError::Socket { .. } | LoadError::Stream { .. } => Failure::refused(error),
    }
}

/// Says of these threads together that they did not hold the load, and why; nothing of none.
fn say_missed(missed: &[&Worked], args: &Args, why: &str) {
    let percents = missed.iter().map(|one| one.percent());
    let ends = percents
        .clone()
        .reduce(f64::min)
        .zip(percents.reduce(f64::max));
    let Some((least, most)) = ends else { return };
    let who = match missed {
        [one] => one
            .cpu
            .map_or_else(|| "a thread".to_owned(), |cpu| format!("CPU {cpu}")),
        many => format!("{} threads", many.len()),
    };
    let worked = if missed.len() == 1 {
        format!("{least:.1}")
    } else {
        format!("{least:.1} to {most:.1}")
    };
    output::say(&format!(
        "neph stress: {who} worked {worked} % of the time, {:.0} % was asked: {why}",
        args.target * 100.0
    ));
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn tell(all: &[Worked], args: &Args) -> Result<(), Failure> {
    let mut sheet = Sheet::new(&[
        Column::left("CPU", "cpu"),
        Column::right("TARGET", "target_percent"),
        Column::right("WORKED", "worked_percent"),
        Column::right("LASTED", "lasted_ns"),
        Column::right("HASHES/S", "hashes_per_second"),
    ]);
    for one in all {
        let (target, held) = (args.target * 100.0, one.percent());
        let rate = one.hashes as f64 * 1e9 / one.lasted.nanos().max(1) as f64;
        sheet.rows.push(vec![
            one.cpu
                .map_or_else(|| Cell::new("any", ()), |cpu| Cell::count(cpu as u64)),
            Cell::new(format!("{target:.0} %"), target),
            Cell::new(format!("{held:.1} %"), held),
            Cell::new(one.lasted.to_string(), one.lasted.nanos()),
            Cell::new(format!("{rate:.0}"), rate),
        ]);
    }
    let mut out = output::data();
    sheet.write(args.format, &mut out)?;
    Ok(out.flush()?)
}
