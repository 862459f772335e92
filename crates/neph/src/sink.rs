//! The destination of results: standard output, or a file that the user named. Every file at such a
//! path is created here or by `neph_store::whole`.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use neph_text::{Existing, NotWritten, check_output, create_output};
use neph_text::{PrintableText, Visible};

use crate::exit::Failure;
use crate::output;

/// The file name that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// `--force`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Force {
    /// Overwrite existing output files. neph refuses symbolic links
    #[arg(long)]
    force: bool,
}

impl Force {
    /// Whether existing files are kept or replaced.
    pub(crate) const fn existing(self) -> Existing {
        if self.force {
            Existing::Replace
        } else {
            Existing::Keep
        }
    }
}

/// Standard output, or `path`.
///
/// # Errors
/// The file cannot be created, or standard output is closed.
pub(crate) fn open(path: Option<&Path>, force: Force) -> Result<Box<dyn Write>, Failure> {
    Ok(
        match path.filter(|path| *path != Path::new(STANDARD_OUTPUT)) {
            None => {
                output::check_open()?;
                Box::new(output::data())
            }
            Some(path) => {
                let file = OutputFile::create(path, force.existing())?;
                Box::new(BufWriter::new(Visible::new(file)))
            }
        },
    )
}

/// Checks that the file at `path` can be created, before anything is measured.
///
/// # Errors
/// The file cannot be created; the message has the remedy.
pub(crate) fn check(path: &Path, force: Force) -> Result<(), Failure> {
    if path == Path::new(STANDARD_OUTPUT) {
        return Ok(());
    }
    check_output(path, force.existing()).map_err(|error| failure(path, &error))
}

/// Why nothing can be written to `path`, which the user named, and what to do.
pub(crate) fn unwritable_message(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        _ if NotWritten::of(error) == Some(NotWritten::Exists) => {
            "name another file, or replace it with --force".to_owned()
        }
        _ if NotWritten::of(error) == Some(NotWritten::Link) => "name the file itself".to_owned(),
        ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path).display();
            format!("make the folder {folder} first, or name another place")
        }
        ErrorKind::AlreadyExists => "it is no folder: name another".to_owned(),
        ErrorKind::IsADirectory => "give the name of a file in it".to_owned(),
        ErrorKind::NotADirectory => "name a place whose folders are folders".to_owned(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "name a place that you may write into".to_owned()
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space, or name another place".to_owned()
        }
        _ => "name another place".to_owned(),
    };
    format!(
        "cannot write {}: {error}; {remedy}",
        PrintableText::path(path)
    )
}

/// A failed write: a usage error if another name would help, otherwise a failure.
pub(crate) fn failure(path: &Path, error: &io::Error) -> Failure {
    let reason = unwritable_message(path, error);
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::InvalidFilename
        | ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem => Failure::Usage(reason),
        _ => Failure::Refused(reason),
    }
}

/// A file of results.
struct OutputFile {
    file: File,
    path: PathBuf,
}

impl OutputFile {
    fn create(path: &Path, existing: Existing) -> Result<Self, Failure> {
        let file = create_output(path, existing).map_err(|error| failure(path, &error))?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    fn with_path<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let path = self.path.display();
        result.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        self.with_path(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.with_path(result)
    }
}
