//! What a lab acquired, written down before it was acquired, so that anybody can undo it.
//!
//! Owns the folder /run/neph/LAB and the journal in it; the lab's other files are in there too and
//! go with it. One line is one thing; the last in is the first out. Processes are not written
//! down: whatever runs in one of the lab's namespaces is the lab's, whoever started it. The file is
//! locked while a lab comes up, so that nobody takes down what is still growing; the kernel lets go
//! of the lock when its owner dies.

mod unborn;
mod undo;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_sys::deadline::wait_until;
use unborn::{Unborn, clear_unborn};

pub use undo::UndoError;
pub(crate) use undo::undo;

/// Where labs keep their journals: gone after a reboot, as is everything that they acquire.
const ROOT: &str = "/run/neph";
const FILE: &str = "journal";
/// The group of interfaces that are to be removed; any number but 0, where all others are.
const DOOMED: u32 = 1_853_189_232;

/// Something that a lab acquires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
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

/// Tells one journal from another of the same name: a lab's name is used again, and so is its
/// journal's inode, unless somebody holds it open.
#[derive(Debug)]
pub(crate) struct Witness(File);

/// Whose lab is to be undone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose<'w> {
    /// Whatever has the name now.
    Anybodys,
    /// The one with this journal, if it is still there.
    Own(&'w Witness),
    /// Whatever has the name now, if its owner is gone.
    Dead,
}

/// Whether a lab's owner is there for nothing but the lab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HasKeeper {
    /// It ends when the lab is taken down, and that is waited for.
    Yes,
    /// It has other work.
    #[default]
    No,
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    /// The process that brought the lab up, and when it began (clock ticks since boot).
    pub(crate) owner: Option<(u32, u64)>,
    /// What the lab was made from, as a number that tells one topology from another.
    pub(crate) fingerprint: Option<String>,
    /// Whether it was up: nothing more was to come.
    pub(crate) is_whole: bool,
    /// Whether its owner is there for nothing but the lab, and ends with it.
    pub(crate) has_keeper: bool,
    /// In the order in which they were acquired.
    pub(crate) acquired: Vec<Acquired>,
    /// Lines that this version of neph does not write.
    pub(crate) unknown: Vec<String>,
}

impl Story {
    /// Whether the process that brought the lab up is still there.
    pub(crate) fn is_owned(&self) -> bool {
        self.owner
            .is_some_and(|(pid, since)| began(pid) == Some(since))
    }
}

impl Journal {
    /// Begins the journal of `lab`, whose name must not be in use.
    ///
    /// # Errors
    /// `AlreadyExists` when such a lab is there, up or crashed.
    pub(crate) fn begin(lab: &str) -> io::Result<Self> {
        fs::create_dir_all(ROOT)?;
        clear_unborn()?;
        // Nobody sees a lab before its journal is locked and names its owner.
        let unborn = Unborn::make()?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(unborn.0.join(FILE))?;
        file.lock()?;
        let journal = Self { file };
        let own = std::process::id();
        journal.line(&format!("owner {own} {}", began(own).unwrap_or(0)))?;
        unborn.become_lab(lab)?;
        Ok(journal)
    }

    /// Writes down what is about to be acquired.
    pub(crate) fn note(&self, acquired: &Acquired) -> io::Result<()> {
        self.line(&match acquired {
            Acquired::Namespace(name) => format!("namespace {name}"),
            Acquired::Link {
                namespace,
                interface,
            } => format!("link {namespace} {interface}"),
            Acquired::Group(folder) => format!("group {}", folder.display()),
        })
    }

    /// Writes down what the lab is made from, and who for.
    pub(crate) fn describe(&self, fingerprint: &str, has_keeper: HasKeeper) -> io::Result<()> {
        self.line(&format!("fingerprint {fingerprint}"))?;
        match has_keeper {
            HasKeeper::Yes => self.line("keeper"),
            HasKeeper::No => Ok(()),
        }
    }

    /// Writes down that the lab is up.
    pub(crate) fn whole(&self) -> io::Result<()> {
        self.line("whole")
    }

    /// One write for a line: a crash leaves it whole or not at all.
    fn line(&self, text: &str) -> io::Result<()> {
        (&self.file).write_all(format!("{text}\n").as_bytes())
    }
}

