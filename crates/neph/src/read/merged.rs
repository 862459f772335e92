//! Several captures of one point as one, by time: TAPs write a file for each direction, `a.pcap+b.pcap`.
//!
//! Owns which files a name stands for, and the merged capture, which is pcapng with an interface for each
//! of theirs. Memory is that of the longest record of each.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use neph_capture::{Account, Ending};
use neph_wire::capture::{CaptureReader, Record, Step};
use neph_wire::dissect::Link;

use super::ending;
use crate::exit::{self, Failure};
use crate::output;

/// What stands between the names of files.
const AND: char = '+';
/// Bytes that are asked for at once.
const WINDOW: usize = 64 << 10;

/// The files that a name stands for: itself, or those that it joins by `+` where these are there. A file
/// whose own name has a `+` is one.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let one = || vec![path.to_path_buf()];
    let Some(text) = path.to_str().filter(|text| text.contains(AND)) else {
        return one();
    };
    if fs::metadata(path).is_ok() {
        return one();
    }
    let names: Vec<&str> = text.split(AND).collect();
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < names.len() {
        // The longest name that is there.
        let joined = |until: usize| names[from..until].join("+");
        let is_there = |until: &usize| fs::metadata(joined(*until)).is_ok();
        let until = (from + 1..=names.len())
            .rev()
            .find(is_there)
            .unwrap_or(from + 1);
        parts.push(PathBuf::from(joined(until)));
        from = until;
    }
    if parts.iter().any(|part| part.as_os_str().is_empty()) {
        return one();
    }
    parts
}

/// A capture of which one record is ahead.
struct Part {
    name: String,
    source: Box<dyn Read>,
    reader: CaptureReader,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    packets: u64,
    /// Bytes that lie behind.
    left: u64,
    ahead: Option<Ahead>,
}

/// A record, as it goes out.
struct Ahead {
    at: Option<i64>,
    link: Link,
    interface: u32,
    length: u32,
    bytes: Vec<u8>,
}

/// All of them, as one capture.
pub(super) struct Merged {
    parts: Vec<Part>,
    /// The interfaces that were told of: of which file, and which of its own.
    interfaces: Vec<(usize, u32, Link)>,
    out: Vec<u8>,
    read: usize,
}

impl Merged {
    /// Of these captures, with their names.
    ///
    /// # Errors
    /// One is no capture.
    pub(super) fn of(sources: Vec<(String, Box<dyn Read>)>) -> Result<Self, Failure> {
        let mut merged = Self {
            parts: Vec::new(),
            interfaces: Vec::new(),
            out: section(),
            read: 0,
        };
        for (name, source) in sources {
            let mut part = Part::new(name, source);
            if let Some(account) = part.advance() {
                part.say(&account)?;
            }
            merged.parts.push(part);
        }
        Ok(merged)
    }

    /// The next record in the order of time goes out; false where there is none.
    fn advance(&mut self) -> io::Result<bool> {
        let ahead = self.parts.iter().enumerate();
        let ahead = ahead.filter_map(|(place, part)| Some((part.ahead.as_ref()?.at, place)));
        let Some((_, place)) = ahead.min() else {
            return Ok(false);
        };
        let part = &mut self.parts[place];
        let Some(record) = part.ahead.take() else {
            return Ok(false);
        };
        let key = (place, record.interface, record.link);
        let known = self.interfaces.iter().position(|known| *known == key);
        let interface = known.unwrap_or_else(|| {
            interface(record.link, &mut self.out);
            self.interfaces.push(key);
            self.interfaces.len() - 1
        });
        packet(
            u32::try_from(interface).unwrap_or(0),
            &record,
            &mut self.out,
        );
        if let Some(account) = part.advance() {
            let dropped = account.dropped;
            if let Err(failure) = part.say(&account) {
                exit::say(&failure);
                return Err(io::Error::other(format!("{} ends there", part.name)));
            }
            if let Some(dropped) = dropped {
                statistics(
                    u32::try_from(interface).unwrap_or(0),
                    dropped,
                    &mut self.out,
                );
            }
        }
        Ok(true)
    }
}

impl Read for Merged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.out.len() - self.read < buffer.len().min(WINDOW) {
            if self.read > WINDOW {
                self.out.drain(..self.read);
                self.read = 0;
            }
            if !self.advance()? {
                break;
            }
        }
        let rest = &self.out[self.read..];
        let many = rest.len().min(buffer.len());
        buffer[..many].copy_from_slice(&rest[..many]);
        self.read += many;
        Ok(many)
    }
}

