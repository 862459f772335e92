//! Samples of a growing capture, for hosts that cannot read the capture yet.
//!
//! Owns the number of packets in a sample, and the bytes of each. Does not own the choice of
//! packets (the selection of neph-capture), nor the receiver of samples.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use neph_capture::path::selection::{Selection, SelectionKey, identifying_length};
use neph_model::Span;
use neph_wire::capture::{pcap_header, pcap_record};
use neph_wire::dissect::dissect;

use super::tail::Tail;

/// Maximum packets of a sample; exceeded only by packets that must be selected together.
const MAXIMUM: usize = 32;
/// Samples per second.
const RATE: u8 = 2;

/// Consecutive samples of a growing capture.
#[derive(Debug)]
pub struct Sampling {
    tail: Tail,
    selection: Selection<Vec<u8>>,
}

impl Sampling {
    /// Time between two samples.
    pub const EVERY: Span = Span::from_nanos(1_000_000_000 / RATE as i64);
    /// Packets per second, about.
    pub const PACKETS: usize = MAXIMUM * RATE as usize;

    /// Samples of the capture at this path, as a recording writes it.
    pub fn of(path: PathBuf) -> Self {
        Self {
            tail: Tail::of(path),
            selection: Selection::of(MAXIMUM),
        }
    }

    /// A sample of the packets since the last call, as a separate capture; `None` without packets
    /// that can be recognised at another point.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn sample(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut link, mut snaplen) = (None, 0);
        let selection = &mut self.selection;
        self.tail
            .read(&(i64::MIN..i64::MAX), i64::MAX, |at, record| {
                if let Some(packet) = dissect(record.link, record.bytes, record.length)
                    && let Some(key) = SelectionKey::of(&packet)
                {
                    link = Some(record.link);
                    let bytes = &record.bytes[..identifying_length(record.bytes, &packet)];
                    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    snaplen = snaplen.max(length);
                    selection.offer(key, || {
                        [&pcap_record(at, length, record.length), bytes].concat()
                    });
                }
                ControlFlow::Continue(())
            })?;
        Ok(link.map(|link| {
            let header = pcap_header(link.number(), snaplen);
            let packets = self.selection.take();
            packets
                .into_iter()
                .fold(header.to_vec(), |mut bytes, packet| {
                    bytes.extend(packet);
                    bytes
                })
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;

    use neph_wire::capture::{CaptureReader, RAW_IP, Step};

    use super::*;

    /// Datagrams with these numbers, of 1000 bytes, of which 200 are captured.
    fn append(path: &Path, numbers: std::ops::Range<u16>) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.expect("a file");
        let mut bytes = Vec::new();
        if numbers.start == 0 {
            bytes.extend(pcap_header(RAW_IP, 200));
        }
        for number in numbers {
            let mut packet = vec![0x45, 0, 3, 232];
            packet.extend(number.to_be_bytes());
            packet.extend([0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9]);
            packet.extend([3, 212, 0, 0]);
            packet.resize(200, 7);
            bytes.extend(pcap_record(i64::from(number), 200, 1000));
            bytes.extend(packet);
        }
        file.write_all(&bytes).expect("written");
    }

    /// The times of the packets of a sample.
    fn times(sample: &[u8]) -> Vec<i64> {
        let (mut reader, mut used, mut times) = (CaptureReader::new(), 0, Vec::new());
        loop {
            used += match reader.step(&sample[used..]).expect("a capture") {
                Step::Packet(record, length) => {
                    assert_eq!((record.bytes.len(), record.length), (44, 1000));
                    times.push(record.at.expect("a time"));
                    length
                }
                Step::Skip(length) => length,
                Step::Need(_) => return times,
            };
        }
    }

    #[test]
    fn each_sample_contains_a_bounded_number_of_new_packets() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let mut sampling = Sampling::of(path.clone());
        assert_eq!(sampling.sample().expect("nothing is no fault"), None);
        append(&path, 0..20);
        let first = sampling.sample().expect("a capture").expect("packets");
        assert_eq!(times(&first), (0..20).collect::<Vec<i64>>());
        assert_eq!(sampling.sample().expect("a capture"), None);
        append(&path, 20..1_020);
        let second = sampling.sample().expect("a capture").expect("packets");
        let second_times = times(&second);
        assert_eq!(second_times.len(), MAXIMUM);
        assert!(second_times.is_sorted() && second_times[0] >= 20);
        assert!(second.len() <= 24 + MAXIMUM * (16 + 44));
    }
}
