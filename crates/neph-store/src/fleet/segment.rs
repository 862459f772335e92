//! The end of a segment: its journal becomes a file of columns, then goes away.

use std::fs;
use std::path::Path;

use neph_journal::SegmentReader;
use neph_model::FleetMessage;

use super::{Counts, FleetPlace};
use crate::StoreError;
use crate::columns::{ColumnsWriter, FileFacts};
use crate::workspace::{remove_if_there, sync_folder};

/// A step that is complete. After each of them a kill must be survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentStep {
    /// The segment is in a file under a temporary name.
    Written,
    /// The file has its name; the journal says the same.
    Named,
    /// The journal is gone.
    JournalRemoved,
}

/// Called behind each step; an error of it ends the work there, as a kill would.
pub(crate) type Passed<'a> = dyn FnMut(SegmentStep) -> Result<(), StoreError> + 'a;

/// Closes a segment. May be done again after a kill at any point: each step replaces what an
/// earlier try left.
pub(crate) fn close(
    place: &FleetPlace,
    number: u32,
    facts: &FileFacts,
    passed: &mut Passed<'_>,
) -> Result<(), StoreError> {
    if copy(place, number, facts, passed)?.is_none() {
        return Ok(());
    }
    remove_if_there(&place.journal(number))?;
    passed(SegmentStep::JournalRemoved)
}

/// Makes columns of a segment's journal, which stays: how its messages ended; `None` if there is no such
/// journal.
fn copy(
    place: &FleetPlace,
    number: u32,
    facts: &FileFacts,
    passed: &mut Passed<'_>,
) -> Result<Option<Counts>, StoreError> {
    let Some(mut reader) = SegmentReader::open(&place.journals, place.experiment, number)? else {
        return Ok(None);
    };
    let mut batch: Vec<FleetMessage> = Vec::new();
    // A kill right behind the making of a journal leaves one without messages.
    if !reader.next(&mut batch)? {
        return Ok(Some(Counts::default()));
    }
    let partial = place.partial(number);
    let counts = write(&mut reader, &mut batch, &partial, facts)?;
    passed(SegmentStep::Written)?;
    fs::rename(&partial, place.segment(number))
        .map_err(StoreError::file("give a name to", &partial))?;
    sync_folder(&place.segments)?;
    passed(SegmentStep::Named)?;
    Ok(Some(counts))
}

/// Makes columns of every segment's journal, in order; the journals stay. How all messages ended.
pub(crate) fn copy_all(
    place: &FleetPlace,
    facts: &FileFacts,
    passed: &mut Passed<'_>,
) -> Result<Counts, StoreError> {
    let mut all = Counts::default();
    let numbers = place.journalled()?;
    if !numbers.is_empty() {
        place.make_segments()?;
    }
    for number in numbers {
        let counts = copy(place, number, facts, passed)?;
        all.add(&counts.unwrap_or_default());
    }
    Ok(all)
}

fn write(
    reader: &mut SegmentReader,
    batch: &mut Vec<FleetMessage>,
    path: &Path,
    facts: &FileFacts,
) -> Result<Counts, StoreError> {
    let mut writer = ColumnsWriter::<FleetMessage>::create(path, facts.clone())?;
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
    for (key, value) in counts.facts() {
        writer.fact(key, value);
    }
    writer.finish()?;
    Ok(counts)
}

/// Closes every segment that still has a journal, in order.
pub(crate) fn close_all(
    place: &FleetPlace,
    facts: &FileFacts,
    passed: &mut Passed<'_>,
) -> Result<(), StoreError> {
    for number in place.journalled()? {
        close(place, number, facts, passed)?;
    }
    place.forget_journals()
}
