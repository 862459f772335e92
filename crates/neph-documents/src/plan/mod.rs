//! `neph plan`, `neph check` and `neph run`: what a plan will do, and what its reader should know.

mod needed_blocks;
mod notes;
mod preview;
mod rounds;
mod shared_links;

pub use neph_campaign::estimate::to_text as time;
pub use notes::notes;
pub use preview::write_preview;
pub use shared_links::write_shared_links;
