//! A file of frames after a header. Each frame's checksum includes the one before it. So whatever
//! happens to the file, a reader gets a prefix of what was written, and nothing else.
//!
//! Owns the chain of checksums, the single write(2) per call, the truncation after a failed write,
//! and reading up to the last complete frame. Does not own the contents of headers and frames.
//!
//! ```text
//! header: its owner's, with a checksum of its own
//! frame:  length:u32 crc:u32 payload   crc = crc32(crc of the frame before, length, payload)
//! ```
//!
//! Written data survives the end of the process, but not a loss of power.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::JournalError;

/// Bytes of a frame's header: length and checksum.
pub(crate) const FRAME_HEADER_BYTES: usize = 8;
/// Maximum payload; a greater length can only be damage.
pub(crate) const MAX_PAYLOAD: usize = 2 << 20;

/// The only writer of one file.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    file: File,
    path: PathBuf,
    /// The checksum of the last frame.
    previous_crc: u32,
    /// The length of the file: only complete frames.
    length: u64,
    /// The frames of one call; reused, so that calls do not allocate.
    frames: Vec<u8>,
}

impl FrameWriter {
    /// Creates a file with this header; an error if it exists.
    pub(crate) fn create(path: &Path, header: &[u8]) -> Result<Self, JournalError> {
        let mut file = File::options()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(JournalError::file("create the journal", path))?;
        file.write_all(header)
            .map_err(JournalError::file("write the journal", path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            previous_crc: crc32fast::hash(header),
            length: header.len() as u64,
            frames: Vec::new(),
        })
    }

    /// Passes a frame for each of `items` to the kernel; either all of them are safe, or none is
    /// written.
    ///
    /// # Errors
    /// Writing failed, or an item is longer than [`MAX_PAYLOAD`].
    pub(crate) fn append<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        encode: impl Fn(T, &mut Vec<u8>),
    ) -> Result<(), JournalError> {
        self.frames.clear();
        let mut previous_crc = self.previous_crc;
        for item in items {
            previous_crc = append_frame(previous_crc, &mut self.frames, |out| encode(item, out))
                .map_err(|bytes| JournalError::TooLarge {
                    path: self.path.clone(),
                    bytes,
                })?;
        }
        if let Err(error) = self.file.write_all(&self.frames) {
            // Frames after an incomplete one would be lost. If truncation fails, too, the reader
            // stops at the incomplete frame and still gets a prefix.
            let _truncated = self.file.set_len(self.length);
            return Err(JournalError::file("write the journal", &self.path)(error));
        }
        self.length += self.frames.len() as u64;
        self.previous_crc = previous_crc;
        Ok(())
    }

    /// Writes the data to the disk: it survives a loss of power when this returns.
    pub(crate) fn sync(&self) -> Result<(), JournalError> {
        let synced = self.file.sync_data();
        synced.map_err(JournalError::file("write the journal", &self.path))
    }

    /// The file's length, the header included.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }
}

