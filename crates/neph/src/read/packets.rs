//! The IP packets of one capture, for commands that need captures whole.
//!
//! Owns what is said of a capture that is cut off, broken or empty. Does not own what is done with a
//! packet.

use std::ops::ControlFlow;
use std::path::Path;

use neph_capture::{Ending, read_capture};
use neph_probe::Stop;
use neph_wire::dissect::{Dissected, dissect};

use super::source;
use crate::exit::Failure;
use crate::output;

/// Hands out each IP packet that has a time, with the number of its interface.
///
/// # Errors
/// The file is not there, no capture, empty, or broken.
pub(crate) fn packets(
    (command, path): (&str, &Path),
    stop: &Stop,
    mut take: impl FnMut(i64, u32, &Dissected<'_>),
) -> Result<(), Failure> {
    let mut file = source::open(path)?;
    let account = read_capture(&mut file, |record| {
        let packet = dissect(record.link, record.bytes, record.length);
        if let (Some(at), Some(packet)) = (record.at, packet) {
            let interface = record.link.interface(record.bytes);
            take(at, interface.unwrap_or(record.interface), &packet);
        }
        if stop.is_set() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let (name, bytes) = (path.display(), account.bytes);
    match account.ending {
        Ending::Whole if bytes == 0 => Err(Failure::usage(format!(
            "{name} is empty; give a capture as tcpdump -w writes it"
        ))),
        Ending::Whole | Ending::Stopped => Ok(()),
        Ending::CutOff => {
            output::say(&format!(
                "neph {command}: {name} is cut off at byte {bytes}; what stands before was read"
            ));
            Ok(())
        }
        Ending::Broken(error) => Err(Failure::usage(format!(
            "{name} is no capture that neph reads from byte {bytes} on: {error}"
        ))),
        Ending::Failed(error) => Err(Failure::refused(format!("read {name}: {error}"))),
    }
}
