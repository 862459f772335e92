//! The journal of a lab: lists what it acquires, before it acquires it, so that any process can undo it.
//!
//! Owns the folder /run/neph/LAB with the journal and the lab's other files. One line is one object; removal
//! is in reverse order. Processes are not listed: all processes in the lab's namespaces belong to the lab.
//! The file is locked while a lab comes up, so that no process takes down an incomplete lab. The kernel
//! releases the lock when its owner dies.

mod new_lab_folder;
mod undo;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_sys::deadline::wait_until;
use new_lab_folder::{NewLabFolder, remove_abandoned_folders};

pub use undo::UndoError;
pub(crate) use undo::undo;

/// Folder of the journals: lost at a reboot, like everything that labs acquire.
const ROOT: &str = "/run/neph";
const JOURNAL_FILE: &str = "journal";
/// The group of interfaces to remove; any number but 0, the default group.
const REMOVAL_GROUP: u32 = 1_853_189_232;

/// An object that a lab acquires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LabObject {
    /// A named network namespace.
    Namespace(String),
    /// An interface in a namespace.
    Link {
        namespace: String,
        interface: String,
    },
    /// A control group, by its folder.
    Group(PathBuf),
}

/// A journal that is open for writing.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
}

/// Identifies a journal among others of the same name: names are reused, and inodes too unless the file is
/// open.
#[derive(Debug)]
pub(crate) struct JournalIdentity(File);

/// Which lab to undo.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UndoTarget<'w> {
    /// The lab that has the name now.
    CurrentLab,
    /// The lab with this journal, if it still exists.
    SameJournal(&'w JournalIdentity),
    /// The lab that has the name now, if its owner has ended.
    OwnerEnded,
}

/// Whether a lab's owner process exists for the lab only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HasKeeper {
    /// It ends when the lab is taken down, which waits for it.
    Yes,
    /// It has other tasks.
    #[default]
    No,
}

/// The content of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalContent {
    /// The process that brought the lab up, and its start time (clock ticks since boot).
    pub(crate) owner: Option<(u32, u64)>,
    /// The fingerprint of the lab's topology.
    pub(crate) fingerprint: Option<String>,
    /// Whether the lab was completely up.
    pub(crate) is_complete: bool,
    /// Whether its owner exists for the lab only, and ends with it.
    pub(crate) has_keeper: bool,
    /// In the order of acquisition.
    pub(crate) objects: Vec<LabObject>,
    /// Lines that this version of neph does not write.
    pub(crate) unknown_lines: Vec<String>,
}

impl JournalContent {
    /// Whether the process that brought the lab up still runs.
    pub(crate) fn has_running_owner(&self) -> bool {
        self.owner
            .is_some_and(|(pid, start_ticks)| process_start_ticks(pid) == Some(start_ticks))
    }
}

impl Journal {
    /// Begins the journal of `lab`, whose name must be free.
    ///
    /// # Errors
    /// `AlreadyExists` if there is such a lab, up or crashed.
    pub(crate) fn begin(lab: &str) -> io::Result<Self> {
        fs::create_dir_all(ROOT)?;
        remove_abandoned_folders()?;
        // Other processes see a lab only after its journal is locked and names its owner.
        let new_folder = NewLabFolder::make()?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(new_folder.0.join(JOURNAL_FILE))?;
        file.lock()?;
        let journal = Self { file };
        let pid = std::process::id();
        journal.write_line(&format!(
            "owner {pid} {}",
            process_start_ticks(pid).unwrap_or(0)
        ))?;
        new_folder.rename_to_lab(lab)?;
        Ok(journal)
    }

    /// Lists what is about to be acquired.
    pub(crate) fn record(&self, object: &LabObject) -> io::Result<()> {
        self.write_line(&match object {
            LabObject::Namespace(name) => format!("namespace {name}"),
            LabObject::Link {
                namespace,
                interface,
            } => format!("link {namespace} {interface}"),
            LabObject::Group(folder) => format!("group {}", folder.display()),
        })
    }

    /// Records the topology of the lab, and whether its owner is a keeper.
    pub(crate) fn record_description(
        &self,
        fingerprint: &str,
        has_keeper: HasKeeper,
    ) -> io::Result<()> {
        self.write_line(&format!("fingerprint {fingerprint}"))?;
        match has_keeper {
            HasKeeper::Yes => self.write_line("keeper"),
            HasKeeper::No => Ok(()),
        }
    }

    /// Records that the lab is up.
    pub(crate) fn record_up(&self) -> io::Result<()> {
        self.write_line("whole")
    }

    /// One write per line: after a crash it is complete or missing.
    fn write_line(&self, text: &str) -> io::Result<()> {
        (&self.file).write_all(format!("{text}\n").as_bytes())
    }
}

