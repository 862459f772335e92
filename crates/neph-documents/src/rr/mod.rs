//! `neph rr`: round-trip times and losses of requests and replies in turn, second by second.

mod document;
mod second;
mod text;

pub use document::{BucketDocument, RrDocument, RrEndDocument, RrLine, RttDocument};
pub use second::RrSecondRow;
pub use text::{heading, second_line, summary};
