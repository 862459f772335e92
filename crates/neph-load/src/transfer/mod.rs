//! A transfer over one TCP connection: the engine of bulk uploads, background load and small
//! transfers.
//!
//! The protocol is a [`Traffic`]: a state machine that gets time and bytes as arguments. [`Driver`]
//! runs it on a socket, [`Meter`] converts the kernel's counters to seconds.

mod connection;
mod driver;
mod error;
mod meter;
mod result;

pub(crate) use connection::{Unanswered, bind_source_port, connect, connect_from, greet};
pub(crate) use driver::{Driver, FailedOperation, Next, Traffic, TransferFailure, now};
pub use error::TransferError;
pub(crate) use meter::Meter;
pub use meter::rate_of;
pub use result::TransferResult;
