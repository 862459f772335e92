//! Undoes what a journal lists, of any process.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use neph_sys::netns::{self, NetNs};

use super::new_lab_folder::remove_abandoned_folders;
use super::{
    JOURNAL_FILE, JournalContent, LabObject, REMOVAL_GROUP, UndoTarget, folder, is_current, parse,
};
use crate::{group, namespace_processes, program};

/// Undoes all that `lab` acquired, in reverse order, and removes its journal. No lab is no error. Continues
/// after errors; then the journal stays, and the first error is returned.
pub(crate) fn undo(lab: &str, target: UndoTarget<'_>) -> Result<(), UndoError> {
    let failed = |source| UndoError::Journal {
        lab: lab.into(),
        source,
    };
    remove_abandoned_folders().map_err(failed)?;
    let file = match File::open(folder(lab).join(JOURNAL_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match target {
                UndoTarget::SameJournal(_) => Ok(()),
                UndoTarget::CurrentLab | UndoTarget::OwnerEnded => {
                    remove_folder_without_journal(lab).map_err(failed)
                }
            };
        }
        other => other.map_err(failed)?,
    };
    lock_journal(&file, lab).map_err(failed)?;
    let content = read_content(&file).map_err(failed)?;
    let is_target = match target {
        UndoTarget::CurrentLab => true,
        UndoTarget::SameJournal(journal_identity) => journal_identity.is_current(lab),
        UndoTarget::OwnerEnded => !content.has_running_owner(),
    };
    if !is_target || !is_current(&file, lab) {
        // Another process took it down meanwhile; the name belongs to another lab now.
        return Ok(());
    }
    for line in &content.unknown_lines {
        tracing::warn!(
            "the journal of lab {lab} has a line that this version of neph does not know: '{line}'; \
             everything else is taken down: ip netns list shows what is left"
        );
    }
    let objects = &content.objects;
    // All of them, even after an error.
    let mut outcomes = vec![end_lab_processes(lab, objects), remove_links(objects)];
    outcomes.extend(objects.iter().rev().map(remove_object));
    outcomes.into_iter().collect::<Result<(), _>>()?;
    remove_lab_folder(lab).map_err(failed)
}

/// Waits until no other process brings the lab up or takes it down.
fn lock_journal(file: &File, lab: &str) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {}
    }
    let content = read_content(file)?;
    match content.owner {
        Some((pid, _)) if !content.is_complete && content.has_running_owner() => tracing::info!(
            "lab {lab} is just coming up (process {pid}): waiting until that is done or given up"
        ),
        _ => tracing::info!("another process is taking lab {lab} down: waiting for it"),
    }
    file.lock()
}

/// The current content of the journal.
fn read_content(file: &File) -> io::Result<JournalContent> {
    let mut bytes = Vec::new();
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

fn remove_object(object: &LabObject) -> Result<(), UndoError> {
    match object {
        LabObject::Namespace(name) => Ok(netns::remove(name)?),
        LabObject::Group(folder) => group::remove(folder).map_err(|source| UndoError::Group {
            group: folder.clone(),
            source,
        }),
        // They were removed together.
        LabObject::Link { .. } => Ok(()),
    }
}

/// Removes a folder without a journal: a crash between the last two files of a lab.
fn remove_folder_without_journal(lab: &str) -> io::Result<()> {
    remove_folder(&folder(lab), |path| !path.join(JOURNAL_FILE).exists())
}

/// Removes the folder of a lab, if `is_target` accepts it. Another lab may take the name once the folder is
/// empty. So files are removed through the open folder, not by name: they cannot belong to the new one.
fn remove_folder(folder: &Path, is_target: impl Fn(&Path) -> bool) -> io::Result<()> {
    let ignore_not_found = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let open_folder = match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let opened_path = PathBuf::from(format!("/proc/self/fd/{}", open_folder.as_raw_fd()));
    if !is_target(&opened_path) {
        return Ok(());
    }
    for entry in fs::read_dir(&opened_path)? {
        let entry = entry?;
        let path = entry.path();
        ignore_not_found(if entry.file_type()?.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        })?;
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let opened_inode = open_folder
                .metadata()
                .map(|metadata| (metadata.dev(), metadata.ino()))?;
            let current = fs::metadata(folder).map(|current| (current.dev(), current.ino()));
            if current.is_ok_and(|current| current == opened_inode) {
                Err(error)
            } else {
                Ok(())
            }
        }
        result => ignore_not_found(result),
    }
}

