//! Configuration of an engine, and its errors.

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use neph_model::Span;
use neph_sys::ring::{BLOCK_BYTES, RingError};

use crate::cue::Cue;
use crate::gate::{Change, Shape};
use crate::truth::TruthThread;

/// Configuration of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The link's name, for messages and the truth file.
    pub link: String,
    /// The interfaces towards the link's `a` and `b`, in the namespace of the calling thread.
    pub interfaces: [String; 2],
    /// The shapes from `a` to `b`, and from `b` to `a`.
    pub shapes: [Shape; 2],
    /// Scheduled changes of both directions.
    pub schedule: Vec<Change>,
    /// Starts the schedule; engines of one lab share it.
    pub cue: Arc<Cue>,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Scheduling and memory.
    pub resources: EngineResources,
    /// Where to record what happened; `None`: nowhere.
    pub truth: Option<TruthConfig>,
}

/// Scheduling and memory of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineResources {
    /// `SCHED_FIFO` priority, 1 to 99; `None`: the ordinary policy.
    pub priority: Option<u8>,
    /// Maximum time of spinning before a packet is due. The engine spins as long as its host is late to wake
    /// it, and at most a third of the time. Zero: never.
    pub spin: Span,
    /// Blocks of [`neph_sys::ring::BLOCK_BYTES`] of the receive ring of each end.
    pub ring_blocks: usize,
}

impl Default for EngineResources {
    fn default() -> Self {
        Self {
            priority: Some(50),
            spin: Span::from_micros(150),
            // 32 MiB: 110 ms at 150,000 packets/s.
            ring_blocks: (32 << 20) / BLOCK_BYTES,
        }
    }
}

/// Where, and how much of what happened, to record.
#[derive(Clone, Debug)]
pub struct TruthConfig {
    /// The file; an old one is replaced.
    pub path: PathBuf,
    /// One in this many packets is recorded; 1 for all.
    pub every: NonZeroU32,
    /// The writer, which engines of one lab share.
    pub truth_thread: TruthThread,
}

/// An engine that could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An end of the link could not be opened.
    #[error("link {link}: {source}")]
    LinkEnd {
        /// The link.
        link: String,
        /// The error.
        source: RingError,
    },
    /// The truth file could not be created or written.
    #[error("link {link}: write the truth file {path}: {source}")]
    TruthFile {
        /// The link.
        link: String,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Waiting failed.
    #[error("link {link}: wait for packets: {source}")]
    Wait {
        /// The link.
        link: String,
        /// The error.
        source: io::Error,
    },
}
