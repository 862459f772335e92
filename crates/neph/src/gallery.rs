//! `neph gallery`: published findings, each with the network that shows it, neph's result,
//! and a control without the cause.
//!
//! Owns the command: selection, order and output of the entries. An entry is an ordinary campaign
//! (`run_entry.rs`). `neph_analysis::gallery` compares its results with calculated values.

mod run_entry;
mod show;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_documents::Format;

use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::{demo, format, output};
use neph_analysis::gallery::{Entry, EntryResult, Side, entries, entry};
use run_entry::{Gallery, RunResult};

/// Options of `neph gallery`.
#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Name of the entry (published finding) to reproduce; without it, neph lists all entries
    name: Option<String>,
    /// Run the entry without the cause of its finding (control run); neph must then not report the finding
    #[arg(long, requires = "name")]
    control: bool,
    /// Run all entries and their control runs, except those that are already measured completely
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// With --all: run also the entries that are already measured completely
    #[arg(long, requires = "all")]
    repeats: bool,
    /// Folder to which `neph gallery` writes plans, measurements and reports
    #[arg(long, value_name = "FOLDER", default_value = "neph-gallery")]
    folder: PathBuf,
    /// Output format of the list
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL), conflicts_with_all = ["name", "all"])]
    format: Format,
    /// Do not print the progress of the measurement
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    approval: Approval,
}

/// Lists the entries, or runs one or all.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.name.is_some() || args.all {
        demo::check_lab_permission().map_err(|reason| {
            Failure::refused(format!("no lab, and so no gallery: {reason}; be root"))
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
            measure_one(&gallery, find_entry(name)?, side)
        }
        None if args.all && args.repeats => measure_all(&gallery, EntryChoice::Every),
        None if args.all => measure_all(&gallery, EntryChoice::Unfinished),
        None => show::list_entries(args.format),
    }
}

/// Which entries are measured.
#[derive(Clone, Copy, Debug)]
enum EntryChoice {
    Every,
    /// Entries without a complete campaign; for the others the stored result is shown.
    Unfinished,
}

fn find_entry(name: &str) -> Result<&'static Entry, Failure> {
    entry(name).ok_or_else(|| {
        let entry_names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        let remedy = neph_text::did_you_mean(name, &entry_names);
        Failure::usage(format!("the gallery has no entry '{name}'; {remedy}"))
    })
}

fn measure_one(gallery: &Gallery, entry: &'static Entry, side: Side) -> Result<Outcome, Failure> {
    match gallery.run(entry, side)? {
        RunResult::Incomplete(outcome) => Ok(outcome),
        RunResult::Complete(entry_result) => {
            show::show_entry(&entry_result)?;
            Ok(outcome(entry_result.is_right()))
        }
    }
}

/// Runs all entries in sequence. A failure of one does not prevent the others.
fn measure_all(gallery: &Gallery, choice: EntryChoice) -> Result<Outcome, Failure> {
    let mut results = Vec::new();
    let mut is_complete = true;
    for (entry, side) in entries().iter().flat_map(|entry| sides(entry)) {
        let stored_result = match choice {
            EntryChoice::Every => None,
            EntryChoice::Unfinished => gallery.stored_result(entry, side)?,
        };
        let run_result = match stored_result {
            Some(entry_result) => Ok(RunResult::Complete(Box::new(entry_result))),
            None => gallery.run(entry, side),
        };
        match run_result {
            Ok(RunResult::Complete(entry_result)) => {
                show::show_entry(&entry_result)?;
                results.push(*entry_result);
            }
            Ok(RunResult::Incomplete(Outcome::Interrupted)) => {
                show::show_summary(&results)?;
                return Ok(Outcome::Interrupted);
            }
            Ok(RunResult::Incomplete(_)) => is_complete = false,
            // A program that is missing here, such as HAProxy.
            Err(Failure::Refused(reason)) => {
                output::say(&format!("neph: {}{}: {reason}", entry.name, side.suffix()));
                is_complete = false;
            }
            Err(failure) => return Err(failure),
        }
    }
    show::show_summary(&results)?;
    Ok(outcome(
        is_complete && results.iter().all(EntryResult::is_right),
    ))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use neph_campaign::estimate::estimate;
    use neph_campaign::{expand, plan};
    use neph_lab::Topology;
    use neph_report::FIGURES;
    use neph_text::Source;

    use super::*;

    #[test]
    fn every_entry_and_its_control_fit_their_labs_and_take_less_than_three_minutes() {
        for entry in entries() {
            for side in [Side::Finding, Side::Control] {
                let [plan, lab] = entry.plan_and_topology(side);
                let description = format!("{}{}: {plan:?}", entry.name, side.suffix());
                let plan = plan::read(&Source::new("plan.toml", plan.text)).expect(&description);
                let name = format!("gallery {}{}", entry.name, side.suffix());
                assert_eq!(plan.name, name);
                let topology = Topology::parse(&Source::new("lab", lab.text)).expect(&description);
                let plan_lab = plan.lab.as_ref().expect("a lab");
                assert_eq!(plan_lab.topology.value, lab.file);
                for site in plan_lab.reflectors.iter().map(|reflector| &reflector.site) {
                    assert!(topology.site_index(&site.value).is_some(), "{description}");
                }
                let span = estimate(&plan, &expand::scenarios(&plan)).total;
                assert!(span.secs_f64() < 150.0, "{name} takes {span}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_have_a_folder_and_a_page() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let names: BTreeSet<&str> = entries().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries().len());
        for entry in entries() {
            let name = entry.name;
            assert!(root.join("gallery").join(name).is_dir(), "gallery/{name}");
            let page = root.join("docs/gallery").join(format!("{name}.md"));
            assert!(page.is_file(), "{}", page.display());
            assert!(
                FIGURES
                    .iter()
                    .any(|kind| entry.figure.starts_with(kind.name))
            );
        }
    }
}
