//! Errors of a lab.

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

/// An error of a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The name is invalid.
    #[error(
        "lab name '{name}': begin with a lower-case letter, then at most 15 lower-case letters, \
         digits or underscores"
    )]
    InvalidName {
        /// The given name.
        name: String,
    },
    /// The name is taken.
    #[error("a lab called '{name}' is {state}: choose another name or take it down first")]
    NameTaken {
        /// The name.
        name: String,
        /// Up, or left behind.
        state: &'static str,
    },
    /// A record of a link exists already.
    #[error(
        "{} is there already, from an earlier lab: name another folder, or move that one away",
        file.display()
    )]
    RecordExists {
        /// The record.
        file: PathBuf,
    },
    /// A lab needs privileges.
    #[error(
        "a lab needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN): {source}; run neph as root, \
         for example by sudo"
    )]
    NotPermitted {
        /// The missing privilege.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A foreign entry in the folder of labs.
    #[error("{} is no lab's: remove it (rm -r '{}')", path.display(), path.display())]
    ForeignEntry {
        /// The entry.
        path: PathBuf,
    },
    /// A lab's journal cannot be read.
    #[error(
        "read the journal of lab {lab}: {source}; remove what ip netns list shows as neph-{lab}-..., \
         then {}",
        folder.display()
    )]
    UnreadableJournal {
        /// The lab.
        lab: String,
        /// The folder of its files.
        folder: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The lab was cancelled before it was up.
    #[error("lab {lab} was stopped while it came up; what was there of it is taken down again")]
    Interrupted {
        /// The lab.
        lab: String,
    },
    /// The journal could not be written.
    #[error("write the undo journal of lab {lab}: {source}")]
    Journal {
        /// The lab.
        lab: String,
        /// The error.
        source: io::Error,
    },
    /// A setting was refused.
    #[error(
        "set {setting} to '{value}' in namespace {namespace}: {source}; {}",
        setting_remedy(source)
    )]
    Setting {
        /// The dotted name.
        setting: String,
        /// The value.
        value: String,
        /// The namespace.
        namespace: String,
        /// The error.
        source: io::Error,
    },
    /// There is no such site.
    #[error("lab {lab} has no site '{site}'")]
    NoSite {
        /// The lab.
        lab: String,
        /// The requested site.
        site: String,
    },
    /// Guests cannot run here, and the topology does not allow namespaces.
    #[error("[[guest]] {guests} cannot run here: {reason}; {remedy}")]
    UnsupportedGuests {
        /// The name of their table.
        guests: String,
        /// Why not.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// An error of a guest's console.
    #[error(transparent)]
    Console(#[from] ConsoleError),
    /// The host cannot provide a site's share.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A process cannot be moved to a site.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A transfer failed.
    #[error("traffic '{traffic}': {source}")]
    Traffic {
        /// The transfer.
        traffic: String,
        /// The error.
        source: io::Error,
    },
    /// A file of the lab could not be written.
    #[error("write {}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A service's log cannot be written.
    #[error("write the log {} of service '{service}': {source}", log.display())]
    ServiceLog {
        /// The service.
        service: String,
        /// The file.
        log: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A service could not be started.
    #[error("service '{service}': {source}")]
    ServiceNotStarted {
        /// The service.
        service: String,
        /// The error.
        source: ProgramError,
    },
    /// A service did not become ready, or ended early.
    #[error("service '{service}' {problem}: {log}")]
    ServiceFailed {
        /// The service.
        service: String,
        /// What happened instead.
        problem: String,
        /// The last lines of its log, and the file.
        log: String,
    },
    /// The status of a lab is not available.
    #[error("the status of lab {lab}: {source}")]
    Status {
        /// The lab.
        lab: String,
        /// The error.
        source: io::Error,
    },
    /// No process runs this lab.
    #[error("lab {lab} is not up: neph lab list shows all labs, neph lab down removes leftovers")]
    NotUp {
        /// The lab.
        lab: String,
    },
    /// A thread could not be started.
    #[error("start the thread of {task}: {source}")]
    Thread {
        /// The name of the link or tunnel, or the task of the thread.
        task: String,
        /// The error.
        source: io::Error,
    },
    /// A namespace could not be created or used.
    #[error(transparent)]
    NetNs(#[from] NetNsError),
    /// This kernel lacks a feature that the topology needs.
    #[error("{problem}; {remedy}")]
    MissingKernelFeature {
        /// The feature, and where it is needed.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// A program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// An offload could not be switched off.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A link's engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A tunnel failed.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// The lab could not be taken down.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// The remedy if a setting was refused.
fn setting_remedy(source: &io::Error) -> &'static str {
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
    fn a_missing_setting_has_the_remedy_to_leave_it_out() {
        let remedy = |kind: io::ErrorKind| setting_remedy(&kind.into());
        assert!(remedy(io::ErrorKind::NotFound).contains("leave it out, or load the module"));
        assert!(remedy(io::ErrorKind::InvalidInput).contains("a value that it takes"));
    }
}
