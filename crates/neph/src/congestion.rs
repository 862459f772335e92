//! Congestion controls that this kernel permits for this process.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;

use neph_sys::tcp::set_congestion_control;

/// Loaded congestion controls; the kernel may load others on demand.
const LOADED_PATH: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A congestion control that sockets of this process cannot use.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) reason: io::Error,
    /// The loaded ones, separated by spaces.
    pub(crate) loaded: String,
}

/// Tries the congestion control on a socket. Otherwise each connection would fail on a kernel
/// without it.
pub(crate) fn check(name: &str) -> Result<(), Unusable> {
    let result = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| set_congestion_control(socket.as_fd(), name));
    result.map_err(|reason| {
        let loaded = fs::read_to_string(LOADED_PATH).unwrap_or_default();
        Unusable {
            reason,
            loaded: loaded.trim().to_owned(),
        }
    })
}
