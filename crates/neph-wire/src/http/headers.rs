//! The header lines of one head, borrowed.
//!
//! Owns looking them up. Does not own their meaning.

use httparse::{EMPTY_HEADER, Header};

use super::head::MAX_HEADERS;

/// Header lines in the order of arrival.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    lines: [Header<'a>; MAX_HEADERS],
    count: usize,
}

impl<'a> Headers<'a> {
    pub(super) fn empty() -> Self {
        Self {
            lines: [EMPTY_HEADER; MAX_HEADERS],
            count: 0,
        }
    }

    /// The room that httparse fills.
    pub(super) fn room(&mut self) -> &mut [Header<'a>; MAX_HEADERS] {
        &mut self.lines
    }

    /// How many lines httparse filled.
    pub(super) fn set_count(&mut self, count: usize) {
        self.count = count.min(MAX_HEADERS);
    }

    /// Name and value of each line.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + '_ {
        self.lines[..self.count]
            .iter()
            .map(|line| (line.name, line.value))
    }

    /// The values of all lines with this name, in any case.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.iter()
            .filter(move |(of, _)| of.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of the first line with this name.
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// The value of the only line with this name; `None` when there is none or more than one.
    pub fn only(&self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.all(name);
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Whether a comma-separated list under this name has this member, in any case.
    pub fn lists(&self, name: &str, member: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|item| item.trim_ascii().eq_ignore_ascii_case(member.as_bytes()))
    }
}
