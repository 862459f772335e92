//! Frame sizes of a video, and their file format.
//!
//! The file has lines of text; `#` begins a comment. The first line is `fps N`, the frames per
//! second. Each other line is the size of a frame in bytes. The trace repeats without end.

use neph_model::{BitRate, Span};

/// The built-in trace.
const ANIMATION: &str = include_str!("../../traces/animation.trace");
/// Minimum size of a frame in bytes: that of a packet's position in its frame.
const MINIMUM: u32 = 8;
/// Maximum size of a frame in bytes.
const MAX_FRAME_BYTES: u32 = 1 << 20;
/// Maximum number of frames of a trace: more than ten hours at 25 per second.
const MAX_FRAMES: usize = 1_000_000;
/// Frames in 1000 s: 1 to 120 per second.
const RATES: std::ops::RangeInclusive<u32> = 1_000..=120_000;
/// Ticks of the RTP clock per second: 90 kHz, as for all video (RFC 3551, section 5).
pub(super) const CLOCK_HZ: u32 = 90_000;
const SECOND_NS: u128 = 1_000_000_000;

/// Why a text is no trace. `Display` does not include the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The first line has no frame rate.
    #[error("line {line}: {text} is no frame rate; begin with 'fps N', N from 1 to 120")]
    InvalidRate {
        /// The line number, from 1.
        line: usize,
        /// The line, shortened.
        text: String,
    },
    /// A line has no frame size.
    #[error(
        "line {line}: {text} is no frame size; write bytes as a whole number from 8 to 1048576"
    )]
    InvalidSize {
        /// The line number, from 1.
        line: usize,
        /// The line, shortened.
        text: String,
    },
    /// There is no frame.
    #[error("it has no frame; write 'fps N' and then the size of a frame in bytes on each line")]
    Empty,
    /// There are too many frames.
    #[error("it has more than {MAX_FRAMES} frames; cut it, it is repeated without end")]
    TooLong,
}

/// The sizes of the frames of a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    frames_per_1000_s: u32,
    /// In bytes; at least one.
    sizes: Vec<u32>,
}

impl Trace {
    /// The built-in trace: an animation of nominally 1 Mbit/s with growing bursts, 30 s, 25 frames
    /// per second (docs/media.md has its formula).
    ///
    /// # Errors
    /// None: a test reads it.
    pub fn animation() -> Result<Self, TraceError> {
        Self::parse(ANIMATION)
    }

    /// Parses a trace.
    ///
    /// # Errors
    /// The first invalid line, with the remedy.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let lines = text.lines().enumerate().map(|(index, line)| NumberedLine {
            number: index + 1,
            text: line.split('#').next().unwrap_or_default().trim(),
        });
        let mut lines = lines.filter(|line| !line.text.is_empty());
        let first = lines.next().ok_or(TraceError::Empty)?;
        let rate = first.text.strip_prefix("fps ").and_then(thousandths);
        let Some(frames_per_1000_s) = rate.filter(|rate| RATES.contains(rate)) else {
            return Err(TraceError::InvalidRate {
                line: first.number,
                text: first.shown(),
            });
        };
        let mut sizes = Vec::new();
        for line in lines {
            let size = line.text.parse().ok();
            let size = size.filter(|size| (MINIMUM..=MAX_FRAME_BYTES).contains(size));
            let Some(size) = size else {
                return Err(TraceError::InvalidSize {
                    line: line.number,
                    text: line.shown(),
                });
            };
            if sizes.len() == MAX_FRAMES {
                return Err(TraceError::TooLong);
            }
            sizes.push(size);
        }
        if sizes.is_empty() {
            return Err(TraceError::Empty);
        }
        Ok(Self {
            frames_per_1000_s,
            sizes,
        })
    }

    /// Frames in 1000 s.
    pub const fn frames_per_1000_s(&self) -> u32 {
        self.frames_per_1000_s
    }

    /// Duration of the trace before it repeats.
    pub fn length(&self) -> Span {
        self.time(self.sizes.len() as u64)
    }

    /// Mean bit rate of the frames, without headers.
    pub fn mean_rate(&self) -> BitRate {
        let bytes: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        crate::transfer::rate_of(bytes, self.length())
    }

    /// The size of the frame with this number, in bytes.
    pub(super) fn size(&self, frame: u64) -> u32 {
        let index = frame % self.sizes.len() as u64;
        let size = usize::try_from(index)
            .ok()
            .and_then(|index| self.sizes.get(index));
        size.copied().unwrap_or(MINIMUM)
    }

    /// When the frame with this number is due, since the first one.
    pub(super) fn time(&self, frame: u64) -> Span {
        let nanos = u128::from(frame) * 1_000 * SECOND_NS / u128::from(self.frames_per_1000_s);
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// RTP timestamp of the frame with this number, relative to the first one, in ticks.
    pub(super) fn ticks(&self, frame: u64) -> u64 {
        let clock = u128::from(CLOCK_HZ) * 1_000;
        let ticks = u128::from(frame) * clock / u128::from(self.frames_per_1000_s);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

struct NumberedLine<'a> {
    number: usize,
    text: &'a str,
}

impl NumberedLine<'_> {
    fn shown(&self) -> String {
        neph_text::PrintableText::text(self.text).to_string()
    }
}

/// A decimal number such as `25` or `29.97`, in thousandths.
fn thousandths(text: &str) -> Option<u32> {
    let text = text.trim();
    let (integer, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(integer) || !is_number(part) || part.len() > 3 {
        return None;
    }
    let part = format!("{part:0<3}").parse::<u32>().ok()?;
    integer
        .parse::<u32>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_may_contain_comments_and_repeats_in_a_loop() {
        let trace = Trace::parse("# mine\nfps 29.97\n\n1000 # key\n10\n").expect("a trace");
        assert_eq!(trace.frames_per_1000_s(), 29_970);
        assert_eq!(
            [0, 1, 2, 3].map(|frame| trace.size(frame)),
            [1_000, 10, 1_000, 10]
        );
        assert_eq!(trace.time(2_997), Span::from_secs(100));
        assert_eq!(trace.ticks(2_997), 9_000_000);
        let rate = Trace::parse("fps 25\n1000\n").expect("a trace").mean_rate();
        assert_eq!(rate, BitRate(200_000));
    }

    #[test]
    fn an_invalid_trace_is_refused_with_its_line() {
        let refused = |text: &str| Trace::parse(text).expect_err("no trace").to_string();
        for text in ["", "# nothing\n", "fps 25\n# none\n"] {
            assert!(refused(text).starts_with("it has no frame"), "{text}");
        }
        for text in [
            "25\n",
            "fps\n100\n",
            "fps 0\n1",
            "fps 121\n1",
            "fps 1e3\n9",
            "fps 25 25\n9",
        ] {
            assert!(refused(text).contains("line 1: "), "{}", refused(text));
            assert!(
                refused(text).contains("is no frame rate; begin with"),
                "{text}"
            );
        }
        for size in ["7", "-1", "1048577", "12x", "1 2", "99999999999"] {
            let sentence = refused(&format!("# a\nfps 25\n100\n{size}\n"));
            assert!(sentence.starts_with("line 4: "), "{sentence}");
            assert!(sentence.contains(size), "{sentence}");
        }
        let long = "\u{1b}[31m".to_owned() + &"x".repeat(10_000);
        assert!(refused(&long).len() < 400);
        assert!(!refused(&long).contains('\u{1b}'));
    }
}
