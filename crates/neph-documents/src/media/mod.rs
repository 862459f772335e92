//! `neph media`: what clients of a media server received, second by second and as a whole.

mod document;
mod second;
mod server_events;
mod stream;
mod text;

pub use document::{MediaDocument, MediaLine, StreamDocument};
pub use second::SecondRow;
pub use server_events::ServedLine;
pub use stream::StreamRow;
pub use text::{heading, second_line, summary};
