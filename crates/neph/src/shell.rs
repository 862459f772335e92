//! Shell completions and man pages, from the same definitions as `--help`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};
use crate::{output, sink};

/// Options of `neph completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Options of `neph man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write neph.1, neph-ping.1 ... into; without it neph.1 goes to standard output
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionArgs) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "neph", &mut script);
    let mut out = output::data();
    out.write_all(&script)?;
    // Dropping the buffer would swallow a refusal.
    out.flush()?;
    Ok(Outcome::Done)
}

/// Writes the man pages.
pub(crate) fn man(args: &ManArgs) -> Result<Outcome, Failure> {
    // clap's own `help` would get a page, and each command below it one more, all saying the same.
    let mut command = without_help(Cli::command());
    command.build();
    match &args.output {
        None => {
            let mut out = output::data();
            clap_mangen::Man::new(command).render(&mut out)?;
            out.flush()?;
        }
        Some(folder) => {
            let refused = |error: std::io::Error| sink::failure(folder, &error);
            fs::create_dir_all(folder).map_err(refused)?;
            clap_mangen::generate_to(command, folder).map_err(refused)?;
        }
    }
    Ok(Outcome::Done)
}

fn without_help(command: Command) -> Command {
    command
        .disable_help_subcommand(true)
        .mut_subcommands(without_help)
}
