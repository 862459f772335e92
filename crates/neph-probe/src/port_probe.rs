//! Checks whether a UDP port is open, by the answer of its host.
//!
//! Sends a STAMP packet. ICMP reports a closed port, but hosts and firewalls may suppress it, so silence has
//! no meaning.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use neph_model::Span;
use neph_sys::place::Placement;

use crate::ProbeError;
use crate::machine::at_site;
use crate::stamp_clock::now;

/// Time between two tries: Linux sends such an ICMP error to a peer once per second.
const RETRY_INTERVAL: Span = Span::from_millis(400);
/// An unauthenticated STAMP packet: message 0 at no known time, with the least multiplier that an error
/// estimate may have (RFC 4656).
const PACKET: [u8; 44] = {
    let mut packet = [0; 44];
    packet[13] = 1;
    packet
};

/// The result for a UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProbeResult {
    /// There was an answer.
    Answered,
    /// The host reported that the port is closed.
    Refused,
    /// There was no answer, or the packet could not be sent.
    Silent,
}

/// Sends packets to `address` from `site`, repeatedly for as long as `timeout`.
///
/// # Errors
/// When the namespace cannot be entered.
pub fn probe_port(
    address: SocketAddr,
    timeout: Span,
    site: Option<&Placement>,
) -> Result<PortProbeResult, ProbeError> {
    at_site(site, || {
        probe_port_here(address, timeout).unwrap_or(PortProbeResult::Silent)
    })
}

fn probe_port_here(address: SocketAddr, timeout: Span) -> io::Result<PortProbeResult> {
    let unspecified: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(unspecified)?;
    socket.connect(address)?;
    let deadline = now() + timeout;
    let mut buffer = [0; 64];
    loop {
        let remaining = deadline - now();
        if remaining <= Span::ZERO {
            return Ok(PortProbeResult::Silent);
        }
        socket.set_read_timeout(Some(remaining.min(RETRY_INTERVAL).to_duration()))?;
        match socket.send(&PACKET).and_then(|_| socket.recv(&mut buffer)) {
            Ok(_) => return Ok(PortProbeResult::Answered),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Ok(PortProbeResult::Refused);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reflector;
    use neph_model::ReflectorSpec;

    #[test]
    fn a_reflector_answers_a_silent_socket_does_not_and_a_free_port_is_refused() {
        let at = "127.0.0.1:0".parse().expect("an address");
        let reflector = Reflector::start(&ReflectorSpec::at(at)).expect("a port");
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = silent.local_addr().expect("bound");
        let ask = |address, timeout| probe_port(address, timeout, None).expect("no namespace");
        let long = Span::from_secs(10);
        assert_eq!(ask(reflector.address(), long), PortProbeResult::Answered);
        assert_eq!(ask(address, Span::from_millis(5)), PortProbeResult::Silent);
        drop(silent);
        assert_eq!(ask(address, long), PortProbeResult::Refused);
    }
}
