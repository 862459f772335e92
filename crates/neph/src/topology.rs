//! Reading a topology file.

use std::path::Path;
use std::{fs, io};

use neph_lab::Topology;
use neph_text::Source;

use crate::exit::Failure;
use crate::unread;

/// Reads a topology file.
pub(crate) fn read(path: &Path) -> Result<Topology, Failure> {
    let source = text(path).map_err(|error| {
        let remedy = unread::remedy(&error, "write its path as seen from this folder");
        let name = path.display();
        Failure::Usage(format!("topology {name} cannot be read: {remedy}"))
    })?;
    understand(source).map(|(topology, _)| topology)
}

/// A topology file's text, or a sentence that says why there is none.
pub(crate) fn load(path: &Path) -> Result<Source, String> {
    text(path).map_err(|error| {
        let why = unread::why(&error);
        format!("topology {} cannot be read: {why}", path.display())
    })
}

fn text(path: &Path) -> io::Result<Source> {
    let text = fs::read_to_string(path)?;
    Ok(Source::new(path.display().to_string(), text))
}

/// What a topology file's text means, beside the text.
pub(crate) fn understand(source: Source) -> Result<(Topology, Source), Failure> {
    match Topology::parse(&source) {
        Ok(topology) => Ok((topology, source)),
        Err(problems) => Err(Failure::Text(source, problems)),
    }
}
