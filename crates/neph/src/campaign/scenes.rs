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
pub(crate) struct Scene {
    /// The file name in the plan.
    pub(crate) file: String,
    pub(crate) topology: Topology,
    pub(crate) source: Source,
}

/// Why the topologies cannot be read.
pub(super) enum Unread {
    /// A file of the plan cannot be read: a mistake of the plan.
    File(Spanned<Fault>),
    /// A topology has mistakes.
    Mistakes(Source, Vec<Problem>),
}

impl Unread {
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
) -> Result<Vec<Scene>, Unread> {
    let folder = Path::new(&plan.path).parent();
    let folder = folder.map_or_else(PathBuf::new, Path::to_path_buf);
    let scene = |file: &Spanned<String>| match load(&file.value, folder.join(&file.value)) {
        Ok(loaded) => {
            let (topology, source) = match Topology::parse(&loaded) {
                Ok(topology) => (topology, loaded),
                Err(problems) => return Err(Unread::Mistakes(loaded, problems)),
            };
            let file = file.value.clone();
            Ok(Scene {
                file,
                topology,
                source,
            })
        }
        Err(reason) => {
            let remedy = "write the file's path as seen from the plan's folder";
            Err(Unread::File(Spanned {
                value: Fault::new(reason, remedy),
                span: file.span.clone(),
            }))
        }
    };
    plan.topologies().into_iter().map(scene).collect()
}

/// The text that is stored with a campaign; `None` without a lab.
pub(super) fn stored_topology(scenes: &[Scene]) -> Option<String> {
    match scenes {
        [] => None,
        [only] => Some(only.source.text().to_owned()),
        several => {
            let texts = several.iter().map(|scene| {
                let (text, file) = (scene.source.text(), &scene.file);
                format!("{HEAD}{} bytes: {file}\n{text}", text.len())
            });
            Some(texts.collect())
        }
    }
}

const HEAD: &str = "# topology ";

/// Whether the text is that of a single file.
pub(super) fn is_one(stored: &str) -> bool {
    !stored.starts_with(HEAD)
}

/// The stored text of one file; `None` if it was not stored.
pub(super) fn of_kept<'t>(stored: &'t str, file: &str) -> Option<&'t str> {
    let mut rest = stored;
    while let Some((length, after)) = rest.strip_prefix(HEAD)?.split_once(" bytes: ") {
        let (name, text) = after.split_once('\n')?;
        let length: usize = length.parse().ok()?;
        let topology_part = text.get(..length)?;
        if name == file {
            return Some(topology_part);
        }
        rest = &text[length..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(file: &str, text: &str) -> Scene {
        let (topology, source) =
            crate::topology::understand(Source::new(file, text)).expect("a topology");
        Scene {
            file: file.to_owned(),
            topology,
            source,
        }
    }

    const LOW: &str = "version = 1\n[[site]]\nname = \"a\"\naddress = \"10.1.0.1/24\"\n";

    #[test]
    fn several_topologies_are_read_back_from_the_stored_text() {
        let high = LOW.replace("10.1", "10.2") + "# topology 3 bytes: low.toml\n# ä";
        let scenes = [scene("low.toml", LOW), scene("../high.toml", &high)];
        assert_eq!(stored_topology(&scenes[..1]).as_deref(), Some(LOW));
        let text = stored_topology(&scenes).expect("two");
        assert_eq!(of_kept(&text, "low.toml"), Some(LOW));
        assert_eq!(of_kept(&text, "../high.toml"), Some(high.as_str()));
        assert_eq!(of_kept(&text, "other.toml"), None);
        assert_eq!(of_kept(LOW, "low.toml"), None);
        assert_eq!(of_kept("# topology 99 bytes: a\nx", "a"), None);
        assert_eq!(stored_topology(&[]), None);
    }
}
