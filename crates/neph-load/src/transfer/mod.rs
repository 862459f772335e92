//! A transfer over one TCP connection: the engine behind bulk uploads, cross traffic and small
//! transfers.
//!
//! What goes over the connection is a [`Traffic`]: a state machine that takes time and bytes as
//! arguments. [`Driver`] moves it on a socket, [`Meter`] makes seconds of the kernel's counters.

mod connection;
mod driver;
mod error;
mod meter;
mod result;

pub(crate) use connection::{Unanswered, bound, connect, connect_bound, greet};
pub(crate) use driver::{Broken, Driver, During, Next, Traffic, now};
pub use error::TransferError;
pub(crate) use meter::Meter;
pub use meter::rate_of;
pub use result::Transfer;
