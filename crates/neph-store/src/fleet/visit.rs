//! Reading a fleet's messages, wherever they are at this moment.

use neph_model::{FleetMessage, Instant, Own};

use super::journal::Reader;
use super::{Counts, FleetPlace};
use crate::StoreError;
use crate::columns::ColumnsReader;
use crate::store::FleetVisitor;

/// A time in which messages were sent. The default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentWithin {
    /// Not before; `None`: from the start.
    pub from: Option<Instant<Own>>,
    /// Before; `None`: to the end.
    pub until: Option<Instant<Own>>,
}

impl SentWithin {
    /// The whole experiment.
    pub const ALL: Self = Self {
        from: None,
        until: None,
    };

    fn holds(&self, message: &FleetMessage) -> bool {
        self.from.is_none_or(|from| message.sent >= from)
            && self.until.is_none_or(|until| message.sent < until)
    }

    /// Whether messages sent between `least` and `most` nanoseconds can be within.
    fn meets(&self, (least, most): (i64, i64)) -> bool {
        self.from.is_none_or(|from| most >= from.nanos())
            && self.until.is_none_or(|until| least < until.nanos())
    }
}

/// Where a segment was found.
enum Segment {
    Closed(ColumnsReader<FleetMessage>),
    Open(Reader),
}

/// The file comes before the journal goes: neither there, then the file again, means no segment.
fn find(place: &FleetPlace, number: u32) -> Result<Option<Segment>, StoreError> {
    let file = place.segment(number);
    if let Some(reader) = ColumnsReader::open(&file)? {
        return Ok(Some(Segment::Closed(reader)));
    }
    if let Some(reader) = Reader::open(place, number)? {
        return Ok(Some(Segment::Open(reader)));
    }
    Ok(ColumnsReader::open(&file)?.map(Segment::Closed))
}

/// Hands out the messages sent `within`, as they were recorded.
pub(crate) fn visit(
    place: &FleetPlace,
    within: SentWithin,
    give: &mut FleetVisitor<'_>,
) -> Result<(), StoreError> {
    for number in 1..=place.last()? {
        let Some(segment) = find(place, number)? else {
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

/// How the messages of all segments ended. Reads the messages of open ones only.
pub(crate) fn counts(place: &FleetPlace) -> Result<Counts, StoreError> {
    let mut all = Counts::default();
    for number in 1..=place.last()? {
        let Some(segment) = find(place, number)? else {
            continue;
        };
        match segment {
            Segment::Closed(reader) => {
                let told = Counts::told_by(reader.facts());
                all.add(&told.ok_or_else(|| StoreError::Malformed {
                    path: place.segment(number),
                    what: "it does not say how its messages ended".to_owned(),
                })?);
            }
            Segment::Open(mut reader) => {
                let mut batch = Vec::new();
                while reader.next(&mut batch)? {
                    for message in &batch {
                        all.count(message);
                    }
                }
            }
        }
    }
    Ok(all)
}
