//! The topologies of a plan's lab: the main one, and those of seasons.
//!
//! Owns the format in which a campaign stores several topologies as one text. Each follows a line
//! with its length and file name: `# topology 123 bytes: high.toml`.

use std::path::{Path, PathBuf};

use neph_campaign::Plan;
use neph_lab::Topology;
use neph_text::{Fault, Problem, Problems, Source, Spanned};

use crate::exit::Failure;

/// One topology.
#[derive(Debug)]
pub(crate) struct LabTopology {
    /// The file name in the plan.
    pub(crate) file: String,
    pub(crate) topology: Topology,
    pub(crate) source: Source,
}

/// Why the topologies cannot be read.
pub(super) enum TopologyError {
    /// A file of the plan cannot be read: a mistake of the plan.
    File(Spanned<Fault>),
    /// A topology has mistakes.
    Mistakes(Source, Vec<Problem>),
}

impl TopologyError {
    /// Converts to a failure; `source` is the plan.
    pub(super) fn failure(self, source: Source) -> Failure {
        let fault = match self {
            Self::Mistakes(source, problems) => return Failure::Text(source, problems),
            Self::File(fault) => fault,
        };
        let problems = Problems::new(&source);
        problems.add(fault.span, fault.value);
        let mistakes = problems.verdict::<()>(None).err().unwrap_or_default();
        Failure::Text(source, mistakes)
    }
}

/// Reads all topologies of a plan through `load`.
pub(super) fn read(
    plan: &Plan,
    load: impl Fn(&str, PathBuf) -> Result<Source, String>,
) -> Result<Vec<LabTopology>, TopologyError> {
    let folder = Path::new(&plan.path).parent();
    let folder = folder.map_or_else(PathBuf::new, Path::to_path_buf);
    let lab_topology = |file: &Spanned<String>| match load(&file.value, folder.join(&file.value)) {
        Ok(loaded) => {
            let (topology, source) = match Topology::parse(&loaded) {
                Ok(topology) => (topology, loaded),
                Err(problems) => return Err(TopologyError::Mistakes(loaded, problems)),
            };
            let file = file.value.clone();
            Ok(LabTopology {
                file,
                topology,
                source,
            })
        }
        Err(reason) => {
            let remedy = "write the file's path as seen from the plan's folder";
            Err(TopologyError::File(Spanned {
                value: Fault::new(reason, remedy),
                span: file.span.clone(),
            }))
        }
    };
    plan.topologies().into_iter().map(lab_topology).collect()
}

/// The text that is stored with a campaign; `None` without a lab.
pub(super) fn stored_topology(lab_topologies: &[LabTopology]) -> Option<String> {
    match lab_topologies {
        [] => None,
        [single] => Some(single.source.text().to_owned()),
        several => {
            let texts = several.iter().map(|lab_topology| {
                let (text, file) = (lab_topology.source.text(), &lab_topology.file);
                format!("{HEADING_PREFIX}{} bytes: {file}\n{text}", text.len())
            });
            Some(texts.collect())
        }
    }
}

const HEADING_PREFIX: &str = "# topology ";

/// Whether the text is that of a single file.
pub(super) fn is_single(stored_text: &str) -> bool {
    !stored_text.starts_with(HEADING_PREFIX)
}

/// The stored text of one file; `None` if it was not stored.
pub(super) fn find_stored<'t>(stored_text: &'t str, file: &str) -> Option<&'t str> {
    let mut remaining_text = stored_text;
    while let Some((length, heading_rest)) = remaining_text
        .strip_prefix(HEADING_PREFIX)?
        .split_once(" bytes: ")
    {
        let (name, text) = heading_rest.split_once('\n')?;
        let length: usize = length.parse().ok()?;
        let topology_part = text.get(..length)?;
        if name == file {
            return Some(topology_part);
        }
        remaining_text = &text[length..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab_topology(file: &str, text: &str) -> LabTopology {
        let (topology, source) =
            crate::topology::parse(Source::new(file, text)).expect("a topology");
        LabTopology {
            file: file.to_owned(),
            topology,
            source,
        }
    }

    const LOW_TOPOLOGY: &str = "version = 1\n[[site]]\nname = \"a\"\naddress = \"10.1.0.1/24\"\n";

    #[test]
    fn several_topologies_are_read_back_from_the_stored_text() {
        let high = LOW_TOPOLOGY.replace("10.1", "10.2") + "# topology 3 bytes: low.toml\n# ä";
        let lab_topologies = [
            lab_topology("low.toml", LOW_TOPOLOGY),
            lab_topology("../high.toml", &high),
        ];
        assert_eq!(
            stored_topology(&lab_topologies[..1]).as_deref(),
            Some(LOW_TOPOLOGY)
        );
        let text = stored_topology(&lab_topologies).expect("two");
        assert_eq!(find_stored(&text, "low.toml"), Some(LOW_TOPOLOGY));
        assert_eq!(find_stored(&text, "../high.toml"), Some(high.as_str()));
        assert_eq!(find_stored(&text, "other.toml"), None);
        assert_eq!(find_stored(LOW_TOPOLOGY, "low.toml"), None);
        assert_eq!(find_stored("# topology 99 bytes: a\nx", "a"), None);
        assert_eq!(stored_topology(&[]), None);
    }
}
