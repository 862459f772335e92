//! Writes the result in the requested format.

use std::io::Write;

use neph_capture::path::passages::Passages;
use neph_capture::path::shares;
use neph_documents::Format;
use neph_documents::hops::{
    HopsDocument, HopsLine, PacketDocument, RoundTripRow, SegmentRow, SummaryDocument, text,
};
use neph_documents::lazy_list::LazyList;
use neph_documents::rows::{self, write_json, write_json_line};

use super::Args;
use super::final_alarms::Alarms;
use crate::exit::Failure;
use crate::output;

/// Writes all results. Returns whether any delay is known.
pub(super) fn write_report(
    args: &Args,
    passages: &Passages,
    alarms: &Alarms,
) -> Result<bool, Failure> {
    let mut out = output::data();
    let delays = shares::delays(passages);
    let durations = shares::round_trips(passages);
    let segments = SegmentRow::rows(passages, &delays, &durations);
    let round_trips = RoundTripRow::rows(passages, &durations);
    let summary = || HopsLine::Summary(Box::new(SummaryDocument::of(passages)));
    let packets = || {
        let rows = passages.rows();
        rows.map(|row| HopsLine::Packet(Box::new(PacketDocument::of(passages, &row))))
    };
    match args.format {
        Format::Csv => out.write_all(rows::csv(&segments).as_bytes())?,
        Format::Text => out.write_all(text(passages, &segments, &round_trips).as_bytes())?,
        Format::Json => {
            let document = HopsDocument {
                packets: args.packets.then(|| LazyList::new(packets)),
                segments,
                round_trips,
                alarms: alarms.documents(),
                summary: summary(),
            };
            write_json(&document, &mut out)?;
        }
        Format::Ndjson => {
            if args.packets {
                packets().try_for_each(|packet| write_json_line(&packet, &mut out))?;
            }
            let segments = segments.into_iter().map(HopsLine::Segment);
            for row in segments.chain(round_trips.into_iter().map(HopsLine::RoundTrip)) {
                write_json_line(&row, &mut out)?;
            }
            for alarm in alarms.final_alarms() {
                write_json_line(&alarm, &mut out)?;
            }
            write_json_line(&summary(), &mut out)?;
        }
    }
    out.flush()?;
    Ok(delays.iter().any(|delay| delay.n > 0))
}