/// The entries of the folder of labs, sorted, without names that no lab can have.
pub(crate) fn lab_entries() -> io::Result<Vec<OsString>> {
    let lab_entries = match fs::read_dir(ROOT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in lab_entries {
        let name = entry?.file_name();
        // Hidden entries belong to labs that have no name yet.
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The content of the journal of `lab`; empty if there is none.
pub(crate) fn read_journal(lab: &str) -> io::Result<JournalContent> {
    match fs::read(folder(lab).join(JOURNAL_FILE)) {
        Ok(bytes) => Ok(parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(JournalContent::default()),
        Err(error) => Err(error),
    }
}

fn parse(text: &str) -> JournalContent {
    let mut content = JournalContent::default();
    // A line is written before its object is acquired: an incomplete line has no object.
    for line in text.split_inclusive('\n').filter_map(complete_line) {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[..] {
            ["owner", pid, start_ticks] => {
                content.owner = pid.parse().ok().zip(start_ticks.parse().ok());
            }
            ["namespace", name] if is_lab_object_name(name) => {
                content.objects.push(LabObject::Namespace(name.into()));
            }
            ["link", namespace, interface] if is_lab_object_name(namespace) => {
                content.objects.push(LabObject::Link {
                    namespace: namespace.into(),
                    interface: interface.into(),
                });
            }
            ["group", folder] if folder.rsplit('/').next().is_some_and(is_lab_object_name) => {
                content.objects.push(LabObject::Group(folder.into()));
            }
            ["fingerprint", fingerprint] => content.fingerprint = Some(fingerprint.to_owned()),
            ["keeper"] => content.has_keeper = true,
            ["whole"] => content.is_complete = true,
            // From a later version: its objects are inside a namespace, like all others.
            _ => content.unknown_lines.push(line.to_owned()),
        }
    }
    content
}

fn complete_line(line: &str) -> Option<&str> {
    line.strip_suffix('\n')
}

/// Whether the name is one of a lab's object. Nothing else is ever removed, whatever a journal contains.
fn is_lab_object_name(name: &str) -> bool {
    name.starts_with("neph-")
}

/// Whether `file` is still the journal of `lab`.
fn is_current(file: &File, lab: &str) -> bool {
    let named_inode = fs::metadata(folder(lab).join(JOURNAL_FILE))
        .map(|metadata| (metadata.dev(), metadata.ino()));
    let own_inode = file
        .metadata()
        .map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((named_inode, own_inode), (Ok(named), Ok(own)) if named == own)
}

impl JournalIdentity {
    /// Opens the current journal of `lab`; the writer calls this while its lock prevents removal.
    pub(crate) fn open(lab: &str) -> io::Result<Self> {
        File::open(folder(lab).join(JOURNAL_FILE)).map(Self)
    }

    /// Whether `lab` still has the same journal.
    pub(crate) fn is_current(&self, lab: &str) -> bool {
        is_current(&self.0, lab)
    }
}

/// Start time of process `pid` in clock ticks since boot. `None` if there is no such process, or if it is a
/// zombie (an init of a container often never reaps).
pub(crate) fn process_start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc(5): the command's name, field 2, may contain anything; field 3 is the state, field 22 the start
    // time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Waits, up to `timeout`, until the process with this number and start time has ended. Returns at once for
/// the calling process.
pub(crate) fn wait_for_process_end(pid: u32, start_ticks: u64, timeout: Duration) {
    wait_until(timeout, || {
        pid == std::process::id() || process_start_ticks(pid) != Some(start_ticks)
    });
}

/// The folder of `lab`.
pub(crate) fn folder(lab: &str) -> PathBuf {
    Path::new(ROOT).join(lab)
}

#[cfg(test)]
mod tests {
    use super::*;

    use neph_sys::process;

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let text = "owner 12 345\nfingerprint 1f\nkeeper\nnamespace neph-x-wire\n\
                    link neph-x-wire w0a\ngroup /sys/fs/cgroup/cpu/neph-x-a\nwhole\n";
        let link = LabObject::Link {
            namespace: "neph-x-wire".into(),
            interface: "w0a".into(),
        };
        let group = LabObject::Group("/sys/fs/cgroup/cpu/neph-x-a".into());
        let objects = vec![LabObject::Namespace("neph-x-wire".into()), link, group];
        assert_eq!(
            parse(text),
            JournalContent {
                owner: Some((12, 345)),
                fingerprint: Some("1f".to_owned()),
                is_complete: true,
                has_keeper: true,
                objects,
                unknown_lines: Vec::new(),
            }
        );
        assert_eq!(parse(""), JournalContent::default());
    }

    #[test]
    fn foreign_and_truncated_journal_lines_are_never_undone() {
        let content = parse(
            "namespace neph-x-a\nfuture thing\n\ngroup /sys/fs/cgroup/cpu\nnamespace other\n\
             link other eth0\nnamespace neph-x-b\ngroup /sys/fs/cgroup/cpu/neph-x",
        );
        let [a, b] = ["neph-x-a", "neph-x-b"].map(|name| LabObject::Namespace(name.into()));
        assert_eq!(content.objects, [a, b]);
        let unknown_lines = [
            "future thing",
            "",
            "group /sys/fs/cgroup/cpu",
            "namespace other",
            "link other eth0",
        ];
        assert_eq!(content.unknown_lines, unknown_lines);
    }

    #[test]
    fn this_process_has_a_start_time_and_process_0_has_none() {
        assert!(process_start_ticks(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(process_start_ticks(0), None);
    }

    #[test]
    fn a_zombie_process_counts_as_ended() {
        let mut child = process::command("true").spawn().expect("true");
        let is_gone = wait_until(Duration::from_secs(30), || {
            process_start_ticks(child.id()).is_none()
        });
        assert!(is_gone, "it is a zombie");
        assert!(child.wait().expect("it ended").success());
    }
}
