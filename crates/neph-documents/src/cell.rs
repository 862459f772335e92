//! The text of values in cells of a table and in lists.

use neph_model::{BitRate, ByteSize, Span};

/// A value with a usual text in a table.
pub trait Cell {
    /// The text of the cell; `-` without a value.
    fn cell(&self) -> String;
}

impl<T: Cell> Cell for Option<T> {
    fn cell(&self) -> String {
        self.as_ref().or_dash(Cell::cell)
    }
}

/// An optional value.
pub trait OrDash<T> {
    /// Its text; `-` without a value.
    fn or_dash(self, text: impl FnOnce(T) -> String) -> String;
}

impl<T> OrDash<T> for Option<T> {
    fn or_dash(self, text: impl FnOnce(T) -> String) -> String {
        self.map_or_else(|| "-".to_owned(), text)
    }
}

macro_rules! displayed {
    ($($type:ty),+) => {
        $(impl Cell for $type {
            fn cell(&self) -> String {
                self.to_string()
            }
        })+
    };
}

displayed!(
    String, &str, u8, u16, u32, u64, usize, i32, i64, Span, ByteSize, BitRate
);
