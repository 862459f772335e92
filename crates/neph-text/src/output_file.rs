//! Creates files at paths of users. No other module creates them. An existing file is kept unless
//! it is to be replaced, a symbolic link is never followed, and a whole file appears only when it
//! is complete.
//!
//! Owns the temporary file next to the path, and writing to devices and pipes. Does not own
//! messages or formats.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::file::is_output_handed_over;

/// What to do with an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it, and write nothing. An empty file (`mktemp`) is written to.
    Keep,
    /// Replace it.
    Replace,
}

/// Why a path is not written to: the source of an [`io::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// A file with content exists.
    #[error("it exists")]
    Exists,
    /// A symbolic link exists, with or without a target.
    #[error("it is a symbolic link, which is not followed")]
    Link,
}

impl NotWritten {
    /// The reason in an error of this module.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Self>().copied()
    }
}

impl From<NotWritten> for io::Error {
    fn from(reason: NotWritten) -> Self {
        Self::new(ErrorKind::AlreadyExists, reason)
    }
}

/// What exists at a path.
enum ExistingFile {
    Missing,
    Empty(fs::Metadata),
    /// A file that is to be replaced.
    Regular,
    /// A device, a pipe, or a file that the shell has opened: written to, never replaced.
    Special(fs::Metadata),
}

fn find(path: &Path, existing: Existing) -> io::Result<ExistingFile> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ExistingFile::Missing),
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        return match fs::metadata(path) {
            Ok(to) if to.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(to) if is_output_handed_over(path) => Ok(ExistingFile::Special(to)),
            _ => Err(NotWritten::Link.into()),
        };
    }
    match existing {
        _ if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
        _ if !metadata.is_file() => Ok(ExistingFile::Special(metadata)),
        _ if metadata.len() == 0 => Ok(ExistingFile::Empty(metadata)),
        Existing::Replace => Ok(ExistingFile::Regular),
        Existing::Keep => Err(NotWritten::Exists.into()),
    }
}

/// Checks before a measurement that a file can be created at `path`. Changes nothing there.
///
/// # Errors
/// [`NotWritten`], or a system error.
pub fn check_output(path: &Path, existing: Existing) -> io::Result<()> {
    match find(path, existing)? {
        ExistingFile::Missing => {
            File::create_new(path)?;
            fs::remove_file(path)
        }
        ExistingFile::Empty(_) => OpenOptions::new().write(true).open(path).map(drop),
        // Opening a pipe here would show its reader an end of file.
        ExistingFile::Regular | ExistingFile::Special(_) => Ok(()),
    }
}

/// Creates the file at `path`, for results while they arrive.
///
/// # Errors
/// [`NotWritten`], or a system error.
pub fn create_output(path: &Path, existing: Existing) -> io::Result<File> {
    match find(path, existing)? {
        ExistingFile::Missing => File::create_new(path),
        ExistingFile::Empty(metadata) => {
            let file = OpenOptions::new().write(true).open(path)?;
            let opened = file.metadata()?;
            // Another process may have replaced it by a link.
            if (opened.dev(), opened.ino()) != (metadata.dev(), metadata.ino()) {
                return Err(NotWritten::Link.into());
            }
            Ok(file)
        }
        ExistingFile::Regular => {
            // The old file is removed only when the new one exists.
            let (file, temporary) = create_temporary(path)?;
            let renamed = fs::rename(&temporary, path);
            renamed.inspect_err(|_| {
                let _ = fs::remove_file(&temporary);
            })?;
            Ok(file)
        }
        ExistingFile::Special(to) => open_through(path, &to),
    }
}

/// Opens a device or a pipe, or a file of the shell, to append after earlier output.
fn open_through(path: &Path, to: &fs::Metadata) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .append(to.is_file())
        .open(path)
}

/// Creates an empty file next to `path`; returns it with its path.
fn create_temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    let temporary = alongside(path)?;
    // Removes the file of a killed process; a link is removed, not followed.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok((File::create_new(&temporary)?, temporary)),
    }
}

