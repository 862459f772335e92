//! What an engine is told, and what can go wrong with it.

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use neph_model::Span;
use neph_sys::ring::{BLOCK_BYTES, RingError};

use crate::cue::Cue;
use crate::gate::{Change, Shape};
use crate::truth::Scribe;

/// Everything an engine needs to know.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The link's name, for messages and the truth file.
    pub link: String,
    /// The interfaces towards the link's `a` and `b`, in the namespace of the calling thread.
    pub interfaces: [String; 2],
    /// What happens from `a` to `b`, and from `b` to `a`.
    pub shapes: [Shape; 2],
    /// What changes when, both ways.
    pub schedule: Vec<Change>,
    /// When the schedule begins; engines of one lab share it.
    pub cue: Arc<Cue>,
    /// Seeds whatever is left to chance.
    pub seed: u64,
    /// How it is to be run.
    pub pace: Pace,
    /// Where to record what happened, if anywhere.
    pub truth: Option<TruthConfig>,
}

/// How an engine is scheduled and how much memory it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `SCHED_FIFO` priority, 1 to 99; none for the ordinary policy.
    pub priority: Option<u8>,
    /// How long before a packet is due the engine stops sleeping and spins, at the most: it spins
    /// as long as its machine was late to wake it, and at most a third of its time. Zero: never.
    pub spin: Span,
    /// Blocks of [`neph_sys::ring::BLOCK_BYTES`] of receive ring for each end.
    pub ring_blocks: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            priority: Some(50),
            spin: Span::from_micros(150),
            // 32 MiB: 110 ms at 150,000 packets/s.
            ring_blocks: (32 << 20) / BLOCK_BYTES,
        }
    }
}

/// Where and how much of what happened is recorded.
#[derive(Clone, Debug)]
pub struct TruthConfig {
    /// The file to write; an old one is replaced.
    pub path: PathBuf,
    /// One in this many packets is recorded; 1 for all.
    pub every: NonZeroU32,
    /// Who writes; engines of one lab share one.
    pub scribe: Scribe,
}

/// An engine that could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An end of the link could not be opened.
    #[error("link {link}: {source}")]
    Ring {
        /// Which link.
        link: String,
        /// What failed.
        source: RingError,
    },
    /// The truth file could not be made or written.
    #[error("link {link}: write the truth file {path}: {source}")]
    Truth {
        /// Which link.
        link: String,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Waiting failed.
    #[error("link {link}: wait for packets: {source}")]
    Wait {
        /// Which link.
        link: String,
        /// Why.
        source: io::Error,
    },
}
