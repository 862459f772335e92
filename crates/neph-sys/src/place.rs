//! A place where something can run: a network namespace, and the control groups that limit what runs
//! there.
//!
//! Owns going there: a thread, what it starts from then on, or a program that is about to begin.
//! Does not make namespaces or groups. Version 1 of control groups moves single threads. Version 2
//! moves whole processes only, so that a thread stays where it is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::netns::{self, NetNs, NetNsError};
use crate::process::ChildOptions;

/// What kept something from running at a place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Its namespace.
    #[error(transparent)]
    Namespace(#[from] NetNsError),
    /// One of its control groups.
    #[error("run in network namespace {namespace} in the control group {}: {source}", group.display())]
    Group {
        /// Which namespace.
        namespace: String,
        /// Which group.
        group: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl PlaceError {
    /// Whether it was not there, may not be entered, or cannot be called so.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Namespace(error) => error.kind(),
            Self::Group { source, .. } => source.kind(),
        }
    }
}

/// A network namespace with a name, and the limits of what runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    namespace: String,
    groups: Vec<PathBuf>,
}

impl Placement {
    /// The network namespace of this name, without limits.
    pub fn with_name(namespace: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            groups: Vec::new(),
        }
    }

    /// The same within these control groups, each by its folder.
    #[must_use]
    pub fn within(mut self, groups: Vec<PathBuf>) -> Self {
        self.groups = groups;
        self
    }

    /// The name of its network namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Runs `work` here on a fresh thread; threads that it starts are here too. Its panic goes on
    /// in the caller.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, PlaceError> {
        let here = || self.enter().map(|()| work());
        thread::scope(|scope| scope.spawn(here).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Moves the calling thread here, and no other.
    ///
    /// # Errors
    /// The namespace or a control group is not there, or may not be entered.
    pub fn enter(&self) -> Result<(), PlaceError> {
        for group in &self.groups {
            let tasks = group.join("tasks");
            if tasks.exists() {
                fs::write(tasks, "0").map_err(|source| self.refused(group, source))?;
            }
        }
        self.enter_namespace()
    }

    /// Moves the calling thread into the namespace only: for a process that becomes a program there,
    /// arranged by [`Self::arrange`].
    ///
    /// # Errors
    /// The namespace is not there, or may not be entered.
    pub fn enter_namespace(&self) -> Result<(), PlaceError> {
        Ok(netns::enter(&NetNs::open(&self.namespace)?)?)
    }

    /// Makes `command` start within the groups. Its namespace is that of the thread which starts it.
    ///
    /// # Errors
    /// A control group's name cannot be passed to the kernel.
    pub fn arrange(
        &self,
        child_options: ChildOptions,
        command: &mut Command,
    ) -> Result<(), PlaceError> {
        let mut child_options = child_options;
        for group in &self.groups {
            child_options = child_options
                .in_group(&group.join("cgroup.procs"))
                .map_err(|source| self.refused(group, source))?;
        }
        child_options.arrange(command);
        Ok(())
    }

    /// Whether threads here have a share of CPU time only. It applies to ordinary threads: one with
    /// real-time priority is not limited.
    pub fn is_rationed(&self) -> bool {
        let rationed = |group: &PathBuf| {
            let read = |file| fs::read_to_string(group.join(file)).unwrap_or_default();
            let (first, second) = (read("cpu.cfs_quota_us"), read("cpu.max"));
            let has_quota = !first.is_empty() && !first.starts_with('-');
            has_quota || !second.is_empty() && !second.starts_with("max")
        };
        self.groups.iter().any(rationed)
    }

    fn refused(&self, group: &Path, source: io::Error) -> PlaceError {
        PlaceError::Group {
            namespace: self.namespace.clone(),
            group: group.to_owned(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_namespace_or_group_is_reported_by_name() {
        let error = Placement::with_name("no-such-place")
            .run(|| ())
            .expect_err("none");
        assert!(error.to_string().contains("no-such-place"), "{error}");
        let escape = Placement::with_name("../x").enter().expect_err("no name");
        assert!(matches!(
            escape,
            PlaceError::Namespace(NetNsError::Name { .. })
        ));
    }

    #[test]
    fn only_a_cpu_quota_limits_a_placement() {
        let folder = std::env::temp_dir().join(format!("neph-place-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let placement = Placement::with_name("x").within(vec![folder.clone()]);
        let is_rationed_with = |quota: &str| {
            fs::write(folder.join("cpu.cfs_quota_us"), quota).expect("our own");
            placement.is_rationed()
        };
        assert!(!placement.is_rationed(), "a group of CPUs only");
        assert_eq!(
            (is_rationed_with("-1\n"), is_rationed_with("5000\n")),
            (false, true)
        );
        fs::remove_dir_all(&folder).expect("our own");
    }
}
