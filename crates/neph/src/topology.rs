//! Reading a topology file.

use std::fs;
use std::path::Path;

use neph_lab::Topology;
use neph_text::Source;

use crate::exit::Failure;

/// Reads a topology file.
pub(crate) fn read(path: &Path) -> Result<Topology, Failure> {
    let source = load(path).map_err(|why| {
        let remedy = "write its path as seen from this folder";
        Failure::Usage(format!("{why}; {remedy}"))
    })?;
    understand(source).map(|(topology, _)| topology)
}

/// A topology file's text, or a sentence that says why there is none.
pub(crate) fn load(path: &Path) -> Result<Source, String> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| format!("topology {name} cannot be read: {error}"))?;
    Ok(Source::new(name, text))
}

/// What a topology file's text means, beside the text.
pub(crate) fn understand(source: Source) -> Result<(Topology, Source), Failure> {
    match Topology::parse(&source) {
        Ok(topology) => Ok((topology, source)),
        Err(problems) => Err(Failure::Text(source, problems)),
    }
}
