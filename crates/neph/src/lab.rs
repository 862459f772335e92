//! `neph lab`: emulated networks: check, plan, start, use, inspect, verify and stop.

mod enter;
mod keeper;
mod plan;
mod predict;
mod status;
mod truth;
mod up;
mod verify;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use neph_documents::lab::LabRow;
use neph_documents::{Format, rows};
use neph_lab::{Lab, LabError, LabListings, Link, Topology};

use crate::exit::{Failure, Outcome};
use crate::{approval, format, output, topology};
use neph_text::counted::counted;

/// Options of `neph lab`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks a topology file for mistakes, and lists each with its line and remedy
    Check(CheckArgs),
    /// Shows every step (ip, tc, sysctl) with which `neph lab up` would start a lab, and runs none
    Plan(plan::Args),
    /// Starts the emulated network (lab) of a topology file, until ctrl-C or in the background
    Up(up::Args),
    /// Runs a program at a site (emulated host) of a running lab
    Run(enter::RunArgs),
    /// Opens a shell at a site (emulated host) of a running lab
    Shell(enter::ShellArgs),
    /// Shows the current state of the services and links of a running lab
    Status(status::Args),
    /// Starts a lab, measures each link, compares it with the topology file, and stops the lab
    Verify(verify::Args),
    /// Shows what emulated links did to each packet, from the files that `neph lab up --record` writes
    Truth(truth::Args),
    /// Calculates the time of a request with each protocol from the delays in a topology file
    Predict(predict::Args),
    /// Stops a running lab, also if another process started it
    Down(DownArgs),
    /// Lists the labs that run on this host
    List(ListArgs),
}

#[derive(Debug, ClapArgs)]
struct CheckArgs {
    /// Topology file (TOML): sites and links of the emulated network
    file: PathBuf,
}

#[derive(Debug, ClapArgs)]
struct DownArgs {
    /// Name of the lab to stop, as `neph lab list` prints it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Stop all labs that run on this host
    #[arg(long)]
    all: bool,
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Carries a lab command out.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Check(args) => check(args),
        Command::Plan(args) => plan::run(args),
        Command::Up(args) => up::run(args),
        Command::Run(args) => enter::run(args),
        Command::Shell(args) => enter::shell(args),
        Command::Status(args) => status::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Truth(args) => truth::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Down(args) => down(args),
        Command::List(args) => list(args),
    }
}

fn check(args: &CheckArgs) -> Result<Outcome, Failure> {
    let topology = topology::read(&args.file)?;
    approval::print_commands(&args.file.display().to_string(), [&topology]);
    report_unused_links(&topology);
    let Topology { sites, links, .. } = topology;
    output::say(&format!(
        "neph lab: {} is a valid topology: {}, {}",
        args.file.display(),
        counted(sites.len() as u64, "site"),
        counted(links.len() as u64, "link")
    ));
    Ok(Outcome::Done)
}

/// Prints which links no route uses: a measurement of such a link sees no packet.
fn report_unused_links(topology: &Topology) {
    for link in topology.unused_links() {
        let ends = |link: &Link| [link.a.min(link.b), link.a.max(link.b)];
        let parallel_links = topology
            .links
            .iter()
            .filter(|candidate| ends(candidate) == ends(link));
        let remedy = if parallel_links.count() == 1 {
            "; with routing = \"direct\" neighbours use the link between them"
        } else {
            ""
        };
        output::say(&format!(
            "neph lab: no route uses link {}: other paths are as fast or faster{remedy}",
            link.name
        ));
    }
}

fn down(args: &DownArgs) -> Result<Outcome, Failure> {
    let Some(name) = &args.name else {
        return take_all_down();
    };
    if Lab::find(name).map_err(failure)?.is_none() {
        return Err(enter::missing_lab_failure(name)?);
    }
    Lab::down_by_name(name).map_err(failure)?;
    output::say(&format!("neph lab: {name} is down"));
    Ok(Outcome::Done)
}

/// Takes down all labs; a failure of one does not stop the others.
fn take_all_down() -> Result<Outcome, Failure> {
    let LabListings { labs, errors } = Lab::list().map_err(failure)?;
    if labs.is_empty() {
        output::say("neph lab: there is no lab on this machine");
    }
    let mut has_no_errors = report_problems(&errors);
    for lab in labs {
        match Lab::down_by_name(&lab.name) {
            Ok(()) => output::say(&format!("neph lab: {} is down", lab.name)),
            Err(error) => has_no_errors = report_problems(&[error]),
        }
    }
    Ok(outcome(has_no_errors))
}

fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    let LabListings { labs, errors } = Lab::list().map_err(failure)?;
    let labs: Vec<LabRow> = labs.into_iter().map(LabRow::from).collect();
    let mut out = output::data();
    rows::write(&labs, args.format, &mut out)?;
    out.flush()?;
    Ok(outcome(report_problems(&errors)))
}

/// Reports the problem of each entry. Returns whether there is none.
fn report_problems(errors: &[LabError]) -> bool {
    let sentences: BTreeSet<String> = errors.iter().map(LabError::to_string).collect();
    for sentence in sentences {
        output::say(&format!("neph: {sentence}"));
    }
    errors.is_empty()
}

fn outcome(has_no_errors: bool) -> Outcome {
    if has_no_errors {
        Outcome::Done
    } else {
        Outcome::Nothing
    }
}

/// The given name, or a valid lab name from the file's name without its extensions.
fn lab_name(requested_name: Option<&str>, file: &Path) -> String {
    if let Some(name) = requested_name {
        return name.to_owned();
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    let mut name: String = stem
        .to_ascii_lowercase()
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .skip_while(|letter| !letter.is_ascii_lowercase())
        .collect();
    name.truncate(16);
    match name.as_str() {
        "" => "lab".to_owned(),
        _ => name,
    }
}

/// Reports which guests this machine could not run, and why.
pub(crate) fn report_fallbacks(lab: &Lab) {
    for fallback in lab.fallback_guests() {
        output::say(&format!("neph lab: {fallback}"));
    }
}

pub(crate) fn failure(error: LabError) -> Failure {
    match error {
        LabError::Interrupted { .. } => Failure::Interrupted(error.to_string()),
        LabError::InvalidName { .. } | LabError::RecordExists { .. } => Failure::usage(error),
        _ => Failure::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_named_after_its_file() {
        let name_from_file = |file: &str| lab_name(None, Path::new(file));
        assert_eq!(
            name_from_file("plans/idle-slow-start.lab.toml"),
            "idle_slow_start"
        );
        assert_eq!(name_from_file("3 Demo.toml"), "demo");
        assert_eq!(name_from_file("42"), "lab");
        assert_eq!(
            name_from_file("a-very-long-name-indeed.toml"),
            "a_very_long_name"
        );
        assert_eq!(lab_name(Some("x"), Path::new("y.toml")), "x");
    }
}