/// Appends a frame to `frames`; returns its checksum, or a length above the limit as the error.
fn append_frame(
    previous_crc: u32,
    frames: &mut Vec<u8>,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<u32, usize> {
    let start = frames.len();
    frames.extend([0; FRAME_HEADER_BYTES]);
    encode(frames);
    let payload = &frames[start + FRAME_HEADER_BYTES..];
    let length = match u32::try_from(payload.len()) {
        Ok(length) if payload.len() <= MAX_PAYLOAD => length.to_le_bytes(),
        _ => return Err(payload.len()),
    };
    let crc = frame_crc(previous_crc, length, payload);
    frames[start..start + 4].copy_from_slice(&length);
    frames[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    Ok(crc)
}

/// The checksum of a frame, from the one before it (the header's for the first).
fn frame_crc(previous_crc: u32, length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&previous_crc.to_le_bytes());
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// The bytes of a file with these payloads and correct checksums, and the offset of each frame.
pub(crate) fn encode_file(header: &[u8], payloads: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut offsets) = (header.to_vec(), Vec::new());
    let mut previous_crc = crc32fast::hash(header);
    for payload in payloads {
        offsets.push(bytes.len() as u64);
        previous_crc = append_frame(previous_crc, &mut bytes, |out| {
            out.extend_from_slice(payload);
        })
        .expect("callers give short payloads");
    }
    (bytes, offsets)
}

/// Returns the frames of a file in their order, also while it is written.
#[derive(Debug)]
pub(crate) struct FrameReader {
    file: BufReader<File>,
    path: PathBuf,
    previous_crc: u32,
    /// The offset of the next frame; `None` after the last complete one.
    next_offset: Option<u64>,
    payload: Vec<u8>,
}

impl FrameReader {
    /// `Ok(None)` if there is no such file. A file with another or an incomplete header has no
    /// frames.
    pub(crate) fn open(path: &Path, header: &[u8]) -> Result<Option<Self>, JournalError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::file("open the journal", path)(error)),
        };
        let mut reader = Self {
            file: BufReader::with_capacity(1 << 16, file),
            path: path.to_owned(),
            previous_crc: crc32fast::hash(header),
            next_offset: None,
            payload: Vec::new(),
        };
        let mut file_header = vec![0; header.len()];
        if reader.fill(&mut file_header)? && file_header == header {
            reader.next_offset = Some(header.len() as u64);
        }
        Ok(Some(reader))
    }

    /// The next frame, decoded by `decode`, and its offset. `None` at the end, at the first
    /// damaged byte, or if `decode` returns `None`. A reader cannot distinguish these, and reads
    /// nothing after them.
    pub(crate) fn next<T>(
        &mut self,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<(u64, T)>, JournalError> {
        let Some(start) = self.next_offset.take() else {
            return Ok(None);
        };
        let mut header = [0; FRAME_HEADER_BYTES];
        if !self.fill(&mut header)? {
            return Ok(None);
        }
        let [l0, l1, l2, l3, c0, c1, c2, c3] = header;
        let length = [l0, l1, l2, l3];
        let payload_len = u32::from_le_bytes(length) as usize;
        if payload_len > MAX_PAYLOAD {
            return Ok(None);
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(payload_len, 0);
        let is_complete = self.fill(&mut payload)?;
        let crc = u32::from_le_bytes([c0, c1, c2, c3]);
        let decoded = (is_complete && frame_crc(self.previous_crc, length, &payload) == crc)
            .then(|| decode(&payload))
            .flatten();
        self.payload = payload;
        Ok(decoded.map(|decoded| {
            self.previous_crc = crc;
            self.next_offset = Some(start + (FRAME_HEADER_BYTES + payload_len) as u64);
            (start, decoded)
        }))
    }

    /// The open file, for reads at any offset.
    pub(crate) fn into_file(self) -> File {
        self.file.into_inner()
    }

    /// Fills `buffer`; false if the file ends earlier.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, JournalError> {
        match self.file.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(JournalError::file("read the journal", &self.path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    const HEADER: &[u8] = b"header";

    fn read(path: &Path, header: &[u8]) -> Vec<Vec<u8>> {
        let mut reader = FrameReader::open(path, header)
            .expect("readable")
            .expect("there");
        let mut next = || reader.next(|payload| Some(payload.to_vec()));
        std::iter::from_fn(|| next().expect("readable"))
            .map(|(_, payload)| payload)
            .collect()
    }

    fn temporary_journal() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.journal");
        (folder, path)
    }

    fn write(payload: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(payload);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_corruption_of_the_file_yields_a_prefix(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..12),
            at in any::<prop::sample::Index>(),
            bit in 0..9_u32,
        ) {
            let (_folder, path) = temporary_journal();
            let mut writer = FrameWriter::create(&path, HEADER).expect("a new file");
            for batch in payloads.chunks(3) {
                writer.append(batch, |payload, out| write(payload, out)).expect("written");
            }
            prop_assert_eq!(&read(&path, HEADER), &payloads);
            prop_assert!(read(&path, b"HEADER").is_empty());
            let slices: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let mut bytes = fs::read(&path).expect("readable");
            prop_assert_eq!(&encode_file(HEADER, &slices).0, &bytes);
            let at = at.index(bytes.len());
            match bit {
                8 => bytes.truncate(at),
                bit => bytes[at] ^= 1 << bit,
            }
            fs::write(&path, &bytes).expect("writable");
            let prefix = read(&path, HEADER);
            prop_assert!(prefix.len() < payloads.len());
            prop_assert_eq!(&payloads[..prefix.len()], &prefix[..]);
        }
    }

    #[test]
    fn a_removed_frame_ends_the_readable_part() {
        let (_folder, path) = temporary_journal();
        let payloads: [&[u8]; 3] = [b"one", b"two", b"three"];
        let (mut bytes, offsets) = encode_file(HEADER, &payloads);
        let [_, second, third] = offsets[..] else {
            panic!("{offsets:?}")
        };
        let to_usize = |offset: u64| usize::try_from(offset).expect("a small file");
        bytes.drain(to_usize(second)..to_usize(third));
        fs::write(&path, bytes).expect("writable");
        assert_eq!(read(&path, HEADER), [b"one"]);
    }

    #[test]
    fn an_undecodable_payload_ends_the_readable_part() {
        let (_folder, path) = temporary_journal();
        fs::write(&path, encode_file(HEADER, &[b"a", b"b", b"a"]).0).expect("writable");
        let mut reader = FrameReader::open(&path, HEADER)
            .expect("readable")
            .expect("there");
        let mut next = || {
            reader
                .next(|payload| (payload == b"a").then_some(()))
                .expect("readable")
        };
        assert_eq!([next(), next(), next()], [Some((6, ())), None, None]);
    }

    #[test]
    fn a_payload_above_the_size_limit_is_refused_without_side_effects() {
        let (_folder, path) = temporary_journal();
        let mut writer = FrameWriter::create(&path, HEADER).expect("a new file");
        let huge = vec![0; MAX_PAYLOAD + 1];
        let error = writer.append([b"small", &huge[..]], write);
        let error = error.expect_err("too large").to_string();
        assert!(error.contains("2097153 bytes"), "{error}");
        writer.append([&b"later"[..]], write).expect("written");
        assert_eq!(read(&path, HEADER), [b"later"]);
    }

    /// In a separate process whose files are limited to 8 x 512 bytes.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
    fn a_partial_write_is_truncated() {
        const NAME: &str = "frames::tests::a_partial_write_is_truncated";
        const CHILD: &str = "NEPH_FRAMES_TEST_FILE";
        if let Ok(path) = std::env::var(CHILD) {
            let mut writer = FrameWriter::create(path.as_ref(), HEADER).expect("a new file");
            writer.append([&b"before"[..]], write).expect("it fits");
            let large = vec![7; 8_000];
            let error = writer.append([b"with it", &large[..]], write);
            error.expect_err("it does not fit");
            writer.append([&b"behind"[..]], write).expect("it fits");
            return;
        }
        let (_folder, path) = temporary_journal();
        // Without the trap, the limit's signal would end the process.
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\"";
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(std::env::current_exe().expect("known"))
            .arg(NAME)
            .env(CHILD, &path)
            .output()
            .expect("sh runs");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && stdout.contains("1 passed"),
            "{stdout}"
        );
        assert_eq!(read(&path, HEADER), [b"before", b"behind"]);
    }
}
