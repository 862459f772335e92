//! Probes over TCP: the connection, the session that keeps many of them, and the driver.

mod connection;
mod driver;
pub(crate) mod session;
mod socket;
mod tcp_sampler;

pub(crate) use driver::drive;
pub(crate) use socket::in_progress;
