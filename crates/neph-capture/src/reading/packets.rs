//! The packets of one capture, for commands that need whole captures.
//!
//! Owns the message about a capture without packets. Does not own what is done with a packet.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use crate::Ending;
use neph_wire::dissect::{Dissected, NoPacket, dissect, why_not};

use super::ending;
use super::snaplen::snaplen_remedy;
use super::source::{self, ReadCapture};
use super::{ReadError, Reader};
use neph_text::counted::counted;

/// Times from 1970 to 2116: their differences, and differences of these, fit into an `i64`.
const SUPPORTED_TIMES: Range<i64> = 0..1 << 62;

/// Passes on each packet that has a time, with the number of its interface, or why there is no packet.
///
/// # Errors
/// The file is missing, no capture, empty or corrupt, or holds no IP packet with its headers.
pub fn read_packets(
    path: &Path,
    reader: Reader<'_>,
    mut on_packet: impl FnMut(i64, u32, Result<&Dissected<'_>, NoPacket>),
) -> Result<(), ReadError> {
    let source = source::open(path, reader)?;
    let stop = reader.stop;
    let (mut has_packet, mut has_cut_packet) = (false, false);
    let ReadCapture { summary, error } = source.read(reader, |record| {
        let packet = dissect(record.link, record.bytes, record.length);
        let at = record.at.filter(|at| SUPPORTED_TIMES.contains(at));
        if let Some(at) = at {
            let packet = packet.as_ref();
            let packet = packet.ok_or_else(|| why_not(record.link, record.bytes, record.length));
            has_packet |= packet.is_ok();
            has_cut_packet |= packet.is_err_and(|no_packet| no_packet == NoPacket::Cut);
            let interface = record.link.interface(record.bytes);
            let interface = interface.unwrap_or(record.interface);
            on_packet(at, interface, packet);
        }
        if stop.is_set() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    if let Some(error) = error {
        return Err(error);
    }
    // Standard input ends then, at any position.
    let is_cut = matches!(summary.ending, Ending::CutOff | Ending::CutOffCompressed);
    if stop.is_set() && (is_cut || matches!(summary.ending, Ending::Whole)) {
        return Ok(());
    }
    let name = path.display();
    if let Some(message) = ending::message(&name.to_string(), &summary)? {
        (reader.print_message)(&message);
    }
    if !ending::is_whole(&summary) {
        return Ok(());
    }
    match summary.packets {
        0 => Err(ReadError::wrong(format!(
            "{name} holds no packet; capture while the traffic passes"
        ))),
        packets if has_cut_packet && !has_packet => Err(ReadError::wrong(format!(
            "{name} holds {}, none of them of IP with a time and all of its header; {}",
            counted(packets, "packet"),
            snaplen_remedy()
        ))),
        packets if !has_packet => Err(ReadError::wrong(format!(
            "{name} holds {}, none of them of IP with a time; capture where IP passes",
            counted(packets, "packet")
        ))),
        _ => Ok(()),
    }
}
