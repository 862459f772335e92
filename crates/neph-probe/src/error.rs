//! Why a flow or a reflector could not be started. Later failures are events or outcomes.

use std::io;
use std::net::SocketAddr;

use neph_sys::place::PlaceError;

use crate::fault::{ErrorTime, answer_of, sentence};
use crate::secret::SecretError;
use crate::tls::TlsError;

/// Names the operation and its object.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The secret of authenticated STAMP is not available.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The site cannot be entered.
    #[error(transparent)]
    Site(#[from] PlaceError),
    /// A socket cannot be opened.
    #[error("{}", socket_error_message(operation, *address, source))]
    Socket {
        /// The verb: listen on, open a socket to ...
        operation: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// The requested source port is in use.
    #[error("take source port {port} to reach {address}: {source}; choose another one")]
    SourcePort {
        /// The source port.
        port: u16,
        /// The destination.
        address: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// A flow's own socket exceeds the number of files that this process may open.
    #[error(
        "take source port {port}: {source}; trace fewer flows, or raise the limit ('ulimit -n')"
    )]
    NoFile {
        /// The source port.
        port: u16,
        /// The limit.
        source: io::Error,
    },
    /// All ports are in use.
    #[error(
        "find a free source port to reach {address}: all are taken; ask for fewer flows, or for a \
         lower first port"
    )]
    NoPort {
        /// The destination.
        address: SocketAddr,
    },
    /// A fleet that cannot send anything.
    #[error("measure a fleet: {0}")]
    Fleet(String),
    /// No thread can be started.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// ICMP sockets are not permitted.
    #[error(
        "ICMP echo needs net.ipv4.ping_group_range to include your group, or CAP_NET_RAW: run \
         'sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"' as root, or use another probe"
    )]
    IcmpForbidden,
    /// Raw packets are not permitted.
    #[error(
        "{what} needs CAP_NET_RAW: run it as root, or give the program the right with 'setcap \
         cap_net_raw+ep'{instead}"
    )]
    RawForbidden {
        /// What needs them.
        what: &'static str,
        /// What to do instead, beginning with a comma; or empty.
        instead: &'static str,
    },
    /// The target cannot make a small transfer.
    #[error("transfer from {target}: {reason}")]
    Transfer {
        /// The target.
        target: String,
        /// The error.
        reason: String,
        /// Whether it refuses connections: it may accept them at another time.
        closed: bool,
    },
}

/// The failed operation. A fault of this host is named as one, with a remedy.
fn socket_error_message(operation: &str, address: SocketAddr, source: &io::Error) -> String {
    // The user chose the address to listen on, so it is no port that ran out.
    let is_sending = !operation.starts_with("listen");
    let answer = answer_of(source, ErrorTime::AtOnce).filter(|_| is_sending);
    sentence(&format!("{operation} {address}"), source, answer)
}
