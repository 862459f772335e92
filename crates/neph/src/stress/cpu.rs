//! `neph stress cpu`: threads that hash, each for a share of the time by its own CPU clock.

use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::thread;

use clap::Args as ClapArgs;
use neph_model::{CpuShare, Span, Stop};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::sched;
use sha2::{Digest, Sha256};

use super::announce::{Announce, Beginning};
use super::crowd::{Crowd, Place, Work};
use super::duty::{Duty, HELD, PERIOD};
use super::room::Room;
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{interrupt, output, value};
use neph_text::counted::counted;

/// What is hashed at once: some ten microseconds of work.
const PIECE: usize = 4096;
/// How long it must be held until the load is said to work.
const PROOF: Span = Span::from_millis(100);

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

/// What one thread did.
#[derive(Clone, Copy, Debug)]
struct Worked {
    cpu: Option<usize>,
    /// By its own CPU clock.
    busy: Span,
    lasted: Span,
    hashes: u64,
}

impl Worked {
    /// The share of the time that it worked, percent.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn percent(&self) -> f64 {
        100.0 * self.busy.nanos() as f64 / self.lasted.nanos().max(1) as f64
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
    let threads: Vec<Option<usize>> = if args.cpus.is_empty() {
        vec![None; cores]
    } else {
        args.cpus.iter().copied().map(Some).collect()
    };
    try_pins(&args.cpus)?;
    let place = if args.cpus.is_empty() {
        Place::Anywhere
    } else {
        Place::Pinned
    };
    let crowd = Crowd::of(Work::of(threads.len(), args.target, place), Room::here());
    if let Some(crowd) = &crowd {
        output::say(&format!("neph stress: {crowd}"));
    }
    let stop = interrupt::stop_on_ctrl_c()?;
    let asked = (&Beginning::of(&args.announce, threads.len()), &stop);
    let all = all(args, &threads, asked)?;
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

/// What each of these threads did, when all of them have ended.
fn all(
    args: &Args,
    threads: &[Option<usize>],
    asked: (&Beginning, &Stop),
) -> Result<Vec<Worked>, Failure> {
    thread::scope(|scope| {
        let mut begun = Vec::new();
        for (number, cpu) in threads.iter().copied().enumerate() {
            let work = move || work(args, cpu, asked);
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => begun.push(thread),
                Err(error) => {
                    asked.1.set();
                    return Err(Failure::refused(format!(
                        "no more than {} can be begun here: {error}; give fewer --cores",
                        counted(number as u64, "thread")
                    )));
                }
            }
        }
        let ended = begun.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect::<Result<Vec<Worked>, _>>()
    })
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

/// Whether a thread can be on each of these CPUs: before one of them works for hours beside another
/// that never could.
fn try_pins(cpus: &[usize]) -> Result<(), Failure> {
    let pin = |cpu: usize| thread::scope(|scope| scope.spawn(|| pin_to(cpu)).join());
    cpus.iter()
        .try_for_each(|&cpu| pin(cpu).unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn pin_to(cpu: usize) -> Result<(), Failure> {
    sched::pin_to_cpus(&[cpu]).map_err(|error| {
        let there = usable().map_or_else(String::new, |cpus| format!("; {cpus} may be used"));
        Failure::Usage(format!("--cpus {cpu}: {error}{there}"))
    })
}

/// The CPUs that this process may use, as the kernel writes them: `0-3`.
fn usable() -> Option<String> {
    let told = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = told.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// One thread's work.
fn work(
    args: &Args,
    cpu: Option<usize>,
    (beginning, stop): (&Beginning, &Stop),
) -> Result<Worked, Failure> {
    if let Some(cpu) = cpu {
        pin_to(cpu)?;
    }
    let (start, first) = (clock::raw(), clock::thread_cpu());
    let end = RawNanos(start.0.saturating_add(args.duration.nanos()));
    let since = |from: RawNanos| Span::from_nanos(clock::raw().0 - from.0);
    let worked = || Span::from_nanos(clock::thread_cpu() - first);
    let mut duty = Duty::new(args.target);
    let (mut piece, mut hashes) = ([0_u8; PIECE], 0_u64);
    let mut begin = start;
    let mut proof = Some(Proof::default());
    while begin < end && !stop.is_set() {
        let before = worked();
        let due = before + duty.due(Span::from_nanos(begin.0 - start.0), before);
        while worked() < due && clock::raw() < end && !stop.is_set() {
            let digest = Sha256::digest(piece);
            piece[..digest.len()].copy_from_slice(&digest);
            hashes += 1;
        }
        let next = RawNanos(begin.0 + PERIOD.nanos()).min(end);
        begin = clock::sleep_until(next, Spin::NONE);
        let held = |proof: &mut Proof| proof.is_held((since(start), worked()), args.target);
        if proof.as_mut().is_some_and(held) {
            proof = None;
            beginning.one_works();
        }
    }
    // Without this nobody would need the hashes, and so nobody would make them.
    std::hint::black_box(piece);
    Ok(Worked {
        cpu,
        busy: worked(),
        lasted: since(start),
        hashes,
    })
}

/// Whether a thread works as it shall, looked at anew after a while.
#[derive(Clone, Copy, Debug, Default)]
struct Proof {
    from: Span,
    worked: Span,
}

impl Proof {
    /// Whether the target was held since the last look, or from the start on; `now` is how long it has
    /// been and how much was worked. Too early nothing is looked at.
    #[expect(clippy::cast_precision_loss, reason = "a share of a tenth of a second")]
    fn is_held(&mut self, now: (Span, Span), target: f64) -> bool {
        let (lasted, worked) = (now.0 - self.from, now.1 - self.worked);
        if lasted < PROOF {
            return false;
        }
        (self.from, self.worked) = now;
        let percent = 100.0 * worked.nanos() as f64 / lasted.nanos().max(1) as f64;
        percent >= target * 100.0 - HELD
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_works_when_it_held_its_target_for_a_tenth_of_a_second() {
        let at = |millis: i64, worked: i64| (Span::from_millis(millis), Span::from_millis(worked));
        let mut proof = Proof::default();
        assert!(!proof.is_held(at(50, 50), 0.8), "too early");
        assert!(!proof.is_held(at(100, 60), 0.8), "others had it");
        assert!(!proof.is_held(at(190, 150), 0.8), "too early again");
        assert!(proof.is_held(at(200, 138), 0.8), "78 % since then");
    }
}
