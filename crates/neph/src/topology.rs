//! Reading a topology file.

use std::fs;
use std::path::Path;

use neph_lab::Topology;
use neph_text::Source;

use crate::exit::Failure;

/// Reads a topology file.
pub(crate) fn read(path: &Path) -> Result<Topology, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("topology {name} cannot be read: {error}")))?;
    let source = Source::new(name, text);
    Topology::parse(&source).map_err(|problems| Failure::Text(source, problems))
}
