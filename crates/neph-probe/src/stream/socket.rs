//! A flow's TCP sockets: how they are opened and their options.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_sys::stamp::{self, Carrier};
use neph_sys::tcp;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::spec::FlowSpec;

/// `EINPROGRESS` on Linux, which `io::ErrorKind` names only on nightly.
const IN_PROGRESS: i32 = 115;

/// A socket that is about to connect.
pub(super) fn socket_for(spec: &FlowSpec) -> io::Result<Socket> {
    let domain = Domain::for_address(spec.address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(port) = spec.source_port {
        socket.set_reuse_address(true)?;
        let unspecified: SocketAddr = match spec.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
        };
        socket.bind(&SockAddr::from(unspecified))?;
        // A port cannot be reused while its last connection is in TIME_WAIT: neither for the next message nor
        // to reconnect.
        socket.set_linger(Some(Duration::ZERO))?;
    }
    if spec.target.kind().is_segment() {
        // The target must forget it at once, and no local state may remain.
        socket.set_linger(Some(Duration::ZERO))?;
    }
    Ok(socket)
}

/// Sets the options that need a connected socket.
pub(super) fn set_up(socket: &Socket, spec: &FlowSpec) -> Result<(), String> {
    stamp::enable(socket.as_fd(), Carrier::Stream)
        .map_err(|error| format!("enable kernel timestamps: {error}"))?;
    match &spec.congestion {
        Some(name) => tcp::set_congestion_control(socket.as_fd(), name)
            .map_err(|error| format!("use congestion control '{name}': {error}")),
        None => Ok(()),
    }
}

/// Whether a failed connect is an answer: to a SYN, a RST is one.
pub(super) fn is_answer(spec: &FlowSpec, error: &io::Error) -> bool {
    spec.target.kind().is_segment() && error.kind() == io::ErrorKind::ConnectionRefused
}

/// Whether a connect continues in the background.
pub(crate) fn in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(IN_PROGRESS) || error.kind() == io::ErrorKind::WouldBlock
}
