//! Probes over TCP: the connection, the session that keeps many of them, and the driver.

mod connection;
mod driver;
mod session;

pub(crate) use driver::drive;
