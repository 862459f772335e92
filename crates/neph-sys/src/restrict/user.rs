//! Becoming another user for good.
//!
//! Owns the search of a user by name and the change of all identities of the process.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::RestrictError;

/// The largest entry of the user database that is read.
const LARGEST: usize = 1 << 20;

/// Why a user cannot be changed to.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The database has no such name.
    #[error("there is no user '{name}' on this host")]
    Unknown {
        /// What was requested.
        name: String,
    },
    /// The database cannot be read.
    #[error("find user '{name}': {source}")]
    Unreadable {
        /// What was requested.
        name: String,
        /// Why.
        source: io::Error,
    },
}

/// A user of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

impl User {
    /// The user of this name in the user database (getpwnam(3)); a number that is no name there is the
    /// user's and its group's.
    ///
    /// # Errors
    /// There is none, or the database cannot be read.
    pub fn from_name(name: &str) -> Result<Self, UserError> {
        let unknown = || UserError::Unknown {
            name: name.to_owned(),
        };
        let text = CString::new(name).map_err(|_| unknown())?;
        let mut room = vec![0; 1 << 14];
        loop {
            let mut entry = MaybeUninit::<libc::passwd>::uninit();
            let mut found: *mut libc::passwd = ptr::null_mut();
            // SAFETY: the name is a C string, `entry` and `room` are owned here and alive for the call,
            // and the size of `room` is passed.
            let outcome = unsafe {
                libc::getpwnam_r(
                    text.as_ptr(),
                    entry.as_mut_ptr(),
                    room.as_mut_ptr(),
                    room.len(),
                    &raw mut found,
                )
            };
            if outcome == libc::ERANGE && room.len() < LARGEST {
                room.resize(room.len() * 2, 0);
                continue;
            }
            if found.is_null() {
                // Some databases report "none" as an error of these kinds (getpwnam(3)). A container may have
                // users that no database names.
                if let Ok(number) = name.parse() {
                    return Ok(Self {
                        name: name.to_owned(),
                        uid: number,
                        gid: number,
                    });
                }
                return Err(match outcome {
                    0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => unknown(),
                    code => UserError::Unreadable {
                        name: name.to_owned(),
                        source: io::Error::from_raw_os_error(code),
                    },
                });
            }
            // SAFETY: the call reported an entry, so it is filled in.
            let entry = unsafe { entry.assume_init() };
            return Ok(Self {
                name: name.to_owned(),
                uid: entry.pw_uid,
                gid: entry.pw_gid,
            });
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes it the user of all threads of this process, in all identities, with its own group only.
    /// Permitted capabilities stay until they are limited.
    pub(super) fn become_it(&self) -> Result<(), RestrictError> {
        let as_whom = |operation: &str| format!("{operation} of user '{}'", self.name);
        caps::securebits::set_keepcaps(true).map_err(|error| {
            RestrictError::new("keep capabilities", io::Error::other(error.to_string()))
        })?;
        // SAFETY: setgroups reads one gid_t, alive for the call; the C library changes all threads.
        if unsafe { libc::setgroups(1, &raw const self.gid) } != 0 {
            return Err(RestrictError::last(as_whom("take the groups")));
        }
        // SAFETY: setresgid takes integers only; the C library changes all threads.
        if unsafe { libc::setresgid(self.gid, self.gid, self.gid) } != 0 {
            return Err(RestrictError::last(as_whom("take the group")));
        }
        // SAFETY: setresuid takes integers only; the C library changes all threads.
        if unsafe { libc::setresuid(self.uid, self.uid, self.uid) } != 0 {
            return Err(RestrictError::last(as_whom("take the identity")));
        }
        Ok(())
    }
}

/// Whether this process runs as root (effective user 0).
pub fn is_root() -> bool {
    // SAFETY: geteuid cannot fail and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// Whether the user and the capabilities in effect allow it (`R_OK`, `W_OK`, `X_OK`). A kernel that
/// cannot be asked (before 5.8) is taken to refuse.
///
/// # Errors
/// The path is not there, or cannot be asked about.
pub(super) fn may_access(path: &Path, access_mode: libc::c_int) -> io::Result<bool> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that outlives the call. The raw call: musl's wrapper forks.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            libc::AT_FDCWD,
            text.as_ptr(),
            access_mode,
            libc::AT_EACCESS,
        )
    };
    if outcome == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => Ok(false),
        _ => Err(error),
    }
}
