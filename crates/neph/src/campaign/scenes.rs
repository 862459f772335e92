//! The networks that a plan's lab has: its own topology, and those that seasons have instead.
//!
//! Owns how several are kept with a campaign, as one text. Each follows a line with its length and
//! the name of its file: `# topology 123 bytes: high.toml`.

use std::path::{Path, PathBuf};

use neph_campaign::Plan;
use neph_lab::Topology;
use neph_text::{Fault, Placed, Problem, Problems, Source};

use crate::exit::Failure;

/// One of them.
#[derive(Debug)]
pub(crate) struct Scene {
    /// The file, as the plan writes it.
    pub(crate) file: String,
    pub(crate) topology: Topology,
    pub(crate) source: Source,
}

/// Why there are no scenes.
pub(super) enum Unread {
    /// A file that the plan names cannot be had: the plan's mistake.
    File(Placed<Fault>),
    /// A topology has mistakes.
    Mistakes(Source, Vec<Problem>),
}

impl Unread {
    /// The failure that it is; `source` is the plan's.
    pub(super) fn failure(self, source: Source) -> Failure {
        let fault = match self {
            Self::Mistakes(source, problems) => return Failure::Text(source, problems),
            Self::File(fault) => fault,
        };
        let problems = Problems::new(&source);
        problems.add(fault.span, fault.value);
        let found = problems.verdict::<()>(None).err().unwrap_or_default();
        Failure::Text(source, found)
    }
}

/// Reads all that a plan names, from where `load` finds them.
pub(super) fn read(
    plan: &Plan,
    load: impl Fn(&str, PathBuf) -> Result<Source, String>,
) -> Result<Vec<Scene>, Unread> {
    let folder = Path::new(&plan.path).parent();
    let folder = folder.map_or_else(PathBuf::new, Path::to_path_buf);
    let scene = |file: &Placed<String>| match load(&file.value, folder.join(&file.value)) {
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
        Err(why) => {
            let remedy = "write the file's path as seen from the plan's folder";
            Err(Unread::File(Placed {
                value: Fault::new(why, remedy),
                span: file.span.clone(),
            }))
        }
    };
    plan.topologies().into_iter().map(scene).collect()
}

/// The text that is kept with a campaign; none without a lab.
pub(super) fn kept(scenes: &[Scene]) -> Option<String> {
    match scenes {
        [] => None,
        [only] => Some(only.source.text().to_owned()),
        several => {
            let each = several.iter().map(|scene| {
                let (text, file) = (scene.source.text(), &scene.file);
                format!("{HEAD}{} bytes: {file}\n{text}", text.len())
            });
            Some(each.collect())
        }
    }
}

const HEAD: &str = "# topology ";

/// Whether that is the text of one file, and not of several.
pub(super) fn is_one(kept: &str) -> bool {
    !kept.starts_with(HEAD)
}

/// The text of one file among those that were kept; `None` where it is not among them.
pub(super) fn of_kept<'t>(kept: &'t str, file: &str) -> Option<&'t str> {
    let mut rest = kept;
    while let Some((length, after)) = rest.strip_prefix(HEAD)?.split_once(" bytes: ") {
        let (name, text) = after.split_once('\n')?;
        let length: usize = length.parse().ok()?;
        let own = text.get(..length)?;
        if name == file {
            return Some(own);
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
    fn several_topologies_come_back_from_the_text_that_is_kept() {
        let high = LOW.replace("10.1", "10.2") + "# topology 3 bytes: low.toml\n# ä";
        let scenes = [scene("low.toml", LOW), scene("../high.toml", &high)];
        assert_eq!(kept(&scenes[..1]).as_deref(), Some(LOW));
        let text = kept(&scenes).expect("two");
        assert_eq!(of_kept(&text, "low.toml"), Some(LOW));
        assert_eq!(of_kept(&text, "../high.toml"), Some(high.as_str()));
        assert_eq!(of_kept(&text, "other.toml"), None);
        assert_eq!(of_kept(LOW, "low.toml"), None);
        assert_eq!(of_kept("# topology 99 bytes: a\nx", "a"), None);
        assert_eq!(kept(&[]), None);
    }
}
