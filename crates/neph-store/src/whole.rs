//! Files at paths that people name: what stands there appears only when it is whole.
//!
//! Owns the file beside the name that is written first, and what is done where the name is a link,
//! a device or a pipe. Says nothing to people and knows no format.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// More links than this one behind the other are a circle, as the kernel has it.
const MOST_LINKS: usize = 40;

/// A file that comes under its name when all of it is written; dropped before, it leaves an earlier
/// one as it was. Links are followed. What is no regular file (a device, a pipe) is never replaced:
/// it is written through.
#[derive(Debug)]
pub struct WholeFile {
    place: PathBuf,
    /// What `place` is called at the end; `None` where the path itself is written.
    name: Option<PathBuf>,
}

impl WholeFile {
    /// For the file at `path`. Makes nothing yet.
    ///
    /// # Errors
    /// `path` is a folder, or cannot be looked at.
    pub fn at(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                return Ok(Self {
                    place: path.to_owned(),
                    name: None,
                });
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let name = behind_links(path)?;
        Ok(Self {
            place: beside(&name)?,
            name: Some(name),
        })
    }

    /// Where to write.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Everything is written.
    ///
    /// # Errors
    /// What is there cannot have the name.
    pub fn finish(mut self) -> io::Result<()> {
        match self.name.take() {
            Some(name) => fs::rename(&self.place, &name).inspect_err(|_| self.name = Some(name)),
            None => Ok(()),
        }
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.name.is_some() {
            // What failed is told by whoever wrote; a file that was never made cannot be removed.
            let _ = fs::remove_file(&self.place);
        }
    }
}

/// Writes `content` to `path`, as [`WholeFile`] does.
///
/// # Errors
/// It cannot be written; an earlier file is as it was.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = WholeFile::at(path)?;
    fs::write(file.place(), content)?;
    file.finish()
}

/// What `path` leads to, which need not be there.
///
/// # Errors
/// A link cannot be read, or links form a circle.
pub fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&end) {
            // Only the root has no folder, and it is no link.
            Ok(to) => end = end.parent().unwrap_or(&end).join(to),
            // No link, or nothing at all.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(end);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("its links form a circle"))
}

/// Where a file or folder is written that gets the name `path` when it is whole.
///
/// # Errors
/// `path` ends in no name.
pub fn beside(path: &Path) -> io::Result<PathBuf> {
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
            .map(|one| one.expect("an entry").file_name().display().to_string())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_cannot_be_written_leaves_the_earlier_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("index.html");
        write_whole(&path, b"whole").expect("there is room");
        symlink("/dev/full", beside(&path).expect("it has a name")).expect("a link");
        write_whole(&path, "x".repeat(1 << 16).as_bytes()).expect_err("the disk is full");
        assert_eq!(fs::read(&path).expect("the earlier file"), b"whole");
        assert_eq!(names(folder.path()), ["index.html"]);
    }

    #[test]
    fn a_pipe_is_written_through_and_stays_a_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let link = folder.path().join("link");
        symlink("pipe", &link).expect("a link");
        for path in [&pipe, &link] {
            let reader = thread::spawn({
                let pipe = pipe.clone();
                move || fs::read(pipe).expect("a pipe")
            });
            // A pipe that was replaced would leave its reader waiting: opening it ends that.
            let written = write_whole(path, b"through");
            let is_pipe = fs::metadata(&pipe).is_ok_and(|found| found.file_type().is_fifo());
            assert!(is_pipe, "the pipe was replaced");
            written.expect("it is read");
            assert_eq!(reader.join().expect("it has read"), b"through");
        }
        assert!(link.is_symlink());
        assert_eq!(names(folder.path()), ["link", "pipe"]);
    }

    #[test]
    fn links_are_followed_whether_or_not_there_is_something_behind_them() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("elsewhere")).expect("a folder");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        symlink("second", &first).expect("a link");
        symlink("elsewhere/file", &second).expect("a link");
        for content in ["new", "again"] {
            write_whole(&first, content.as_bytes()).expect("written");
            assert!(first.is_symlink() && second.is_symlink(), "{content}");
            let read = fs::read_to_string(folder.path().join("elsewhere/file"));
            assert_eq!(read.expect("behind the links"), content);
        }
        assert_eq!(names(&folder.path().join("elsewhere")), ["file"]);
    }

    #[test]
    fn a_folder_a_circle_and_no_name_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| write_whole(path, b"x").expect_err("refused").kind();
        assert_eq!(refused(folder.path()), ErrorKind::IsADirectory);
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        symlink("other", &one).expect("a link");
        symlink("one", &other).expect("a link");
        refused(&one);
        behind_links(&one).expect_err("a circle");
        assert!(one.is_symlink() && other.is_symlink());
        beside(Path::new("..")).expect_err("no name");
    }
}
