//! The borrowed header lines of one head.
//!
//! Owns the lookup. Does not own the meaning of headers.

use httparse::{EMPTY_HEADER, Header};

/// Maximum number of header lines of a request head.
pub const MAX_HEADERS: usize = 64;

/// Header lines in their order.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    lines: Lines<'a>,
    count: usize,
}

/// Storage for header lines, without allocation for up to [`MAX_HEADERS`].
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the common one, and saves an allocation for each reply"
)]
enum Lines<'a> {
    Few([Header<'a>; MAX_HEADERS]),
    Many(Vec<Header<'a>>),
}

impl<'a> Headers<'a> {
    pub(super) fn empty() -> Self {
        Self {
            lines: Lines::Few([EMPTY_HEADER; MAX_HEADERS]),
            count: 0,
        }
    }

    /// Storage for up to `max` lines.
    pub(super) fn with_room(max: usize) -> Self {
        Self {
            lines: Lines::Many(vec![EMPTY_HEADER; max]),
            count: 0,
        }
    }

    fn lines(&self) -> &[Header<'a>] {
        let entries = match &self.lines {
            Lines::Few(lines) => lines.as_slice(),
            Lines::Many(lines) => lines.as_slice(),
        };
        &entries[..self.count]
    }

    /// The storage for httparse to fill.
    pub(super) fn storage(&mut self) -> &mut [Header<'a>] {
        match &mut self.lines {
            Lines::Few(lines) => lines,
            Lines::Many(lines) => lines,
        }
    }

    /// Sets how many lines httparse filled.
    pub(super) fn set_count(&mut self, count: usize) {
        self.count = count.min(self.storage().len());
    }

    /// Name and value of each line.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + '_ {
        self.lines().iter().map(|line| (line.name, line.value))
    }

    /// The values of all lines with this name, ignoring case.
    pub fn get_all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.iter()
            .filter(move |(of, _)| of.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of the first line with this name.
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// The value of the only line with this name; `None` if there is none or more than one.
    pub fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.get_all(name);
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Whether a comma-separated list under this name has this member, ignoring case.
    pub fn lists(&self, name: &str, member: &str) -> bool {
        self.get_all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(member.as_bytes()))
    }
}
