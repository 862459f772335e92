//! Capabilities of the calling thread: which remain, in which of the five sets.
//!
//! Owns their reading and their change. The bounding set comes first: that needs a capability itself.

use std::collections::HashSet;
use std::io;

use caps::{CapSet, Capability};

use super::{Files, RestrictError};

/// Puts all permitted capabilities into effect: those that a change of user left.
pub(super) fn raise() -> Result<(), RestrictError> {
    set(CapSet::Effective, &read()?)
}

/// Removes everything but `kept` from the bounding set, as far as that is permitted: without
/// `CAP_SETPCAP` nothing can be removed, and `no_new_privs` makes the set meaningless anyway.
pub(super) fn limit_bounding_set(capabilities: &[Capability]) -> Result<(), RestrictError> {
    let may = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP);
    if !may.map_err(|error| failed("read capabilities", &error))? {
        return Ok(());
    }
    for capability in caps::runtime::thread_all_supported() {
        if !capabilities.contains(&capability) {
            caps::drop(None, CapSet::Bounding, capability).map_err(|error| {
                failed(format!("remove {capability} from the bounding set"), &error)
            })?;
        }
    }
    Ok(())
}

/// Keeps those of `kept` that the thread has, effective and permitted, and nothing inheritable or
/// ambient. Returns what remains, in a fixed order.
pub(super) fn keep(capabilities: &[Capability]) -> Result<Vec<Capability>, RestrictError> {
    let permitted = read()?;
    let available: HashSet<Capability> = capabilities
        .iter()
        .copied()
        .filter(|capability| permitted.contains(capability))
        .collect();
    // A kernel without ambient capabilities (before 4.3) has none to clear.
    let _ = caps::clear(None, CapSet::Ambient);
    set(CapSet::Inheritable, &HashSet::new())?;
    set(CapSet::Effective, &available)?;
    set(CapSet::Permitted, &available)?;
    Ok(sorted(available))
}

/// The capabilities without which a file of `files` cannot be opened by the user that we are now:
/// root has to read and write in the folders of others.
pub(super) fn needed_for(files: &Files) -> Result<Vec<Capability>, RestrictError> {
    const OVER_FILES: [Capability; 2] = [
        Capability::CAP_DAC_OVERRIDE,
        Capability::CAP_DAC_READ_SEARCH,
    ];
    let permitted = read()?;
    let required: Vec<Capability> = OVER_FILES
        .into_iter()
        .filter(|capability| permitted.contains(capability))
        .collect();
    if required.is_empty() {
        return Ok(required);
    }
    let before = caps::read(None, CapSet::Effective);
    let before = before.map_err(|error| failed("read capabilities", &error))?;
    let without = before
        .iter()
        .copied()
        .filter(|capability| !OVER_FILES.contains(capability))
        .collect();
    set(CapSet::Effective, &without)?;
    let mut needed = Vec::new();
    if files.unwritable().is_some() {
        needed.push(Capability::CAP_DAC_OVERRIDE);
    }
    if files.unreadable().is_some() {
        needed.push(Capability::CAP_DAC_READ_SEARCH);
    }
    set(CapSet::Effective, &before)?;
    Ok(needed)
}

fn read() -> Result<HashSet<Capability>, RestrictError> {
    caps::read(None, CapSet::Permitted).map_err(|error| failed("read capabilities", &error))
}

fn set(capability_set: CapSet, to: &HashSet<Capability>) -> Result<(), RestrictError> {
    caps::set(None, capability_set, to).map_err(|error| failed("limit capabilities", &error))
}

fn sorted(capabilities: HashSet<Capability>) -> Vec<Capability> {
    let mut sorted: Vec<Capability> = capabilities.into_iter().collect();
    sorted.sort_by_key(Capability::index);
    sorted
}

fn failed(operation: impl Into<String>, error: &caps::errors::CapsError) -> RestrictError {
    RestrictError::new(operation, io::Error::other(error.to_string()))
}
