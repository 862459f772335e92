//! `neph hops`: what each segment of a path adds, packet by packet and summed up.

pub mod document;
pub mod ends;
pub mod packet;
mod rows;
mod text;

pub use document::{HopsDocument, HopsLine, SummaryDocument};
pub use packet::PacketDocument;
pub use rows::{RoundTripRow, SegmentRow};
pub use text::text;