fn end_lab_processes(lab: &str, objects: &[LabObject]) -> Result<(), UndoError> {
    let namespaces = objects.iter().filter_map(|object| match object {
        LabObject::Namespace(name) => Some(name.as_str()),
        _ => None,
    });
    let namespaces: Vec<&str> = namespaces.collect();
    namespace_processes::end_in_namespaces(&namespaces).map_err(|source| UndoError::Processes {
        lab: lab.to_owned(),
        source,
    })
}

fn remove_lab_folder(lab: &str) -> io::Result<()> {
    remove_folder(&folder(lab), |_| true)
}

/// Removes links one namespace at a time. Namespaces do not vanish while an engine of another process holds
/// them; losing its interfaces ends the engine. All links of a namespace are removed as a group: the kernel
/// then waits for its readers once (measured: 380 one by one take 7 s, together 0.2 s).
fn remove_links(objects: &[LabObject]) -> Result<(), UndoError> {
    let mut remaining: Vec<(&str, &str)> = objects
        .iter()
        .rev()
        .filter_map(|object| match object {
            LabObject::Link {
                namespace,
                interface,
            } => Some((&**namespace, &**interface)),
            LabObject::Namespace(_) | LabObject::Group(_) => None,
        })
        .collect();
    while let Some(&(namespace, _)) = remaining.first() {
        let (links, others): (Vec<_>, Vec<_>) =
            remaining.into_iter().partition(|link| link.0 == namespace);
        if NetNs::open(namespace).is_ok() {
            let mut batch: Vec<String> = links
                .iter()
                .map(|(_, interface)| format!("link set dev {interface} group {REMOVAL_GROUP}"))
                .collect();
            batch.push(format!("link del group {REMOVAL_GROUP}"));
            program::ip_batch_regardless(namespace, &batch)?;
        }
        remaining = others;
    }
    Ok(())
}

/// Why a lab could not be taken down.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// Its journal failed.
    #[error("read or remove the journal of lab {lab}: {source}")]
    Journal {
        /// The lab.
        lab: String,
        /// The error.
        source: io::Error,
    },
    /// Its processes could not be ended.
    #[error("end the processes of lab {lab}: {source}")]
    Processes {
        /// The lab.
        lab: String,
        /// The error.
        source: io::Error,
    },
    /// One of its control groups could not be removed.
    #[error("remove the control group {}: {source}", group.display())]
    Group {
        /// The group.
        group: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// One of its namespaces could not be removed.
    #[error(transparent)]
    NetNs(#[from] netns::NetNsError),
    /// One of its links could not be removed.
    #[error(transparent)]
    Program(#[from] program::ProgramError),
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_folder_taken_over_by_another_lab_keeps_its_files() {
        let root = tempfile::tempdir().expect("a folder");
        let name = root.path().join("lab");
        thread::scope(|scope| {
            let creator = scope.spawn(|| {
                for number in 0..2_000 {
                    let new_folder = root.path().join(format!(".{number}"));
                    fs::create_dir(&new_folder).expect("a folder");
                    fs::write(new_folder.join(JOURNAL_FILE), "owner 1 2\n").expect("a journal");
                    fs::write(new_folder.join("link.truth"), "").expect("a file");
                    fs::rename(&new_folder, &name).expect("the name is free");
                    File::open(name.join(JOURNAL_FILE)).expect("the lab's journal stays");
                    remove_folder(&name, |_| true).expect("removed");
                }
            });
            while !creator.is_finished() {
                remove_folder(&name, |path| !path.join(JOURNAL_FILE).exists())
                    .expect("removed or not");
            }
        });
        assert!(!name.exists());
    }
}
