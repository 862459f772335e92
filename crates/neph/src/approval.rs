//! Commands of a topology run as root, so the user must confirm them first.
//!
//! Owns the list, the question, the option `--yes`, and the record of earlier confirmations. The
//! topology defines the commands.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_lab::{Command, Topology};
use neph_text::visible;
use sha2::{Digest, Sha256};

use crate::exit::Failure;
use crate::output;
use neph_text::counted::counted;

/// The longest list of commands that neph shows and asks about, bytes.
const MAX_LIST_BYTES: usize = 16 << 10;

/// Whether commands run without confirmation.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct Approval {
    /// Run the commands in the topology file (services, guests) as root without asking for confirmation
    #[arg(long)]
    yes: bool,
    /// Commands that the parent process has confirmed
    #[arg(long, hide = true, value_name = "DIGEST")]
    approved: Option<String>,
}

impl Approval {
    /// Returns if the commands of these topologies may run: there are none, they were confirmed
    /// before, or the user confirms them now. `file` names the topologies.
    ///
    /// # Errors
    /// Exit 2 if there is no terminal to ask at, 1 if the answer is no.
    pub(crate) fn ask<'t>(
        &self,
        file: &str,
        topologies: impl IntoIterator<Item = &'t Topology>,
    ) -> Result<(), Failure> {
        let commands = collect_commands(topologies);
        if commands.is_empty() {
            return Ok(());
        }
        let confirmation = Confirmation::of(&commands, &working_folder());
        if self.yes {
            confirmation.remember();
            return Ok(());
        }
        if self.approved.as_ref() == Some(&confirmation.digest) || confirmation.is_known() {
            return Ok(());
        }
        let list = command_list(file, &commands);
        if list.len() > MAX_LIST_BYTES {
            return Err(Failure::Usage(format!(
                "{file}: its commands are longer than anybody reads before an answer ({} bytes): read them in \
                 the file, then add --yes to run them as root",
                list.len()
            )));
        }
        output::report_lines(&list);
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::Usage(format!(
                "{file}: these commands are not approved in this folder; read them, then add --yes to run them as root"
            )));
        }
        output::rewrite("run these commands? [y/N] ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            confirmation.remember();
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "{file}: not approved; nothing was run"
        )))
    }
}

/// The digest of the commands of this topology in this folder.
pub(crate) fn digest(topology: &Topology) -> String {
    Confirmation::of(&collect_commands([topology]), &working_folder()).digest
}

/// The folder in which commands run: `./serve` in another folder is another program.
fn working_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// Prints the commands of topologies that are not started.
pub(crate) fn print_commands<'t>(file: &str, topologies: impl IntoIterator<Item = &'t Topology>) {
    let commands = collect_commands(topologies);
    if !commands.is_empty() {
        output::report_lines(&command_list(file, &commands));
    }
}

/// Each command once, in the order of the files.
fn collect_commands<'t>(topologies: impl IntoIterator<Item = &'t Topology>) -> Vec<Command> {
    let mut commands = Vec::new();
    for command in topologies.into_iter().flat_map(Topology::commands) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

fn command_list(file: &str, commands: &[Command]) -> String {
    let mut text = format!(
        "neph: treat {file} as a script: it runs {} as root",
        counted(commands.len() as u64, "command")
    );
    for Command { owner, line } in commands {
        // Escaped: a command cannot write control characters to the terminal.
        text.push_str(&format!("\n  {}: {}", visible(owner), visible(line)));
    }
    text
}

/// Whether a list of commands was confirmed before: the file has one digest per line.
#[derive(Debug)]
struct Confirmation {
    digest: String,
    file: Option<PathBuf>,
}

impl Confirmation {
    fn of(commands: &[Command], folder: &Path) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(folder.as_os_str().as_bytes());
        hasher.update([0]);
        for Command { owner, line } in commands {
            for part in [owner, line] {
                hasher.update(part.as_bytes());
                hasher.update([0]);
            }
        }
        let mut digest = String::new();
        for byte in hasher.finalize() {
            digest.push_str(&format!("{byte:02x}"));
        }
        Self {
            digest,
            file: state_folder().map(|folder| folder.join("approved-commands")),
        }
    }

    fn is_known(&self) -> bool {
        let text = self
            .file
            .as_ref()
            .and_then(|file| fs::read_to_string(file).ok());
        text.is_some_and(|text| text.lines().any(|line| line == self.digest))
    }

    /// If the digest cannot be stored, neph asks the next time too.
    fn remember(&self) {
        if self.is_known() {
            return;
        }
        let _ = self.store();
    }

    fn store(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if let Some(folder) = file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut output_file = options.create(true).append(true).mode(0o600).open(file)?;
        writeln!(output_file, "{}", self.digest)
    }
}

/// `$XDG_STATE_HOME/neph`, or `~/.local/state/neph`.
fn state_folder() -> Option<PathBuf> {
    let absolute_path = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state_home = absolute_path("XDG_STATE_HOME");
    let state_home =
        state_home.or_else(|| absolute_path("HOME").map(|home| home.join(".local/state")));
    state_home.map(|state_home| state_home.join("neph"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Command {
        Command {
            owner: "service 'web' at site 'b'".to_owned(),
            line: line.to_owned(),
        }
    }

    #[test]
    fn listed_commands_have_no_control_characters() {
        let list = command_list("x.toml", &[command("serve\u{1b}[1A\rtrue"), command("b")]);
        assert_eq!(
            list,
            "neph: treat x.toml as a script: it runs 2 commands as root\n  service 'web' at site 'b': \
             serve\\u001b[1A\\u000dtrue\n  service 'web' at site 'b': b"
        );
    }

    #[test]
    fn only_the_approved_commands_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let confirmation_of = |line: &str| Confirmation {
            file: Some(folder.path().join("neph/approved-commands")),
            ..Confirmation::of(&[command(line)], Path::new("/here"))
        };
        assert!(!confirmation_of("a").is_known());
        confirmation_of("a").remember();
        assert!(confirmation_of("a").is_known() && !confirmation_of("b").is_known());
        // Separators keep adjacent commands distinct.
        let digest_in = |folder: &str, lines: [&str; 2]| {
            Confirmation::of(&lines.map(command), Path::new(folder)).digest
        };
        assert_ne!(
            digest_in("/here", ["a", "bc"]),
            digest_in("/here", ["ab", "c"])
        );
        assert_ne!(
            digest_in("/here", ["./a", "b"]),
            digest_in("/there", ["./a", "b"])
        );
    }
}