impl Part {
    fn new(name: String, source: Box<dyn Read>) -> Self {
        Self {
            name,
            source,
            reader: CaptureReader::new(),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            packets: 0,
            left: 0,
            ahead: None,
        }
    }

    /// Reads the next record; how the capture ended, where there is none.
    fn advance(&mut self) -> Option<Account> {
        let ending = loop {
            let needed = match self.reader.step(&self.buffer[self.start..self.end]) {
                Ok(Step::Packet(record, used)) => {
                    self.ahead = Some(Ahead::of(record));
                    self.packets += 1;
                    self.leave(used);
                    return None;
                }
                Ok(Step::Skip(used)) => {
                    self.leave(used);
                    continue;
                }
                Ok(Step::Need(needed)) => needed,
                Err(error) => break Ending::Broken(error),
            };
            match self.fill(needed) {
                Ok(true) => {}
                Ok(false) if self.start == self.end => break Ending::Whole,
                Ok(false) => break Ending::CutOff,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break Ending::CutPacked,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    break Ending::BrokenPacked(error);
                }
                Err(error) => break Ending::Failed(error),
            }
        };
        Some(Account {
            packets: self.packets,
            bytes: self.left,
            rest: (self.end - self.start) as u64,
            dropped: self.reader.dropped(),
            ending,
        })
    }

    fn leave(&mut self, used: usize) {
        self.start += used;
        self.left += used as u64;
    }

    /// Reads until there are `needed` bytes; false where there are no more.
    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.end, self.start) = (self.end - self.start, 0);
        while self.end < needed {
            if self.end == self.buffer.len() {
                self.buffer.resize((self.end * 2).max(WINDOW), 0);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// How it ended.
    fn say(&self, account: &Account) -> Result<(), Failure> {
        if let Some(said) = ending::said(&self.name, account)? {
            output::say(&format!("neph: {said}"));
        }
        Ok(())
    }
}

impl Ahead {
    fn of(record: Record<'_>) -> Self {
        Self {
            at: record.at,
            link: record.link,
            interface: record.interface,
            length: record.length,
            bytes: record.bytes.to_vec(),
        }
    }
}

/// A block of pcapng of this kind.
fn block(kind: u32, body: &[u8], out: &mut Vec<u8>) {
    let padded = body.len().next_multiple_of(4);
    let length = u32::try_from(padded + 12).unwrap_or(u32::MAX).to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(length);
    out.extend(body);
    out.resize(out.len() + padded - body.len(), 0);
    out.extend(length);
}

fn section() -> Vec<u8> {
    let mut out = Vec::new();
    let body = [
        &0x1a2b_3c4d_u32.to_le_bytes()[..],
        &[1, 0, 0, 0],
        &[0xff; 8],
    ]
    .concat();
    block(0x0a0d_0d0a, &body, &mut out);
    out
}

/// Stamps are of nanoseconds.
fn interface(link: Link, out: &mut Vec<u8>) {
    let number = u16::try_from(link.number())
        .unwrap_or(u16::MAX)
        .to_le_bytes();
    let body = [&number[..], &[0; 6], &[9, 0, 1, 0, 9, 0, 0, 0], &[0; 4]].concat();
    block(1, &body, out);
}

/// Of a packet without a time the interface is not known either.
fn packet(interface: u32, record: &Ahead, out: &mut Vec<u8>) {
    let kept = u32::try_from(record.bytes.len()).unwrap_or(u32::MAX);
    let Some(at) = record.at else {
        let body = [&record.length.to_le_bytes()[..], &record.bytes].concat();
        return block(3, &body, out);
    };
    let at = u64::try_from(at).unwrap_or(0);
    let [upper, lower] = [at >> 32, at & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(0));
    let head = [interface, upper, lower, kept, record.length];
    let mut body: Vec<u8> = head.iter().flat_map(|field| field.to_le_bytes()).collect();
    body.extend(&record.bytes);
    block(6, &body, out);
}

/// Packets that the capturing program lost.
fn statistics(interface: u32, dropped: u64, out: &mut Vec<u8>) {
    let mut body: Vec<u8> = [interface, 0, 0]
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect();
    body.extend([5, 0, 8, 0]);
    body.extend(dropped.to_le_bytes());
    body.extend([0; 4]);
    block(5, &body, out);
}
