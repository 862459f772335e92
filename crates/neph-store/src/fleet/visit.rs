//! Reads a fleet's messages from journals or columnar files.

use neph_journal::SegmentReader;
use neph_model::FleetMessage;

use super::{Counts, FleetPlace};
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
fn find(fleet_files: &FleetPlace, number: u32) -> Result<Option<Segment>, StoreError> {
    let file = fleet_files.segment(number);
    if let Some(reader) = ColumnsReader::open(&file)? {
        return Ok(Some(Segment::Closed(reader)));
    }
    if let Some(reader) =
        SegmentReader::open(&fleet_files.journals, fleet_files.experiment, number)?
    {
        return Ok(Some(Segment::Open(reader)));
    }
    Ok(ColumnsReader::open(&file)?.map(Segment::Closed))
}

/// Passes the messages sent `within` to `give`, in the order of recording.
pub(crate) fn visit(
    fleet_files: &FleetPlace,
    within: SentWithin,
    give: &mut FleetVisitor<'_>,
) -> Result<(), StoreError> {
    for number in 1..=fleet_files.last()? {
        let Some(segment) = find(fleet_files, number)? else {
            continue;
        };
        let mut batch = Vec::new();
        match segment {
            Segment::Closed(reader) => {
                for group in 0..reader.row_groups() {
                    if reader
                        .range(group, "sent_ns")
                        .is_none_or(|range| within.meets(range))
                    {
                        give_within(reader.row_group(group)?, within, give)?;
                    }
                }
            }
            Segment::Open(mut reader) => {
                while reader.next(&mut batch)? {
                    give_within(std::mem::take(&mut batch), within, give)?;
                }
            }
        }
    }
    Ok(())
}

fn give_within(
    mut batch: Vec<FleetMessage>,
    within: SentWithin,
    give: &mut FleetVisitor<'_>,
) -> Result<(), StoreError> {
    if within != SentWithin::ALL {
        batch.retain(|message| within.holds(message));
    }
    if batch.is_empty() {
        return Ok(());
    }
    give(&batch)
}

/// Outcome counts of all segments. Reads only the messages of open ones.
pub(crate) fn counts(fleet_files: &FleetPlace) -> Result<Counts, StoreError> {
    let mut totals = Counts::default();
    for number in 1..=fleet_files.last()? {
        let Some(segment) = find(fleet_files, number)? else {
            continue;
        };
        match segment {
            Segment::Closed(reader) => {
                let segment_counts = Counts::determined_by(reader.properties());
                totals.add(&segment_counts.ok_or_else(|| StoreError::Malformed {
                    path: fleet_files.segment(number),
                    what: "it does not say how its messages ended".to_owned(),
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
