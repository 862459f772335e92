//! Network namespaces with names, as `ip netns` knows them: mounts under /run/netns.
//!
//! Owns making, opening, entering and removing them. Knows nothing of what is inside. A thread
//! belongs to a namespace, not a process: sockets keep the namespace they were opened in, so a
//! prober thread enters once and stays.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

/// Where named namespaces are mounted.
pub const FOLDER: &str = "/run/netns";

/// What could not be done with which namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetNsError {
    /// The name is empty, has a slash or begins with a dot.
    #[error("network namespace name {name:?}: a name has no slash and does not begin with a dot")]
    Name {
        /// What was given.
        name: String,
    },
    /// The kernel refused.
    #[error("{operation} network namespace {name}: {source}{}", remedy(source))]
    Refused {
        /// The verb: make, open, enter, remove.
        operation: &'static str,
        /// Which one.
        name: String,
        /// Why.
        source: io::Error,
    },
}

impl NetNsError {
    /// Whether the namespace was not there, or was there already.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Name { .. } => io::ErrorKind::InvalidInput,
            Self::Refused { source, .. } => source.kind(),
        }
    }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; run it as root (CAP_SYS_ADMIN)",
        _ => "",
    }
}

/// An open handle of a network namespace. The namespace lives at least as long as the handle.
#[derive(Debug)]
pub struct NetNs {
    name: String,
    file: File,
}

impl NetNs {
    /// Makes a namespace and mounts it as `name`; needs `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken; `PermissionDenied` without the capability. A
    /// half-made one is removed again.
    pub fn create(name: &str) -> Result<Self, NetNsError> {
        let path = path_of(name)?;
        let refused = |source| NetNsError::Refused {
            operation: "make",
            name: name.into(),
            source,
        };
        fs::create_dir_all(FOLDER)
            .and_then(|()| share_folder())
            .map_err(refused)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(refused)?;
        // A thread of its own: unsharing would move the caller's sockets-to-be as well.
        let created = thread::scope(|scope| scope.spawn(|| unshare_and_mount(&path)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Err(source) = created {
            fs::remove_file(&path).map_err(refused)?;
            return Err(refused(source));
        }
        Self::open(name)
    }

    /// Opens the namespace mounted as `name`.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn open(name: &str) -> Result<Self, NetNsError> {
        let file = File::open(path_of(name)?).map_err(|source| NetNsError::Refused {
            operation: "open",
            name: name.into(),
            source,
        })?;
        Ok(Self {
            name: name.into(),
            file,
        })
    }

    /// Opens the namespace that the calling thread is in.
    ///
    /// # Errors
    /// Only where /proc is not mounted.
    pub fn current() -> Result<Self, NetNsError> {
        let name = "of this thread".to_owned();
        match File::open("/proc/thread-self/ns/net") {
            Ok(file) => Ok(Self { name, file }),
            Err(source) => Err(NetNsError::Refused {
                operation: "open",
                name,
                source,
            }),
        }
    }

    /// The name it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Moves the calling thread, and no other, into `ns`; needs `CAP_SYS_ADMIN`, unless it is there.
///
/// # Errors
/// `PermissionDenied` without the capability; `InvalidInput` when the file was no namespace.
pub fn enter(ns: &NetNs) -> Result<(), NetNsError> {
    if is_inside(ns) {
        return Ok(());
    }
    // SAFETY: setns changes which namespace this thread's later sockets belong to; no memory.
    match unsafe { libc::setns(ns.file.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(NetNsError::Refused {
            operation: "enter",
            name: ns.name.clone(),
            source: io::Error::last_os_error(),
        }),
    }
}

/// Whether the calling thread is in `ns`: a process that gave up its privileges there can stay.
fn is_inside(ns: &NetNs) -> bool {
    let number = |file: &File| file.metadata().map(|known| (known.dev(), known.ino()));
    let here = NetNs::current().ok().map(|here| number(&here.file));
    matches!((here, number(&ns.file)), (Some(Ok(here)), Ok(there)) if here == there)
}

/// Runs `work` on a fresh thread inside `ns` and hands back what it returned; its panic goes on
/// in the caller.
///
/// # Errors
/// As [`enter`].
pub fn with_namespace<T: Send>(
    ns: &NetNs,
    work: impl FnOnce() -> T + Send,
) -> Result<T, NetNsError> {
    thread::scope(|scope| scope.spawn(|| enter(ns).map(|()| work())).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Unmounts and removes `name`; one that is not there is removed already. What still runs inside
/// keeps the namespace itself alive, without a name.
///
/// # Errors
/// `PermissionDenied` without `CAP_SYS_ADMIN`.
pub fn remove(name: &str) -> Result<(), NetNsError> {
    let path = path_of(name)?;
    let refused = |source| NetNsError::Refused {
        operation: "remove",
        name: name.into(),
        source,
    };
    let text = c_path(&path).map_err(refused)?;
    // SAFETY: the path is a C string that outlives the call.
    if unsafe { libc::umount2(text.as_ptr(), libc::MNT_DETACH) } != 0 {
        let error = io::Error::last_os_error();
        // EINVAL: the file is there and nothing is mounted on it (a make that was killed).
        if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) {
            return Err(refused(error));
        }
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused(error)),
        _ => Ok(()),
    }
}

fn path_of(name: &str) -> Result<PathBuf, NetNsError> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err(NetNsError::Name { name: name.into() });
    }
    Ok(PathBuf::from(FOLDER).join(name))
}

fn c_path(path: &std::path::Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_encoded_bytes())?)
}

