//! Messages about how a capture ended: truncated, corrupt, empty or unreadable.
//!
//! Owns the sentences for all commands that read captures. Does not own messages about packets.

use crate::{Ending, ReadSummary};

use super::ReadError;
use super::compressed::gzip;
use neph_text::counted::counted;

/// Whether it ended after a whole record. Data after a compressed stream does not count.
pub fn is_whole(summary: &ReadSummary) -> bool {
    match &summary.ending {
        Ending::Whole => true,
        Ending::Undecodable(error) => gzip::is_trailing(error) && summary.unparsed_bytes == 0,
        _ => false,
    }
}

/// The message about the ending, if any. A truncated capture is used up to its end and is no error.
///
/// # Errors
/// The capture is empty, no capture, corrupt, or could not be read further.
pub fn message(name: &str, summary: &ReadSummary) -> Result<Option<String>, ReadError> {
    let bytes = summary.bytes;
    let packets = counted(summary.packets, "packet");
    let verb = if summary.packets == 1 { "was" } else { "were" };
    let note = format!("the {packets} before it {verb} read");
    match &summary.ending {
        Ending::Whole if bytes == 0 => Err(ReadError::wrong(format!(
            "{name} is empty; give a capture as tcpdump -w writes it"
        ))),
        Ending::Whole | Ending::Stopped => Ok(None),
        Ending::CutOff => Ok(Some(format!(
            "{name} is cut off within the record at byte {bytes}; {note}"
        ))),
        Ending::CutOffCompressed => Ok(Some(format!(
            "{name} is compressed and truncated: {bytes} bytes could be decompressed; {note}"
        ))),
        Ending::Broken(error) if summary.packets == 0 => Err(ReadError::wrong(format!(
            "{name} is no capture that neph reads from byte {bytes} on: {error}; give pcap or pcapng, as \
             tcpdump -w writes them"
        ))),
        Ending::Broken(error) => Err(ReadError::wrong(format!(
            "{name} is broken at byte {bytes}: {error}; {note}, and can be used alone: head -c {bytes} of \
             it, unpacked"
        ))),
        Ending::Undecodable(error) if gzip::is_trailing(error) => {
            let cut_off_note = if summary.unparsed_bytes > 0 {
                format!("is cut off within the record at byte {bytes}, and ")
            } else {
                String::new()
            };
            Ok(Some(format!(
                "{name} {cut_off_note}has data after the gzip stream, which is ignored; {note}"
            )))
        }
        Ending::Undecodable(error) => Err(ReadError::wrong(format!(
            "{name} can be decompressed up to byte {bytes} of its content ({packets} before it {verb} read): {error}"
        ))),
        Ending::Failed(error) => Err(ReadError::failed(format!(
            "read {name} behind byte {bytes}: {error}; {note}; see that its disk is well"
        ))),
    }
}
