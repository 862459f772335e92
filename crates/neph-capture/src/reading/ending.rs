//! What is said of how a capture ended: cut off, broken, empty, or unreadable.
//!
//! Owns the sentences, for all commands that read captures. Does not own what is said of the packets in
//! it.

use crate::{Account, Ending};

use super::ReadError;
use super::packed::gzip;
use neph_text::counted::counted;

/// Whether it ended behind a whole record, whatever stands behind what was packed.
pub fn is_whole(account: &Account) -> bool {
    match &account.ending {
        Ending::Whole => true,
        Ending::BrokenPacked(error) => gzip::is_trailing(error) && account.rest == 0,
        _ => false,
    }
}

/// What people should know of the ending; one that was cut off is used up to there and is not wrong.
///
/// # Errors
/// What is wrong: the capture is empty, none, broken, or could not be read further.
pub fn said(name: &str, account: &Account) -> Result<Option<String>, ReadError> {
    let bytes = account.bytes;
    let packets = counted(account.packets, "packet");
    let were = if account.packets == 1 { "was" } else { "were" };
    let kept = format!("the {packets} before it {were} read");
    match &account.ending {
        Ending::Whole if bytes == 0 => Err(ReadError::wrong(format!(
            "{name} is empty; give a capture as tcpdump -w writes it"
        ))),
        Ending::Whole | Ending::Stopped => Ok(None),
        Ending::CutOff => Ok(Some(format!(
            "{name} is cut off within the record at byte {bytes}; {kept}"
        ))),
        Ending::CutPacked => Ok(Some(format!(
            "{name} is packed and cut off: of what it holds {bytes} bytes could be unpacked; {kept}"
        ))),
        Ending::Broken(error) if account.packets == 0 => Err(ReadError::wrong(format!(
            "{name} is no capture that neph reads from byte {bytes} on: {error}; give pcap or pcapng, as \
             tcpdump -w writes them"
        ))),
        Ending::Broken(error) => Err(ReadError::wrong(format!(
            "{name} is broken at byte {bytes}: {error}; {kept}, and can be used alone: head -c {bytes} of \
             it, unpacked"
        ))),
        Ending::BrokenPacked(error) if gzip::is_trailing(error) => {
            let cut = if account.rest > 0 {
                format!("is cut off within the record at byte {bytes}, and ")
            } else {
                String::new()
            };
            Ok(Some(format!(
                "{name} {cut}has something behind what gzip packed, which is left out; {kept}"
            )))
        }
        Ending::BrokenPacked(error) => Err(ReadError::wrong(format!(
            "{name} can be unpacked up to byte {bytes} of what it holds ({packets} there {were} read): {error}"
        ))),
        Ending::Failed(error) => Err(ReadError::failed(format!(
            "read {name} behind byte {bytes}: {error}; {kept}; see that its disk is well"
        ))),
    }
}
