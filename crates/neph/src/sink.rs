//! Where results go: standard output, or the file of `--output`, which names itself where it cannot
//! be written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::output;

/// Standard output, or `path`.
///
/// # Errors
/// Where the file cannot be made.
pub(crate) fn open(path: Option<&Path>) -> Result<Box<dyn Write>, Failure> {
    Ok(match path {
        None => Box::new(output::data()),
        Some(path) => Box::new(BufWriter::new(OutputFile::create(path)?)),
    })
}

/// A file of results.
struct OutputFile {
    file: File,
    path: PathBuf,
}

impl OutputFile {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::Usage(format!("--output {}: {error}", path.display())))?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    fn named<T>(&self, done: io::Result<T>) -> io::Result<T> {
        let path = self.path.display();
        done.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.named(flushed)
    }
}
