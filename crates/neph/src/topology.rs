//! Reading a topology file.

use std::path::Path;

use neph_lab::Topology;
use neph_text::Source;

use crate::exit::Failure;
use crate::text_file;

/// Reads a topology file.
pub(crate) fn read(path: &Path) -> Result<Topology, Failure> {
    let source = text_file::read(
        text_file::TOPOLOGY,
        path,
        "write its path as seen from this folder",
    )?;
    parse(source).map(|(topology, _)| topology)
}

/// The text of a topology file, or why it cannot be read.
pub(crate) fn load(path: &Path) -> Result<Source, String> {
    text_file::read_or_message(text_file::TOPOLOGY, path)
}

/// Parses the text of a topology file; returns both.
pub(crate) fn parse(source: Source) -> Result<(Topology, Source), Failure> {
    match Topology::parse(&source) {
        Ok(topology) => Ok((topology, source)),
        Err(problems) => Err(Failure::Text(source, problems)),
    }
}
