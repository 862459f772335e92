//! Reading a topology file.

use std::fs;
use std::path::Path;

use neph_lab::Topology;

use crate::exit::Failure;

/// Reads a topology file.
pub(crate) fn read(path: &Path) -> Result<Topology, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("topology {name} cannot be read: {error}")))?;
    Topology::parse(&text).map_err(|problems| {
        let sentences: Vec<String> = problems
            .iter()
            .map(|problem| {
                let place = problem.place_in(&text);
                format!(
                    "{name}:{}:{}: {}; {}",
                    place.line, place.column, problem.what, problem.remedy
                )
            })
            .collect();
        Failure::Usage(sentences.join("\n"))
    })
}
