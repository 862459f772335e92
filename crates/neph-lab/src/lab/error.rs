//! What can go wrong with a lab.

use std::io;
use std::path::PathBuf;

use neph_sys::netns::NetNsError;
use neph_sys::offload::OffloadError;
use neph_sys::place::PlaceError;

use crate::engine::EngineError;
use crate::group::GroupError;
use crate::guest::ConsoleError;
use crate::journal::UndoError;
use crate::program::ProgramError;
use crate::tunnel::TunnelError;

/// What went wrong with a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The name does not fit.
    #[error(
        "lab name '{name}': begin with a lower-case letter, then at most 15 lower-case letters, \
         digits or underscores"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// The name is taken.
    #[error("a lab called '{name}' is {state}: choose another name or take it down first")]
    Taken {
        /// Which name.
        name: String,
        /// Up, or left behind.
        state: &'static str,
    },
    /// A link was recorded there before.
    #[error(
        "{} is there already, from an earlier lab: name another folder, or move that one away",
        file.display()
    )]
    Recorded {
        /// Its record.
        file: PathBuf,
    },
    /// Labs need privileges.
    #[error(
        "a lab needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN): {source}; run neph as root, \
         for example by sudo"
    )]
    NotPermitted {
        /// What was refused.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something lies where only labs have their folders.
    #[error("{} is no lab's: remove it (rm -r '{}')", path.display(), path.display())]
    Stranger {
        /// Where.
        path: PathBuf,
    },
    /// A lab's journal cannot be read.
    #[error(
        "read the journal of lab {lab}: {source}; remove what ip netns list shows as neph-{lab}-..., \
         then {}",
        folder.display()
    )]
    Unreadable {
        /// Which lab.
        lab: String,
        /// Where it has its files.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody wanted the lab no more before it was up.
    #[error("lab {lab} was stopped while it came up; what was there of it is taken down again")]
    Interrupted {
        /// Which lab.
        lab: String,
    },
    /// The journal could not be written.
    #[error("write the undo journal of lab {lab}: {source}")]
    Journal {
        /// Which lab.
        lab: String,
        /// Why.
        source: io::Error,
    },
    /// A setting was refused.
    #[error(
        "set {setting} to '{value}' in namespace {namespace}: {source}; {}",
        remedy_of_setting(source)
    )]
    Setting {
        /// Its dotted name.
        setting: String,
        /// What it should be.
        value: String,
        /// Where.
        namespace: String,
        /// Why.
        source: io::Error,
    },
    /// There is no such site.
    #[error("lab {lab} has no site '{site}'")]
    NoSite {
        /// Which lab.
        lab: String,
        /// What was asked for.
        site: String,
    },
    /// Guests cannot run here, and nothing takes their place.
    #[error("[[guest]] {guests} cannot run here: {why}; {remedy}")]
    NoGuests {
        /// The name of their table.
        guests: String,
        /// Why not.
        why: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A guest's console.
    #[error(transparent)]
    Console(#[from] ConsoleError),
    /// A site's share of the machine cannot be had.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// What is to run at a site cannot be put there.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A transfer cannot be carried out.
    #[error("traffic '{traffic}': {source}")]
    Traffic {
        /// Which one.
        traffic: String,
        /// Why.
        source: io::Error,
    },
    /// A file of the lab's own could not be written.
    #[error("write {}: {source}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A service's log cannot be written.
    #[error("write the log {} of service '{service}': {source}", log.display())]
    Log {
        /// Which service.
        service: String,
        /// Which file.
        log: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A service could not be started.
    #[error("service '{service}': {source}")]
    NotStarted {
        /// Which service.
        service: String,
        /// Why.
        source: ProgramError,
    },
    /// A service did not come up, or ended early.
    #[error("service '{service}' {what}: {log}")]
    Service {
        /// Which service.
        service: String,
        /// What it did instead.
        what: String,
        /// The last lines of its log, and where it is.
        log: String,
    },
    /// The lab cannot be asked, or not told about.
    #[error("the status of lab {lab}: {source}")]
    Status {
        /// Which lab.
        lab: String,
        /// Why.
        source: io::Error,
    },
    /// Nobody carries this lab.
    #[error(
        "lab {lab} is not up: neph lab list shows what is there, neph lab down takes what is left"
    )]
    NotUp {
        /// Which lab.
        lab: String,
    },
    /// A thread could not be started.
    #[error("start the thread of {what}: {source}")]
    Thread {
        /// Of a link or tunnel, by its name, or what it is for.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A namespace could not be made or used.
    #[error(transparent)]
    NetNs(#[from] NetNsError),
    /// This kernel has not what a topology asks for.
    #[error("{what}; {remedy}")]
    Lacking {
        /// What, and where it was asked for.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A program refused.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// An offload could not be switched off.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A link could not be carried.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A tunnel could not be carried.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// It could not be taken down.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// What helps where a setting was refused.
fn remedy_of_setting(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => {
            "this kernel has no such setting in a namespace: leave it out, or load the module that \
             has it"
        }
        io::ErrorKind::InvalidInput => "write a value that it takes",
        _ => "leave it out, or run where it may be set",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_not_there_is_left_out() {
        let of = |kind: io::ErrorKind| remedy_of_setting(&kind.into());
        assert!(of(io::ErrorKind::NotFound).contains("leave it out, or load the module"));
        assert!(of(io::ErrorKind::InvalidInput).contains("a value that it takes"));
    }
}
