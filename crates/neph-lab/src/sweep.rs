//! Ending what runs in a lab's namespaces.
//!
//! Owns finding those processes, by the inode of their network namespace, and ending them. It
//! does not matter who started them: a service's grandchildren, a shell, a capture.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use neph_sys::netns;
use neph_sys::process::{self, Request};

/// How long processes have to end by themselves.
const GRACE: Duration = Duration::from_millis(500);
/// How long the kernel may take to end killed ones.
const KILLED: Duration = Duration::from_secs(5);

/// Ends every process whose network namespace is one of these, but never the calling one: asked
/// first, killed after half a second.
pub(crate) fn namespaces(names: &[&str]) -> io::Result<()> {
    let wanted: BTreeSet<(u64, u64)> = names
        .iter()
        .filter_map(|name| identity(&Path::new(netns::FOLDER).join(name)))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    until_gone(&wanted, Request::End, GRACE)?;
    if until_gone(&wanted, Request::Kill, KILLED)? {
        return Ok(());
    }
    Err(io::Error::other(
        "processes in the lab's namespaces do not end",
    ))
}

/// Asks all of them, newcomers too, until there is none or the time is over.
fn until_gone(
    wanted: &BTreeSet<(u64, u64)>,
    request: Request,
    patience: Duration,
) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    let mut asked = BTreeSet::new();
    loop {
        let inside = inside(wanted)?;
        if inside.is_empty() {
            return Ok(true);
        }
        for pid in inside {
            if asked.insert(pid) {
                process::ask(pid, request)?;
            }
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes inside, apart from the calling one and from those that have ended.
fn inside(wanted: &BTreeSet<(u64, u64)>) -> io::Result<Vec<u32>> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        // One that is gone by now, or a zombie, has no namespace.
        let is_inside =
            identity(&entry.path().join("ns/net")).is_some_and(|id| wanted.contains(&id));
        if is_inside && pid != own {
            found.push(pid);
        }
    }
    Ok(found)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let told = fs::metadata(path).ok()?;
    Some((told.dev(), told.ino()))
}
