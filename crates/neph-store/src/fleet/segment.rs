//! Closes a segment: writes a columnar file from its journal, then removes the journal.

use std::fs;
use std::path::Path;

use neph_journal::SegmentReader;
use neph_model::FleetMessage;

use super::{Counts, FleetFolders};
use crate::StoreError;
use crate::columns::{ColumnsWriter, FileMetadata};
use crate::workspace::{remove_if_exists, sync_folder};

/// A completed step. A kill after any of them loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentStep {
    /// The segment is in a file under a temporary name.
    Written,
    /// The file has its name; the journal still has the same contents.
    Named,
    /// The journal is removed.
    JournalRemoved,
}

/// Called after each step; its error stops the work, as a kill would.
pub(crate) type StepCallback<'a> = dyn FnMut(SegmentStep) -> Result<(), StoreError> + 'a;

/// Closes a segment. May be repeated after a kill at any point: each step replaces the result of an
/// earlier attempt.
pub(crate) fn close(
    fleet_folders: &FleetFolders,
    number: u32,
    metadata: &FileMetadata,
    on_step: &mut StepCallback<'_>,
) -> Result<(), StoreError> {
    if copy(fleet_folders, number, metadata, on_step)?.is_none() {
        return Ok(());
    }
    remove_if_exists(&fleet_folders.journal(number))?;
    on_step(SegmentStep::JournalRemoved)
}

/// Writes the columnar file of a segment and keeps its journal. Returns the outcome counts; `None`
/// if there is no journal.
fn copy(
    fleet_folders: &FleetFolders,
    number: u32,
    metadata: &FileMetadata,
    on_step: &mut StepCallback<'_>,
) -> Result<Option<Counts>, StoreError> {
    let Some(mut reader) =
        SegmentReader::open(&fleet_folders.journals, fleet_folders.experiment, number)?
    else {
        return Ok(None);
    };
    let mut batch: Vec<FleetMessage> = Vec::new();
    // A kill right after the creation of a journal leaves one without messages.
    if !reader.next(&mut batch)? {
        return Ok(Some(Counts::default()));
    }
    let partial = fleet_folders.partial(number);
    let counts = write(&mut reader, &mut batch, &partial, metadata)?;
    on_step(SegmentStep::Written)?;
    fs::rename(&partial, fleet_folders.segment(number))
        .map_err(StoreError::file("give a name to", &partial))?;
    sync_folder(&fleet_folders.segments)?;
    on_step(SegmentStep::Named)?;
    Ok(Some(counts))
}

/// Writes the columnar files of all journals, in order, and keeps the journals. Returns the outcome
/// counts.
pub(crate) fn copy_all(
    fleet_folders: &FleetFolders,
    metadata: &FileMetadata,
    on_step: &mut StepCallback<'_>,
) -> Result<Counts, StoreError> {
    let mut totals = Counts::default();
    let numbers = fleet_folders.journalled_segments()?;
    if !numbers.is_empty() {
        fleet_folders.create_segments_folder()?;
    }
    for number in numbers {
        let counts = copy(fleet_folders, number, metadata, on_step)?;
        totals.add(&counts.unwrap_or_default());
    }
    Ok(totals)
}

fn write(
    reader: &mut SegmentReader,
    batch: &mut Vec<FleetMessage>,
    path: &Path,
    metadata: &FileMetadata,
) -> Result<Counts, StoreError> {
    let mut writer = ColumnsWriter::<FleetMessage>::create(path, metadata.clone())?;
    let mut counts = Counts::default();
    loop {
        for message in batch.iter() {
            counts.count(message);
            writer.push(message)?;
        }
        if !reader.next(batch)? {
            break;
        }
    }
    for (key, value) in counts.properties() {
        writer.add_metadata(key, value);
    }
    writer.finish()?;
    Ok(counts)
}

/// Closes every segment that still has a journal, in order.
pub(crate) fn close_all(
    fleet_folders: &FleetFolders,
    metadata: &FileMetadata,
    on_step: &mut StepCallback<'_>,
) -> Result<(), StoreError> {
    for number in fleet_folders.journalled_segments()? {
        close(fleet_folders, number, metadata, on_step)?;
    }
    fleet_folders.remove_journals()
}
