//! `neph lab run` and `neph lab shell`: runs a program at a site of a lab that is up.
//!
//! Replaces this process by the program, so its exit status and signals are those of the program.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use clap::Args as ClapArgs;
use neph_lab::{Console, Lab, LabListing, LabListings};
use neph_sys::place::Placement;
use neph_sys::process::{self, ChildOptions};
use neph_text::did_you_mean;

use super::failure;
use crate::exit::{Failure, Outcome};
use crate::output;

/// Options of `neph lab run`.
#[derive(Debug, ClapArgs)]
pub(super) struct RunArgs {
    /// Name of the site (emulated host) in the topology file
    site: String,
    /// Name of the running lab, as `neph lab list` prints it; needed if several labs run
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// Program to run at the site, with its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Options of `neph lab shell`.
#[derive(Debug, ClapArgs)]
pub(super) struct ShellArgs {
    /// Name of the site (emulated host) in the topology file
    site: String,
    /// Name of the running lab, as `neph lab list` prints it; needed if several labs run
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

/// Executes the program at the site, in place of this process.
pub(super) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let lab = select_lab(args.lab.as_deref())?;
    let placement = placement_of(&lab, &args.site)?;
    if let Some(console) = Lab::console(&lab.name, &args.site).map_err(failure)? {
        return run_in_guest(console, &args.command);
    }
    let mut command = process::command(&args.command[0]);
    command.args(&args.command[1..]);
    exec_at_site(command, &placement)
}

/// Runs the program in a guest, through its console: setns cannot enter another kernel.
fn run_in_guest(mut console: Console, command: &[OsString]) -> Result<Outcome, Failure> {
    let words = command
        .iter()
        .map(|word| quote_for_shell(&word.to_string_lossy()));
    let line = words.collect::<Vec<_>>().join(" ");
    // The output of the user's program is copied unchanged: it may be binary.
    let status = console
        .run(&line, &mut output::bytes()?)
        .map_err(|error| failure(error.into()))?;
    Ok(Outcome::Status(status))
}

/// Quotes a word for a shell.
fn quote_for_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Executes a shell at the site, in place of this process.
pub(super) fn shell(args: &ShellArgs) -> Result<Outcome, Failure> {
    let lab = select_lab(args.lab.as_deref())?;
    let placement = placement_of(&lab, &args.site)?;
    if Lab::console(&lab.name, &args.site)
        .map_err(failure)?
        .is_some()
    {
        return Err(Failure::refused(format!(
            "'{}' is a guest: neph lab run {} -- COMMAND runs one command after the other in it",
            args.site, args.site
        )));
    }
    let program = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let prompt = format!("[{}/{}] ", lab.name, args.site);
    let mut command = process::command(&program);
    command
        .env("NEPH_LAB", &lab.name)
        .env("NEPH_SITE", &args.site)
        .env("PS1", format!("{prompt}$ "));
    let name = Path::new(&program).file_name().unwrap_or_default();
    if name == "bash" {
        // bash sets its prompt from the user's file; this setting comes after that.
        let file = format!("/run/neph/{}/{}.bashrc", lab.name, args.site);
        let lines = format!("test -r ~/.bashrc && . ~/.bashrc\nPS1='{prompt}'\"$PS1\"\n");
        fs::write(&file, lines)
            .map_err(|error| Failure::refused(format!("write {file}: {error}")))?;
        command.args(["--rcfile", &file, "-i"]);
    }
    exec_at_site(command, &placement)
}

fn exec_at_site(mut command: Command, placement: &Placement) -> Result<Outcome, Failure> {
    placement
        .arrange(ChildOptions::default(), &mut command)
        .and_then(|()| placement.enter_namespace())
        .map_err(|error| failure(error.into()))?;
    let error = command.exec();
    let program = command.get_program().to_string_lossy().into_owned();
    Err(match error.kind() {
        ErrorKind::NotFound => Failure::usage(format!("there is no program '{program}' here")),
        _ => Failure::refused(format!("run '{program}': {error}")),
    })
}

/// The selected lab: by name, or the only one.
pub(super) fn select_lab(name: Option<&str>) -> Result<LabListing, Failure> {
    if let Some(name) = name
        && let Some(lab) = Lab::find(name).map_err(failure)?
    {
        return Ok(lab);
    }
    let LabListings { mut labs, errors } = Lab::list().map_err(failure)?;
    // Only the requested lab matters: problems of others are reported and do not stop the command.
    super::report_problems(&errors);
    let names: Vec<String> = labs.iter().map(|lab| lab.name.clone()).collect();
    match (labs.pop(), name) {
        (Some(lab), None) if labs.is_empty() => Ok(lab),
        (Some(_), None) => {
            let names = names.join(", ");
            Err(Failure::Usage(format!(
                "there are several labs ({names}): name one of them; neph lab run and neph lab shell take it as --lab NAME"
            )))
        }
        (Some(_), Some(name)) => Err(unknown_lab_failure(name, &names)),
        _ => Err(Failure::refused(
            "there is no lab on this machine: neph lab up FILE --detach brings one up",
        )),
    }
}

/// The message if there is no lab with this name.
pub(super) fn missing_lab_failure(name: &str) -> Result<Failure, Failure> {
    let LabListings { labs, errors } = Lab::list().map_err(failure)?;
    super::report_problems(&errors);
    let names: Vec<String> = labs.into_iter().map(|lab| lab.name).collect();
    Ok(unknown_lab_failure(name, &names))
}

fn unknown_lab_failure(name: &str, labs: &[String]) -> Failure {
    let labs: Vec<&str> = labs.iter().map(String::as_str).collect();
    let remedy = match labs.as_slice() {
        [] => "no lab is up on this machine".to_owned(),
        labs => did_you_mean(name, labs),
    };
    Failure::refused(format!("there is no lab '{name}'; {remedy}"))
}

fn placement_of(lab: &LabListing, site: &str) -> Result<Placement, Failure> {
    let prefix = format!("neph-{}-", lab.name);
    let sites = lab.namespaces.iter();
    let sites: Vec<&str> = sites
        .filter_map(|name| name.strip_prefix(&prefix))
        .collect();
    if !sites.contains(&site) {
        let remedy = did_you_mean(site, &sites);
        return Err(Failure::Usage(format!(
            "lab {} has no site '{site}'; {remedy}",
            lab.name
        )));
    }
    Lab::placement_by_name(&lab.name, site).map_err(failure)
}
