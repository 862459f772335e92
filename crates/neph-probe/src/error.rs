//! Why a flow or a reflector could not be started. What happens later is an event or an outcome.

use std::io;
use std::net::SocketAddr;

use neph_sys::place::PlaceError;

use crate::fault::{Known, answer_of, sentence};
use crate::secret::SecretError;
use crate::tls::TlsError;

/// Names what was tried, on what.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The secret of authenticated STAMP cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The site cannot be entered.
    #[error(transparent)]
    Site(#[from] PlaceError),
    /// A socket cannot be had.
    #[error("{}", told(operation, *address, source))]
    Socket {
        /// The verb: listen on, open a socket to ...
        operation: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The port that was asked for belongs to somebody else.
    #[error("take source port {port} to reach {address}: {source}; choose another one")]
    SourcePort {
        /// Ours.
        port: u16,
        /// Who is to be reached.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A flow's own socket is a file more than this process may open.
    #[error(
        "take source port {port}: {source}; trace fewer flows, or raise the limit ('ulimit -n')"
    )]
    NoFile {
        /// Ours.
        port: u16,
        /// Which limit.
        source: io::Error,
    },
    /// All ports are taken.
    #[error(
        "find a free source port to reach {address}: all are taken; ask for fewer flows, or for a \
         lower first port"
    )]
    NoPort {
        /// Who is to be reached.
        address: SocketAddr,
    },
    /// A fleet of which nothing can be sent.
    #[error("measure a fleet: {0}")]
    Fleet(String),
    /// No thread can be had.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// ICMP sockets are forbidden.
    #[error(
        "ICMP echo needs net.ipv4.ping_group_range to include your group, or CAP_NET_RAW: run \
         'sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"' as root, or use another probe"
    )]
    IcmpForbidden,
    /// Packets of our own making are forbidden.
    #[error(
        "{what} needs CAP_NET_RAW: run it as root, or give the program the right with 'setcap \
         cap_net_raw+ep'{instead}"
    )]
    RawForbidden {
        /// What needs it.
        what: &'static str,
        /// What to do instead, beginning with a comma; or nothing.
        instead: &'static str,
    },
    /// Nobody at the target can make a small transfer.
    #[error("transfer from {target}: {reason}")]
    Transfer {
        /// The target.
        target: String,
        /// Why not.
        reason: String,
        /// Whether it refuses connections: it may be there another time.
        closed: bool,
    },
}

/// What failed; a fault of this host is named as such, with a remedy.
fn told(operation: &str, address: SocketAddr, source: &io::Error) -> String {
    // An address to listen at is the user's choice, and no port that ran out.
    let is_sending = !operation.starts_with("listen");
    let answer = answer_of(source, Known::AtOnce).filter(|_| is_sending);
    sentence(&format!("{operation} {address}"), source, answer)
}