/// What is in the folder of labs, sorted; who is not called as a lab may be did not come from here.
pub(crate) fn entries() -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(ROOT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        // Those of labs that have no name yet.
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// What the journal of `lab` says; nothing if there is none.
pub(crate) fn story(lab: &str) -> io::Result<Story> {
    match fs::read(folder(lab).join(FILE)) {
        Ok(bytes) => Ok(parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Story::default()),
        Err(error) => Err(error),
    }
}

fn parse(text: &str) -> Story {
    let mut story = Story::default();
    // A line is written before what it names is acquired: of one without an end nothing came.
    for line in text.split_inclusive('\n').filter_map(whole_line) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["owner", pid, since] => story.owner = pid.parse().ok().zip(since.parse().ok()),
            ["namespace", name] if is_ours(name) => {
                story.acquired.push(Acquired::Namespace(name.into()));
            }
            ["link", namespace, interface] if is_ours(namespace) => {
                story.acquired.push(Acquired::Link {
                    namespace: namespace.into(),
                    interface: interface.into(),
                });
            }
            ["group", folder] if folder.rsplit('/').next().is_some_and(is_ours) => {
                story.acquired.push(Acquired::Group(folder.into()));
            }
            ["fingerprint", number] => story.fingerprint = Some(number.to_owned()),
            ["keeper"] => story.has_keeper = true,
            ["whole"] => story.is_whole = true,
            // A later version's: what it acquired lies inside a namespace, as all does.
            _ => story.unknown.push(line.to_owned()),
        }
    }
    story
}

fn whole_line(line: &str) -> Option<&str> {
    line.strip_suffix('\n')
}

/// All that a lab acquires is called so; whatever a journal says, nothing else is ever removed.
fn is_ours(name: &str) -> bool {
    name.starts_with("neph-")
}

/// Whether `file` is still the journal of `lab`.
fn is_current(file: &File, lab: &str) -> bool {
    let named = fs::metadata(folder(lab).join(FILE)).map(|named| (named.dev(), named.ino()));
    let own = file.metadata().map(|own| (own.dev(), own.ino()));
    matches!((named, own), (Ok(named), Ok(own)) if named == own)
}

impl Witness {
    /// Of the journal that `lab` has now; its writer asks, while nobody else can undo it.
    pub(crate) fn of(lab: &str) -> io::Result<Self> {
        File::open(folder(lab).join(FILE)).map(Self)
    }

    /// Whether `lab` still has the journal that it saw.
    pub(crate) fn is_current(&self, lab: &str) -> bool {
        is_current(&self.0, lab)
    }
}

/// When process `pid` began, in clock ticks since boot; none when there is no such process, or when
/// it has ended and nobody has asked how (containers often have an init that never does).
pub(crate) fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc(5): the command's name, field 2, may hold anything; field 3 is the state, field 22 the
    // start time.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(words.next()?, "Z" | "X") {
        return None;
    }
    words.nth(18)?.parse().ok()
}

/// Waits until a process, told by its number and when it began, has ended; at most this long.
/// The calling process does not wait for itself.
pub(crate) fn await_end(pid: u32, since: u64, patience: Duration) {
    wait_until(patience, || {
        pid == std::process::id() || began(pid) != Some(since)
    });
}

/// Where the files of `lab` are.
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
        let link = Acquired::Link {
            namespace: "neph-x-wire".into(),
            interface: "w0a".into(),
        };
        let group = Acquired::Group("/sys/fs/cgroup/cpu/neph-x-a".into());
        let acquired = vec![Acquired::Namespace("neph-x-wire".into()), link, group];
        assert_eq!(
            parse(text),
            Story {
                owner: Some((12, 345)),
                fingerprint: Some("1f".to_owned()),
                is_whole: true,
                has_keeper: true,
                acquired,
                unknown: Vec::new(),
            }
        );
        assert_eq!(parse(""), Story::default());
    }

    #[test]
    fn what_no_lab_acquires_is_never_undone_and_a_torn_line_is_nothing() {
        let told = parse(
            "namespace neph-x-a\nfuture thing\n\ngroup /sys/fs/cgroup/cpu\nnamespace other\n\
             link other eth0\nnamespace neph-x-b\ngroup /sys/fs/cgroup/cpu/neph-x",
        );
        let [a, b] = ["neph-x-a", "neph-x-b"].map(|name| Acquired::Namespace(name.into()));
        assert_eq!(told.acquired, [a, b]);
        let unknown = [
            "future thing",
            "",
            "group /sys/fs/cgroup/cpu",
            "namespace other",
            "link other eth0",
        ];
        assert_eq!(told.unknown, unknown);
    }

    #[test]
    fn this_process_has_begun_and_process_zero_has_not() {
        assert!(began(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(began(0), None);
    }

    #[test]
    fn a_process_that_has_ended_is_gone_though_nobody_asked_how() {
        let mut child = process::command("true").spawn().expect("true");
        let is_gone = wait_until(Duration::from_secs(30), || began(child.id()).is_none());
        assert!(is_gone, "it is a zombie");
        assert!(child.wait().expect("it ended").success());
    }
}
