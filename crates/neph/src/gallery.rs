//! `neph gallery`: published findings, each with the network that shows it, what neph says of it,
//! and a control without the cause.
//!
//! Owns the command: which entries, in which order, what is shown of them. An entry is a campaign
//! as any other (`carry.rs`) whose sentences are held against what was calculated (`expectation.rs`).

mod advice;
mod balancers;
mod bufferbloat;
mod cable;
mod carry;
mod ecmp;
mod entry;
mod expectation;
mod far_bulk;
mod guest_load;
mod guest_pinned;
mod guest_share;
mod guest_starved;
mod idle;
mod mesh;
mod near_far;
mod overlay;
mod providers;
mod rerouting;
mod rest;
mod said;
mod seasons;
mod show;
mod time_of_day;
mod transfers;
mod unfairness;
mod uplink;

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::sheet::Format;
use crate::{demo, output};
use carry::{Ended, Gallery, Shown};
use entry::{ENTRIES, Entry, Side};

/// Options of `neph gallery`.
#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// The entry to run; without one, lists them all
    name: Option<String>,
    /// The same without the cause: the sentence must not appear
    #[arg(long, requires = "name")]
    control: bool,
    /// Every entry and its control, but for those that are finished
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// With --all: the finished ones too
    #[arg(long, requires = "all")]
    again: bool,
    /// Folder for plans, measurements and reports
    #[arg(long, value_name = "FOLDER", default_value = "neph-gallery")]
    folder: PathBuf,
    /// How to write the list of entries
    #[arg(long, value_enum, default_value = "text", conflicts_with_all = ["name", "all"])]
    format: Format,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    approval: Approval,
}

/// Lists the entries, or runs one or all.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.name.is_some() || args.all {
        demo::whether_in_a_lab().map_err(|why| {
            Failure::refused(format!("no lab, and so no gallery: {why}; be root"))
        })?;
    }
    let gallery = Gallery {
        folder: args.folder.clone(),
        quiet: args.quiet,
        approval: args.approval.clone(),
    };
    match &args.name {
        Some(name) => {
            let side = if args.control {
                Side::Control
            } else {
                Side::Finding
            };
            one(&gallery, named(name)?, side)
        }
        None if args.all && args.again => all(&gallery, Which::Every),
        None if args.all => all(&gallery, Which::Unfinished),
        None => show::list(args.format),
    }
}

/// Which entries are measured.
#[derive(Clone, Copy, Debug)]
enum Which {
    Every,
    /// Those without a complete campaign; the others are shown from theirs.
    Unfinished,
}

fn named(name: &str) -> Result<&'static Entry, Failure> {
    entry::entry(name).ok_or_else(|| {
        let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        let remedy = neph_text::did_you_mean(name, &known);
        Failure::usage(format!("the gallery has no entry '{name}'; {remedy}"))
    })
}

fn one(gallery: &Gallery, entry: &'static Entry, side: Side) -> Result<Outcome, Failure> {
    match gallery.run(entry, side)? {
        Ended::Unfinished(outcome) => Ok(outcome),
        Ended::Whole(shown) => {
            show::entry(&shown)?;
            Ok(outcome(shown.is_right()))
        }
    }
}

/// One after the other; what is wrong with one does not keep the others from being shown.
fn all(gallery: &Gallery, which: Which) -> Result<Outcome, Failure> {
    let mut everything = Vec::new();
    let mut is_whole = true;
    for (entry, side) in ENTRIES.iter().flat_map(|entry| sides(entry)) {
        let kept = match which {
            Which::Every => None,
            Which::Unfinished => gallery.finished(entry, side)?,
        };
        let ended = match kept {
            Some(shown) => Ok(Ended::Whole(Box::new(shown))),
            None => gallery.run(entry, side),
        };
        match ended {
            Ok(Ended::Whole(shown)) => {
                show::entry(&shown)?;
                everything.push(*shown);
            }
            Ok(Ended::Unfinished(Outcome::Interrupted)) => {
                show::all(&everything)?;
                return Ok(Outcome::Interrupted);
            }
            Ok(Ended::Unfinished(_)) => is_whole = false,
            // A program that is missing here, such as HAProxy.
            Err(Failure::Refused(why)) => {
                output::say(&format!("neph: {}{}: {why}", entry.name, side.suffix()));
                is_whole = false;
            }
            Err(failure) => return Err(failure),
        }
    }
    show::all(&everything)?;
    Ok(outcome(is_whole && everything.iter().all(Shown::is_right)))
}

fn sides(entry: &'static Entry) -> [(&'static Entry, Side); 2] {
    [Side::Finding, Side::Control].map(|side| (entry, side))
}

const fn outcome(is_right: bool) -> Outcome {
    if is_right {
        Outcome::Done
    } else {
        Outcome::Nothing
    }
}
