//! Shell completions and man pages, from the same definitions as `--help`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use neph_text::write_whole;

use crate::exit::{Failure, Outcome};
use crate::sink::Force;
use crate::{output, sink};

/// Options of `neph completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// Shell for which neph prints the completion script
    shell: Shell,
}

/// Options of `neph man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write all man pages (neph.1, neph-ping.1 ...) to this folder [default: print only neph.1]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// Prints a completion script for `neph`, the whole command.
pub(crate) fn completions(args: &CompletionArgs, mut neph: Command) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut neph, "neph", &mut script);
    let mut out = output::data();
    out.write_all(&script)?;
    // Dropping the buffer would hide a write error.
    out.flush()?;
    Ok(Outcome::Done)
}

/// Writes the man pages of `neph`, the whole command.
pub(crate) fn man(args: &ManArgs, neph: Command) -> Result<Outcome, Failure> {
    // The `help` command of clap would get a page, and a copy for each command.
    let mut command = without_help_command(neph);
    command.build();
    match &args.output {
        None => {
            let mut out = output::data();
            clap_mangen::Man::new(command).render(&mut out)?;
            out.flush()?;
        }
        Some(folder) => {
            let to_failure = |error: std::io::Error| sink::failure(folder, &error);
            fs::create_dir_all(folder).map_err(to_failure)?;
            let mut pages = Vec::new();
            collect_pages(&command, &mut pages);
            for (name, _) in &pages {
                sink::check(&folder.join(name), args.force)?;
            }
            for (name, page) in pages {
                let path = folder.join(name);
                write_whole(&path, &page, args.force.existing())
                    .map_err(|error| sink::failure(&path, &error))?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// The pages of a command and of its subcommands, with their file names.
fn collect_pages(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page).expect("memory takes everything");
    pages.push((man.get_filename(), page));
    for subcommand in command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
    {
        collect_pages(subcommand, pages);
    }
}

fn without_help_command(command: Command) -> Command {
    command
        .disable_help_subcommand(true)
        .mut_subcommands(without_help_command)
}
