//! Errors of background load.

use std::io;
use std::net::SocketAddr;

use neph_sys::sched::SchedError;
use neph_text::counted::counted;

/// Why a load could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No thread can be pinned to this CPU.
    #[error("CPU {cpu}: {source}{hint}")]
    Cpu {
        /// The CPU.
        cpu: usize,
        /// The cause.
        source: SchedError,
        /// The usable CPUs, as the end of a sentence; empty if unknown.
        hint: String,
    },
    /// No further thread can be started.
    #[error("no more than {} can be begun here: {source}", counted(*.started as u64, "thread"))]
    Threads {
        /// Number of started threads.
        started: usize,
        /// The cause.
        source: io::Error,
    },
    /// No socket for this address.
    #[error("open a UDP socket to {to}: {source}")]
    Socket {
        /// The destination.
        to: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The load broke off.
    #[error("send to {to}: {source}")]
    Stream {
        /// The destination.
        to: SocketAddr,
        /// The cause.
        source: io::Error,
    },
}
