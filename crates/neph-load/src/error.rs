//! Why a load could not be made.

use std::io;
use std::net::SocketAddr;

use neph_sys::sched::SchedError;
use neph_text::counted::counted;

/// A load that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No thread can be on this CPU.
    #[error("CPU {cpu}: {source}{there}")]
    Cpu {
        /// The CPU.
        cpu: usize,
        /// Why not.
        source: SchedError,
        /// Which may be used, for the end of a sentence; empty where that is unknown.
        there: String,
    },
    /// No more threads than this many.
    #[error("no more than {} can be begun here: {source}", counted(*.begun as u64, "thread"))]
    Threads {
        /// How many were begun.
        begun: usize,
        /// Why no more.
        source: io::Error,
    },
    /// No socket towards this address.
    #[error("open a UDP socket to {to}: {source}")]
    Socket {
        /// Where it was to lead.
        to: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The load broke off.
    #[error("send to {to}: {source}")]
    Stream {
        /// Where it was sent.
        to: SocketAddr,
        /// Why it broke off.
        source: io::Error,
    },
}
