//! The labs of this host, according to their journals.

use std::io;

use super::{LabError, check_name, namespace_name, up};
use crate::journal::{self, LabObject, UndoError};
use crate::topology::Topology;

/// A lab of any process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabListing {
    /// Its name.
    pub name: String,
    /// The process that brought it up, if the journal names it.
    pub owner: Option<u32>,
    /// Whether that process still runs. If not, a crash left the lab behind.
    pub is_owner_alive: bool,
    /// Whether it is completely up.
    pub is_complete: bool,
    /// Whether that process exists for the lab only.
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

/// The entries of the folder of journals.
#[derive(Debug, Default)]
pub struct LabListings {
    /// All labs, by name.
    pub labs: Vec<LabListing>,
    /// What is wrong with each entry that is no lab, or is unreadable.
    pub errors: Vec<LabError>,
}

/// Every entry: a faulty one hides no lab.
pub(super) fn list_all() -> Result<LabListings, LabError> {
    let entries = journal::lab_entries().map_err(|source| UndoError::Journal {
        lab: "(all)".to_owned(),
        source,
    })?;
    let mut listings = LabListings::default();
    for entry in entries {
        match entry.to_str().filter(|name| check_name(name).is_ok()) {
            None => listings.errors.push(LabError::ForeignEntry {
                path: journal::folder(&entry.to_string_lossy()),
            }),
            Some(name) => match list_one(name) {
                Ok(Some(lab)) => listings.labs.push(lab),
                Ok(None) => {}
                Err(error) => listings.errors.push(error),
            },
        }
    }
    Ok(listings)
}

/// The lab called `name`; ignores other entries.
pub(super) fn list_one(name: &str) -> Result<Option<LabListing>, LabError> {
    let folder = journal::folder(name);
    let Ok(metadata) = folder.symlink_metadata() else {
        // It may have been removed just now: anyone may read an existing one.
        return Ok(None);
    };
    if !metadata.is_dir() {
        return Err(LabError::ForeignEntry { path: folder });
    }
    let content = journal::read_journal(name).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => LabError::NotPermitted {
            source: source.into(),
        },
        _ => LabError::UnreadableJournal {
            lab: name.to_owned(),
            folder,
            source,
        },
    })?;
    let is_owner_alive = content.has_running_owner();
    let wire = namespace_name(name, up::WIRE);
    let namespaces = content
        .objects
        .into_iter()
        .filter_map(|object| match object {
            LabObject::Namespace(namespace) if namespace != wire => Some(namespace),
            _ => None,
        });
    Ok(Some(LabListing {
        namespaces: namespaces.collect(),
        fingerprint: content.fingerprint,
        is_complete: content.is_complete,
        has_keeper: content.has_keeper,
        owner: content.owner.map(|(pid, _)| pid),
        is_owner_alive,
        name: name.to_owned(),
    }))
}
