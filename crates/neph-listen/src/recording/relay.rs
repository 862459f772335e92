//! Copies a received capture into a file, record by record, so that the file is complete whenever
//! the sender stops.

use std::io::{self, ErrorKind, Read};

use neph_model::Span;
use neph_wire::capture::{CaptureError, CaptureReader, Step, pcap_record};
use thiserror::Error;

use super::course::Tally;
use crate::CaptureFile;

/// Bytes per read.
const AT_ONCE: usize = 64 << 10;

/// Length of a pcap record header.
const RECORD: usize = 16;
/// The first bytes of a little-endian pcap with nanosecond times.
const NANOS: [u8; 4] = 0xa1b2_3c4d_u32.to_le_bytes();

/// Why the copy ended.
#[derive(Debug, Error)]
pub(super) enum RelayError {
    /// The received bytes are no capture.
    #[error("what comes is no capture: {0}")]
    Broken(CaptureError),
    /// The read failed.
    #[error("{0}")]
    Failed(io::Error),
    /// A capture in another format than neph writes.
    #[error("what comes is not in nanosecond pcap, as neph writes it")]
    Format,
}

/// Copies until the end of `source`, or until a write fails. Records beyond the maximum are read
/// and dropped, so that the sender can finish.
pub(super) fn relay(
    source: &mut impl Read,
    file: &mut CaptureFile,
    tally: &Tally,
) -> Result<(), RelayError> {
    relay_moved(source, file, tally, Span::ZERO)
}

/// Like [`relay`], for a capture that neph wrote; `later` is added to its times.
pub(super) fn relay_moved(
    source: &mut impl Read,
    file: &mut CaptureFile,
    tally: &Tally,
    later: Span,
) -> Result<(), RelayError> {
    let mut is_ours = later == Span::ZERO;
    let mut reader = CaptureReader::new();
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let mut used = 0;
        loop {
            let (length, packet) = match reader.step(&bytes[used..]) {
                Ok(Step::Packet(packet, length)) => {
                    (length, Some((packet.at.unwrap_or(0), packet.length)))
                }
                Ok(Step::Skip(length)) => (length, None),
                Ok(Step::Need(_)) => break,
                Err(error) => return Err(RelayError::Broken(error)),
            };
            if !tally.is_enough() {
                let record = &bytes[used..used + length];
                match packet {
                    Some(_) if later == Span::ZERO => file.packet(&[record]),
                    Some((at, on_wire)) if is_ours => {
                        let (_, payload) = record.split_at(RECORD.min(length));
                        let many = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                        let at = at.saturating_add(later.nanos());
                        file.packet(&[&pcap_record(at, many, on_wire), payload])
                    }
                    None if is_ours || record.starts_with(&NANOS) => {
                        is_ours = true;
                        file.add(&[record])
                    }
                    _ => return Err(RelayError::Format),
                };
                tally.counted(file.packets(), file.bytes());
            }
            used += length;
        }
        bytes.drain(..used);
        file.flush();
        if file.is_refused() {
            return Ok(());
        }
        if file.bytes() > 0 {
            tally.mark_begun();
        }
        let before = bytes.len();
        bytes.resize(before + AT_ONCE, 0);
        let read = loop {
            match source.read(&mut bytes[before..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(RelayError::Failed)?,
            }
        };
        if read == 0 {
            // An incomplete last record is dropped.
            return Ok(());
        }
        bytes.truncate(before + read);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use neph_wire::capture::{ETHERNET, pcap_header, pcap_record};

    use super::*;

    /// Returns a few bytes at a time.
    struct SlowReader<'a>(&'a [u8]);

    impl Read for SlowReader<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let max_len = into.len().min(7);
            self.0.read(&mut into[..max_len])
        }
    }

    fn capture(packets: u8) -> Vec<u8> {
        let mut bytes = pcap_header(ETHERNET, 64).to_vec();
        for number in 0..packets {
            bytes.extend(pcap_record(i64::from(number), 60, 1500));
            bytes.extend([number; 60]);
        }
        bytes
    }

    fn relayed(source: &[u8], tally: &Tally) -> (Result<(), RelayError>, Vec<u8>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let mut file = CaptureFile::create(&path).expect("a new file");
        let outcome = relay(&mut SlowReader(source), &mut file, tally);
        file.finish().expect("it was written");
        (outcome, fs::read(&path).expect("it is there"))
    }

    #[test]
    fn a_truncated_record_is_omitted() {
        let tally = Tally::new(u64::MAX, u64::MAX);
        let (outcome, written) = relayed(&capture(5)[..24 + 4 * 76 + 30], &tally);
        assert!(outcome.is_ok());
        assert_eq!(written, capture(4));
        assert_eq!((tally.packets(), tally.has_begun()), (4, true));
    }

    #[test]
    fn after_the_packet_limit_the_remaining_output_is_only_read() {
        let tally = Tally::new(3, u64::MAX);
        assert_eq!(relayed(&capture(5), &tally).1, capture(3));
        let tally = Tally::new(u64::MAX, 24 + 76);
        assert_eq!(relayed(&capture(5), &tally).1, capture(1));
    }

    #[test]
    fn an_invalid_capture_is_refused_before_anything_is_written() {
        let tally = Tally::new(u64::MAX, u64::MAX);
        let (outcome, written) = relayed(b"Welcome to db1!\n", &tally);
        assert!(matches!(outcome, Err(RelayError::Broken(_))));
        assert_eq!((written.len(), tally.has_begun()), (0, false));
    }
}
