//! Ending what runs in a lab's namespaces.
//!
//! Owns finding those processes, by the inode of their network namespace, and ending them. It
//! does not matter who started them: a service's grandchildren, a shell, a capture.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use neph_sys::clock;
use neph_sys::deadline::Deadline;
use neph_sys::files;
use neph_sys::netns;
use neph_sys::process::{self, Request};

/// How long processes have to end by themselves.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the kernel may take to end killed ones.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Ends every process whose network namespace is one of these, but never the calling one: asked
/// first, killed after half a second.
pub(crate) fn end_in_namespaces(names: &[&str]) -> io::Result<()> {
    let namespace_ids: BTreeSet<(u64, u64)> = names
        .iter()
        .filter_map(|name| namespace_id(&Path::new(netns::FOLDER).join(name)))
        .collect();
    if namespace_ids.is_empty() {
        return Ok(());
    }
    request_until_ended(&namespace_ids, Request::End, EXIT_TIMEOUT)?;
    if request_until_ended(&namespace_ids, Request::Kill, KILL_TIMEOUT)? {
        return Ok(());
    }
    Err(io::Error::other(
        "processes in the lab's namespaces do not end",
    ))
}

/// Asks all of them, including new ones, until there is none or the time is over.
fn request_until_ended(
    namespace_ids: &BTreeSet<(u64, u64)>,
    request: Request,
    timeout: Duration,
) -> io::Result<bool> {
    let deadline = Deadline::after(timeout);
    let mut asked_pids = BTreeSet::new();
    loop {
        let pids = processes_in_namespaces(namespace_ids)?;
        if pids.is_empty() {
            return Ok(true);
        }
        for pid in pids {
            if asked_pids.insert(pid) {
                signal_process(pid, namespace_ids, request)?;
            }
        }
        if deadline.has_passed() {
            return Ok(false);
        }
        clock::nap(Duration::from_millis(5));
    }
}

/// Asks the process if it is inside. Between a look at /proc and a signal it may end and its number
/// become another's: it is looked at again when a descriptor holds on to it.
fn signal_process(
    pid: u32,
    namespace_ids: &BTreeSet<(u64, u64)>,
    request: Request,
) -> io::Result<()> {
    match process::descriptor(pid) {
        Ok(descriptor) if is_in_namespaces(pid, namespace_ids) => {
            process::ask_through(descriptor.as_fd(), request)
        }
        // A kernel older than 5.3 has none, and a process with all its descriptors in use gets none.
        Err(error) if cannot_open_descriptor(&error) => process::ask(pid, request),
        Err(error) if is_in_namespaces(pid, namespace_ids) => Err(error),
        _ => Ok(()),
    }
}

fn cannot_open_descriptor(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || files::is_limit(error)
}

/// One that is gone, or a zombie, has no namespace.
fn is_in_namespaces(pid: u32, namespace_ids: &BTreeSet<(u64, u64)>) -> bool {
    let namespace = format!("/proc/{pid}/ns/net");
    namespace_id(Path::new(&namespace)).is_some_and(|id| namespace_ids.contains(&id))
}

/// The processes inside, apart from the calling one and from those that have ended.
fn processes_in_namespaces(namespace_ids: &BTreeSet<(u64, u64)>) -> io::Result<Vec<u32>> {
    let own = std::process::id();
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if pid != own && is_in_namespaces(pid, namespace_ids) {
            pids.push(pid);
        }
    }
    Ok(pids)
}

fn namespace_id(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn processes_outside_the_namespaces_receive_no_signal() {
        let mut child = process::command("sleep").arg("60").spawn().expect("sleep");
        let no_namespace = BTreeSet::from([(0, 0)]);
        signal_process(child.id(), &no_namespace, Request::Kill).expect("nothing to do");
        assert_eq!(
            child.try_wait().expect("ours"),
            None,
            "it received no signal"
        );
        let own_namespace_id = namespace_id(Path::new("/proc/self/ns/net")).expect("we have one");
        signal_process(
            child.id(),
            &BTreeSet::from([own_namespace_id]),
            Request::Kill,
        )
        .expect("our own child");
        assert!(!child.wait().expect("it ended").success());
    }
}
