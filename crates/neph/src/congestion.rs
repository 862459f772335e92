//! Which congestion controls this kernel lets us use.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;

use neph_sys::tcp::set_congestion_control;

/// What the kernel has loaded; others may be loaded on demand.
const LOADED: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A congestion control that no socket of this process can have.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) why: io::Error,
    /// Those that are there, with spaces between.
    pub(crate) loaded: String,
}

/// Tries it on a socket: a kernel that does not have it would say so at every connection, and none
/// would stand.
pub(crate) fn check(name: &str) -> Result<(), Unusable> {
    let tried = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| set_congestion_control(socket.as_fd(), name));
    tried.map_err(|why| {
        let loaded = fs::read_to_string(LOADED).unwrap_or_default();
        Unusable {
            why,
            loaded: loaded.trim().to_owned(),
        }
    })
}
