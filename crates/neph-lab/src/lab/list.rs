//! The labs of this machine, as their journals tell.

use std::io;

use super::{LabError, namespace_name, up};
use crate::journal::{self, Acquired, UndoError};
use crate::topology::Topology;

/// A lab that somebody brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabListing {
    /// Its name.
    pub name: String,
    /// The process that brought it up, if the journal says so.
    pub owner: Option<u32>,
    /// Whether that process is still there. If not, the lab was left behind by a crash.
    pub owner_alive: bool,
    /// Whether everything of it came up.
    pub is_whole: bool,
    /// Whether that process is there for nothing but the lab.
    pub has_keeper: bool,
    /// The namespaces of its sites.
    pub namespaces: Vec<String>,
    fingerprint: Option<String>,
}

impl LabListing {
    /// Whether it was made from this topology, by this version of neph.
    pub fn is_made_from(&self, topology: &Topology) -> bool {
        self.fingerprint.as_ref() == Some(&topology.fingerprint())
    }
}

/// All labs of this machine, by name.
pub(super) fn labs() -> Result<Vec<LabListing>, LabError> {
    let unreadable = |lab: &str| {
        let lab = lab.to_owned();
        |source| UndoError::Journal { lab, source }
    };
    let mut listings = Vec::new();
    for name in journal::labs().map_err(unreadable("(all)"))? {
        let story = journal::story(&name).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => LabError::NotPermitted {
                source: source.into(),
            },
            _ => unreadable(&name)(source).into(),
        })?;
        let owner_alive = story.is_owned();
        let wire = namespace_name(&name, up::WIRE);
        let namespaces = story
            .acquired
            .into_iter()
            .filter_map(|acquired| match acquired {
                Acquired::Namespace(namespace) if namespace != wire => Some(namespace),
                _ => None,
            });
        listings.push(LabListing {
            namespaces: namespaces.collect(),
            fingerprint: story.fingerprint,
            is_whole: story.is_whole,
            has_keeper: story.has_keeper,
            owner: story.owner.map(|(pid, _)| pid),
            owner_alive,
            name,
        });
    }
    Ok(listings)
}