/// Makes the folder a shared mount of its own, exactly as `ip netns add` does. The first user must do
/// this: `ip` would otherwise bind the folder over itself later. Names that were mounted before could
/// then never be unlinked again (`EBUSY`, seen here).
fn share_folder() -> io::Result<()> {
    let share = libc::MS_SHARED | libc::MS_REC;
    match mount_folder(share) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            mount_folder(libc::MS_BIND | libc::MS_REC)?;
            mount_folder(share)
        }
        done => done,
    }
}

fn mount_folder(flags: libc::c_ulong) -> io::Result<()> {
    let folder = c_path(std::path::Path::new(FOLDER))?;
    // SAFETY: the paths are C strings alive for the call; binding and sharing need no data.
    let outcome = unsafe {
        libc::mount(
            folder.as_ptr(),
            folder.as_ptr(),
            c"none".as_ptr(),
            flags,
            std::ptr::null(),
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn unshare_and_mount(path: &std::path::Path) -> io::Result<()> {
    let target = c_path(path)?;
    // SAFETY: unshare(CLONE_NEWNET) gives this thread, which is about to end, its own namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both paths are C strings alive for the call; a bind mount needs no type and no data.
    let outcome = unsafe {
        libc::mount(
            c"/proc/thread-self/ns/net".as_ptr(),
            target.as_ptr(),
            std::ptr::null(),
            libc::MS_BIND,
            std::ptr::null(),
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn privileged(test: &str) -> bool {
        // SAFETY: geteuid cannot fail and touches no memory.
        let root = unsafe { libc::geteuid() } == 0;
        if !root {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{test} needs root"
            );
            println!("SKIP {test}: network namespaces need root");
        }
        root
    }

    #[test]
    fn a_namespace_name_outside_its_folder_is_refused() {
        for name in ["", "../etc", ".hidden", "a/b"] {
            assert!(
                matches!(NetNs::open(name), Err(NetNsError::Name { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn a_namespace_is_created_entered_and_removed_twice() {
        if !privileged("a_namespace_is_created_entered_and_removed_twice") {
            return;
        }
        let name = format!("nephtest-{}", std::process::id());
        let ns = NetNs::create(&name).expect("make");
        let error = NetNs::create(&name).expect_err("the name is taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let here = fs::read_link("/proc/thread-self/ns/net").expect("link");
        let namespace_link =
            with_namespace(&ns, || fs::read_link("/proc/thread-self/ns/net")).expect("enter");
        assert_ne!(here, namespace_link.expect("link"));
        assert_eq!(
            here,
            fs::read_link("/proc/thread-self/ns/net").expect("link")
        );
        remove(&name).expect("remove");
        remove(&name).expect("removing twice is no fault");
        assert!(!Path::new(FOLDER).join(&name).exists());
    }
}
