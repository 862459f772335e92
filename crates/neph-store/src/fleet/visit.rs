//! Reads a fleet's messages from journals or columnar files.

use neph_journal::SegmentReader;
use neph_model::FleetMessage;

use super::{Counts, FleetFolders};
use crate::columns::ColumnsReader;
use crate::store::FleetVisitor;
use crate::{SentWithin, StoreError};

/// A segment, from its file or its journal.
enum Segment {
    Closed(ColumnsReader<FleetMessage>),
    Open(SegmentReader),
}

/// The file exists before the journal is removed. So without both, a second look for the file
/// decides.
fn find(fleet_folders: &FleetFolders, number: u32) -> Result<Option<Segment>, StoreError> {
    let file = fleet_folders.segment(number);
    if let Some(reader) = ColumnsReader::open(&file)? {
        return Ok(Some(Segment::Closed(reader)));
    }
    if let Some(reader) =
        SegmentReader::open(&fleet_folders.journals, fleet_folders.experiment, number)?
    {
        return Ok(Some(Segment::Open(reader)));
    }
    Ok(ColumnsReader::open(&file)?.map(Segment::Closed))
}

/// Passes the messages sent in `range` to `visitor`, in the order of recording.
pub(crate) fn visit(
    fleet_folders: &FleetFolders,
    range: SentWithin,
    visitor: &mut FleetVisitor<'_>,
) -> Result<(), StoreError> {
    for number in 1..=fleet_folders.last_number()? {
        let Some(segment) = find(fleet_folders, number)? else {
            continue;
        };
        let mut batch = Vec::new();
        match segment {
            Segment::Closed(reader) => {
                for group in 0..reader.row_groups() {
                    if reader
                        .range(group, "sent_ns")
                        .is_none_or(|sent_range| range.overlaps(sent_range))
                    {
                        visit_within(reader.row_group(group)?, range, visitor)?;
                    }
                }
            }
            Segment::Open(mut reader) => {
                while reader.next(&mut batch)? {
                    visit_within(std::mem::take(&mut batch), range, visitor)?;
                }
            }
        }
    }
    Ok(())
}

fn visit_within(
    mut batch: Vec<FleetMessage>,
    range: SentWithin,
    visitor: &mut FleetVisitor<'_>,
) -> Result<(), StoreError> {
    if range != SentWithin::ALL {
        batch.retain(|message| range.contains(message));
    }
    if batch.is_empty() {
        return Ok(());
    }
    visitor(&batch)
}

/// Outcome counts of all segments. Reads only the messages of open ones.
pub(crate) fn counts(fleet_folders: &FleetFolders) -> Result<Counts, StoreError> {
    let mut totals = Counts::default();
    for number in 1..=fleet_folders.last_number()? {
        let Some(segment) = find(fleet_folders, number)? else {
            continue;
        };
        match segment {
            Segment::Closed(reader) => {
                let segment_counts = Counts::from_properties(reader.properties());
                totals.add(&segment_counts.ok_or_else(|| StoreError::Malformed {
                    path: fleet_folders.segment(number),
                    reason: "it does not say how its messages ended".to_owned(),
                })?);
            }
            Segment::Open(mut reader) => {
                let mut batch = Vec::new();
                while reader.next(&mut batch)? {
                    for message in &batch {
                        totals.count(message);
                    }
                }
            }
        }
    }
    Ok(totals)
}
