//! `neph control invite`: an invitation for one agent or operator.
//!
//! Owns the destination of the line. neph-control creates and checks invitations.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_agent::remote::Role;
use neph_control::{INVITATION_LIFETIME, last_address};
use neph_sys::random;

use super::{NameArgs, now, open_registry};
use crate::controller_commands::DEFAULT_PORT;
use crate::exit::{Failure, Outcome};
use crate::output;

#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    name_args: NameArgs,
    /// Write the invitation to this new file (mode 0600) instead of standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let NameArgs {
        name,
        operator,
        folder,
    } = &args.name_args;
    let registry = open_registry(&folder.folder)?;
    // Created before the invitation, whose validity starts at once.
    let output = &args.output;
    let secret = output.as_deref().map(SecretFile::create).transpose()?;
    let random_bytes = random::bytes().map_err(Failure::refused)?;
    let (invitation, role, command) = if *operator {
        let invitation = registry.invite_operator(name.clone(), now(), random_bytes);
        (invitation, Role::Operator, "neph run PLAN")
    } else {
        let invitation = registry.invite(name.clone(), now(), random_bytes);
        (invitation, Role::Agent, "neph agent")
    };
    let line = invitation.map_err(Failure::usage)?.to_string();
    match secret {
        Some(secret) => secret.write(&line)?,
        None => output::print_line(&line)?,
    }
    let port = last_address(&folder.folder).map_or(DEFAULT_PORT, |address| address.port());
    let file = output
        .as_deref()
        .unwrap_or_else(|| Path::new("FILE"))
        .display();
    let minutes = INVITATION_LIFETIME.nanos() / 60_000_000_000;
    output::say(&format!(
        "neph control: the invitation enrols its holder as {role} {name}, once, within {minutes} minutes; on its \
         host: {command} --controller wss://CONTROLLER:{port} --invite-file {file}"
    ));
    Ok(Outcome::Done)
}

/// A new file for a secret. It is removed if nothing is written.
struct SecretFile<'a> {
    path: &'a Path,
    file: File,
    is_written: bool,
}

impl<'a> SecretFile<'a> {
    fn create(path: &'a Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        let file = options.create_new(true).write(true).mode(0o600).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::usage(format!(
                "{} exists: an invitation is written to a new file; delete this one, or name another file",
                path.display()
            )),
            _ => Failure::usage(format!("make {}: {error}", path.display())),
        })?;
        Ok(Self {
            path,
            file,
            is_written: false,
        })
    }

    fn write(mut self, line: &str) -> Result<(), Failure> {
        let result = writeln!(self.file, "{line}").and_then(|()| self.file.sync_all());
        result
            .map_err(|error| Failure::refused(format!("write {}: {error}", self.path.display())))?;
        self.is_written = true;
        Ok(())
    }
}

impl Drop for SecretFile<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            // If the file cannot be removed, an empty file stays.
            let _ = fs::remove_file(self.path);
        }
    }
}