/// A file that gets its name when it is complete; if dropped before, it leaves an existing file
/// unchanged. A device or a pipe is never replaced, but written to directly.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    temporary: PathBuf,
    /// The final path; `None` if that path is written directly.
    name: Option<PathBuf>,
}

impl WholeFile {
    /// Creates an empty temporary file next to `path`.
    ///
    /// # Errors
    /// [`NotWritten`], `path` is a folder, or a system error.
    pub fn at(path: &Path, existing: Existing) -> io::Result<Self> {
        if let ExistingFile::Special(to) = find(path, existing)? {
            return Ok(Self {
                file: open_through(path, &to)?,
                temporary: path.to_owned(),
                name: None,
            });
        }
        let (file, temporary) = create_temporary(path)?;
        Ok(Self {
            file,
            temporary,
            name: Some(path.to_owned()),
        })
    }

    /// The file to write to. It is never opened by name, because the name could be another file by
    /// then.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The path while the file is written.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// It cannot be renamed; [`NotWritten::Link`] if another file is at the temporary path.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(name) = self.name.take() else {
            return Ok(());
        };
        let is_same = fs::symlink_metadata(&self.temporary).and_then(|metadata| {
            let written = self.file.metadata()?;
            Ok((metadata.dev(), metadata.ino()) == (written.dev(), written.ino()))
        });
        match is_same {
            Ok(true) => fs::rename(&self.temporary, &name).inspect_err(|_| self.name = Some(name)),
            Ok(false) => Err(NotWritten::Link.into()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.name.is_some() {
            // A file that cannot be removed remains.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes `content` to `path` through a [`WholeFile`].
///
/// # Errors
/// It cannot be written; an existing file is unchanged.
pub fn write_whole(path: &Path, content: &[u8], existing: Existing) -> io::Result<()> {
    let file = WholeFile::at(path, existing)?;
    file.file()?.write_all(content)?;
    file.finish()
}

/// The temporary path of a file or folder that gets the name `path` when it is complete.
///
/// # Errors
/// `path` has no file name.
pub fn alongside(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it names no file"));
    };
    let mut name = name.to_owned();
    name.push(".partial");
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|file| file.expect("an entry").file_name().display().to_string())
            .collect();
        names.sort();
        names
    }

    /// The reason of each writing function; it must be the same for all.
    fn refusal(path: &Path, existing: Existing) -> Option<NotWritten> {
        let reasons = [
            check_output(path, existing).expect_err("kept"),
            create_output(path, existing).expect_err("kept"),
            write_whole(path, b"mine", existing).expect_err("kept"),
        ];
        let reasons = reasons.map(|reason| NotWritten::of(&reason));
        assert!(
            reasons.iter().all(|reason| *reason == reasons[0]),
            "{reasons:?}"
        );
        reasons[0]
    }

    #[test]
    fn an_existing_file_is_kept_unless_replacement_is_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.csv");
        fs::write(&path, "somebody's").expect("a file");
        assert_eq!(refusal(&path, Existing::Keep), Some(NotWritten::Exists));
        assert_eq!(fs::read(&path).expect("it is there"), b"somebody's");
        check_output(&path, Existing::Replace).expect("it may be replaced");
        assert_eq!(fs::read(&path).expect("it is there"), b"somebody's");
        write_whole(&path, b"one", Existing::Replace).expect("replaced");
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        let mut file = create_output(&path, Existing::Replace).expect("replaced");
        file.write_all(b"2").expect("written");
        assert_eq!(fs::read(&path).expect("it is there"), b"2");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn a_new_name_and_an_empty_file_are_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.csv");
        check_output(&path, Existing::Keep).expect("nothing is there");
        assert!(names(folder.path()).is_empty(), "nor is it now");
        create_output(&path, Existing::Keep).expect("a new file");
        check_output(&path, Existing::Keep).expect("it is empty");
        create_output(&path, Existing::Keep).expect("it is empty");
        write_whole(&path, b"whole", Existing::Keep).expect("it is empty");
        assert_eq!(fs::read(&path).expect("it is there"), b"whole");
    }

    #[test]
    fn symbolic_links_are_never_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, to) = (folder.path().join("link"), folder.path().join("to"));
        symlink("to", &link).expect("a link");
        for existing in [Existing::Keep, Existing::Replace] {
            assert_eq!(
                refusal(&link, existing),
                Some(NotWritten::Link),
                "to nothing"
            );
            assert!(!to.exists());
            fs::write(&to, "precious").expect("a file");
            assert_eq!(
                refusal(&link, existing),
                Some(NotWritten::Link),
                "to a file"
            );
            assert_eq!(fs::read(&to).expect("it is there"), b"precious");
            fs::remove_file(&to).expect("removed");
        }
        let path = folder.path().join("out");
        fs::write(&to, "precious").expect("a file");
        symlink("to", alongside(&path).expect("it has a name")).expect("a link");
        write_whole(&path, b"whole", Existing::Keep).expect("written");
        assert_eq!(fs::read(&to).expect("it is there"), b"precious");
    }

    #[test]
    fn output_is_written_to_the_created_file_and_never_to_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, to) = (folder.path().join("out"), folder.path().join("to"));
        fs::write(&to, "precious").expect("a file");
        let file = WholeFile::at(&path, Existing::Keep).expect("a place");
        fs::remove_file(file.temporary()).expect("an attacker removes it");
        symlink("to", file.temporary()).expect("and puts a link there");
        let mut out = file.file().expect("the file that was made");
        out.write_all(b"mine").expect("written");
        let error = file.finish().expect_err("the link is not made the result");
        assert_eq!(NotWritten::of(&error), Some(NotWritten::Link));
        assert!(fs::symlink_metadata(&path).is_err(), "nothing is there");
        assert_eq!(fs::read(&to).expect("it is there"), b"precious");
    }

    #[test]
    fn an_unfinished_file_leaves_the_earlier_file_unchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("index.html");
        write_whole(&path, b"whole", Existing::Keep).expect("there is room");
        drop(WholeFile::at(&path, Existing::Replace).expect("a place"));
        assert_eq!(fs::read(&path).expect("the earlier file"), b"whole");
        assert_eq!(names(folder.path()), ["index.html"]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
    fn a_pipe_is_written_through_and_stays_a_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let status = Command::new("mkfifo").arg(&pipe).status();
        assert!(status.expect("mkfifo runs").success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).expect("a pipe")
        });
        // A replaced pipe would leave its reader waiting; opening it ends that.
        let written = write_whole(&pipe, b"through", Existing::Keep);
        let is_pipe = fs::metadata(&pipe).is_ok_and(|metadata| metadata.file_type().is_fifo());
        assert!(is_pipe, "the pipe was replaced");
        written.expect("it is read");
        assert_eq!(reader.join().expect("it has read"), b"through");
        let link = folder.path().join("link");
        symlink("pipe", &link).expect("a link");
        assert_eq!(refusal(&link, Existing::Replace), Some(NotWritten::Link));
        assert_eq!(names(folder.path()), ["link", "pipe"]);
    }

    #[test]
    fn devices_are_written_through() {
        for device in ["/dev/null", "/dev/stderr"] {
            let device = Path::new(device);
            check_output(device, Existing::Keep).expect("usable");
            create_output(device, Existing::Keep).expect("usable");
            write_whole(device, b"", Existing::Keep).expect("usable");
        }
        let full = write_whole(Path::new("/dev/full"), b"x", Existing::Keep);
        assert_eq!(full.expect_err("full").kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn a_folder_and_no_name_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = write_whole(folder.path(), b"x", Existing::Replace).expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::IsADirectory);
        alongside(Path::new("..")).expect_err("no name");
    }
}
