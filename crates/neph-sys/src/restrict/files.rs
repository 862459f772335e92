//! Files that may be opened, and TCP connections (Landlock).
//!
//! Owns the rules. What is open already stays usable.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::user::User;
use super::{Force, RestrictError};

/// The newest rights that the rules name; older kernels take the part that they know.
const KNOWN: ABI = ABI::V6;

/// Which files may be opened, with all that is beneath a folder. Those that do not exist are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// For reading, though the user may have no right to: capabilities are kept where that needs one.
    pub read: Vec<PathBuf>,
    /// For reading as far as the user has the right to.
    pub shared: Vec<PathBuf>,
    /// For reading, writing, making and removing.
    pub write: Vec<PathBuf>,
}

impl Files {
    /// The first file of `read` that the user may not read with the capabilities in effect.
    pub(super) fn unreadable(&self) -> Option<&PathBuf> {
        self.read.iter().find(|path| !may(path, libc::R_OK))
    }

    /// The first file or folder of `write` that the user may not write to with the capabilities in
    /// effect.
    pub(super) fn unwritable(&self) -> Option<&PathBuf> {
        self.write.iter().find(|path| {
            let search = if path.is_dir() { libc::X_OK } else { 0 };
            !may(path, libc::W_OK | search)
        })
    }

    /// Whether the user that this process is now may read and write all of them.
    pub(super) fn check_access_of(&self, user: &User) -> Result<(), RestrictError> {
        let refused = |how: &'static str, path: &PathBuf| RestrictError::NoAccess {
            user: user.name().to_owned(),
            how,
            // `.` alone does not show which folder it was.
            path: path.canonicalize().unwrap_or_else(|_| path.clone()),
        };
        match (self.unreadable(), self.unwritable()) {
            (Some(path), _) => Err(refused("read", path)),
            (None, Some(path)) => Err(refused("write to", path)),
            (None, None) => Ok(()),
        }
    }
}

/// What is not there needs no capability.
fn may(path: &Path, access_mode: libc::c_int) -> bool {
    super::user::may_access(path, access_mode).unwrap_or(true)
}

/// Limits the calling thread, and threads that it starts, to these files.
pub(super) fn limit(files: &Files, connects: bool) -> Result<Force, RestrictError> {
    let refused = |error: RulesetError| RestrictError::new("limit files", io::Error::other(error));
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))
        .map_err(refused)?
        .scope(Scope::from_all(KNOWN))
        .map_err(refused)?;
    if !connects {
        rules = rules
            .handle_access(AccessNet::from_all(KNOWN))
            .map_err(refused)?;
    }
    let mut rules = rules.create().map_err(refused)?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let groups = [
        (&files.read, read),
        (&files.shared, read),
        (&files.write, read | AccessFs::from_write(KNOWN)),
    ];
    for (paths, access) in groups {
        for path in paths {
            rules = match rule(path, access) {
                Some(rule) => rules.add_rule(rule).map_err(refused)?,
                None => rules,
            };
        }
    }
    let status = rules.restrict_self().map_err(refused)?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Force::Off("Landlock is not enabled".to_owned())
        }
        (RulesetStatus::NotEnforced, _) => Force::Off("this kernel has no Landlock".to_owned()),
        _ => Force::On,
    })
}

/// A rule of one path, with the rights that its kind of file can have.
/// None of a pipe that the shell has made, which is in no file system: it stays usable without.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> Option<PathBeneath<PathFd>> {
    let kind = path.metadata().ok()?.file_type();
    if (kind.is_fifo() || kind.is_socket()) && path.canonicalize().is_err() {
        return None;
    }
    let fd = PathFd::new(path).ok()?;
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(KNOWN)
    };
    Some(PathBeneath::new(fd, access))
}
