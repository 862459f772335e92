//! Takes privileges from this process for the rest of its life: user, capabilities, system calls, files.
//!
//! Owns the order in which that is done, and what is in force afterwards. Does not decide what a
//! command needs. Capabilities and files hold for the calling thread and for threads that it starts
//! later, so this is called before any other thread exists.

mod calls;
mod capabilities;
mod files;
mod filter;
mod user;

use std::io;
use std::path::PathBuf;

pub use caps::Capability;

pub use calls::Extra;
pub use files::Files;
pub use user::{User, UserError, is_root};

/// Why privileges were not given up.
#[derive(Debug, thiserror::Error)]
pub enum RestrictError {
    /// A step that the kernel refused although it has what the step needs.
    #[error("{operation}: {source}")]
    Step {
        /// The step.
        operation: String,
        /// Why.
        source: io::Error,
    },
    /// The user that was named has no right to a file that is needed.
    #[error("user {user} may not {how} {}", path.display())]
    NoAccess {
        /// The user.
        user: String,
        /// `read`, or `write to`.
        how: &'static str,
        /// The file or folder.
        path: PathBuf,
    },
}

impl RestrictError {
    fn new(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Step {
            operation: operation.into(),
            source: source.into(),
        }
    }

    fn last(operation: impl Into<String>) -> Self {
        Self::new(operation, io::Error::last_os_error())
    }
}

/// What remains allowed.
#[derive(Clone, Debug, Default)]
pub struct Restriction {
    /// The user to become; `None` stays the same.
    pub user: Option<User>,
    /// Capabilities that remain, as far as the process has them.
    pub capabilities: Vec<Capability>,
    /// System calls beyond those that every command needs.
    pub calls: Vec<Extra>,
    /// Files that may be opened.
    pub files: Files,
    /// TCP connections and binding TCP ports are permitted. Landlock before ABI 4 (Linux 6.7) allows all.
    pub connects: bool,
}

/// Whether a mechanism of the kernel is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is.
    On,
    /// It is not, and why.
    Off(String),
}

impl From<Result<Self, RestrictError>> for Force {
    fn from(outcome: Result<Self, RestrictError>) -> Self {
        outcome.unwrap_or_else(|error| Self::Off(error.to_string()))
    }
}

/// What is in force after [`Restriction::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedRestrictions {
    /// The user that was changed to.
    pub user: Option<String>,
    /// Effective and permitted capabilities.
    pub capabilities: Vec<Capability>,
    /// The filter of system calls.
    pub seccomp: Force,
    /// The rules of files and connections.
    pub landlock: Force,
}

impl Restriction {
    /// Takes away everything else, and the right to ever get it back (`no_new_privs`).
    ///
    /// If seccomp or Landlock is missing, the rest is still done: [`AppliedRestrictions`] reports it.
    ///
    /// # Errors
    /// The user or the capabilities cannot be changed. [`RestrictError::NoAccess`] if the named user may not
    /// read or write what is needed: it gets no capability to do so.
    pub fn apply(&self) -> Result<AppliedRestrictions, RestrictError> {
        let mut remaining = self.capabilities.clone();
        if let Some(user) = &self.user {
            user.become_it()?;
            capabilities::raise()?;
        } else {
            remaining.extend(capabilities::needed_for(&self.files)?);
        }
        capabilities::limit_bounding_set(&remaining)?;
        let capabilities = capabilities::keep(&remaining)?;
        if let Some(user) = &self.user {
            self.files.check_access_of(user)?;
        }
        filter::forbid_new_privileges()?;
        let landlock = files::limit(&self.files, self.connects).into();
        let seccomp = filter::install(&self.calls).into();
        Ok(AppliedRestrictions {
            user: self.user.as_ref().map(|user| user.name().to_owned()),
            capabilities,
            seccomp,
            landlock,
        })
    }
}

#[cfg(test)]
mod tests;
