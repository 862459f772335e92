//! The capture method: a packet ring, or copies by BPF programs at the interface's hooks.
//!
//! Owns the choice of the method where none was requested. Does not own counters or the parsing of
//! packets.

use std::time::Duration;

use neph_sys::bpf::{Copier, Copying, MAX_KEPT, MAX_MEMORY};
use neph_sys::clock;
use neph_sys::offload::takes_segments_whole;
use neph_sys::ppoll::{Awaited, wait};
use neph_sys::queue::discipline;
use neph_sys::ring::{BLOCK_BYTES, BlockRing, FilterStep, Packet, RingError, Taking};
use neph_wire::dissect::Link;

use crate::error::ListenError;
use crate::listening::{CaptureMethod, Heads, Listening};

/// Maximum time before waiting packets are read: rare wake-ups leave the processor to the measured
/// programs.
pub(crate) const WAKE: Duration = Duration::from_millis(20);

/// Maximum number of copied packets per read.
const BATCH: usize = 4096;
/// Copies are read more often if they fill more than this share between two reads.
const DEEP: f64 = 0.25;

#[derive(Debug)]
pub(crate) enum Source {
    Ring(BlockRing),
    Copier {
        copier: Copier,
        /// Lost packets at the last count.
        lost: u64,
        /// Time until the next read; 0 if more packets can be read at once.
        pace: Duration,
    },
}

impl Source {
    /// Opens in the calling thread's network namespace.
    pub(crate) fn open(
        listening: &Listening<'_>,
        heads: Heads,
        filter: &[FilterStep],
    ) -> Result<Self, RingError> {
        if listening.method == Some(CaptureMethod::Bpf) {
            return copier(listening, filter);
        }
        if listening.method.is_none() && reports_the_same(listening, heads) {
            // Fails on kernels without this feature, or without permission.
            if let Ok(source) = copier(listening, filter) {
                return Ok(source);
            }
        }
        ring(listening, heads, filter)
    }

    pub(crate) const fn method(&self) -> CaptureMethod {
        match self {
            Self::Ring(_) => CaptureMethod::Ring,
            Self::Copier { .. } => CaptureMethod::Bpf,
        }
    }

    /// Whether no packet waits to be read.
    pub(crate) fn has_all(&self) -> bool {
        match self {
            Self::Ring(ring) => !ring.has_block(),
            Self::Copier { pace, .. } => !pace.is_zero(),
        }
    }

    /// A function that returns the filled share of the buffer, 0 to 1, on any thread.
    pub(crate) fn gauge(&self) -> Box<dyn Fn() -> f64 + Send> {
        match self {
            Self::Ring(ring) => {
                let gauge = ring.gauge();
                Box::new(move || gauge.filled())
            }
            Self::Copier { copier, .. } => {
                let fill = copier.fill();
                Box::new(move || fill.filled())
            }
        }
    }

    /// Waits for packets for at most `max`. Returns the fault of the interface, if there is one.
    pub(crate) fn wait(&self, max: Duration) -> Result<Option<std::io::Error>, ListenError> {
        match self {
            Self::Ring(ring) => {
                let mut awaited = [Awaited::readable(std::os::fd::AsFd::as_fd(ring))];
                wait(&mut awaited, Some(max)).map_err(ListenError::refused)?;
                Ok((awaited[0].has_notice()).then(|| ring.fault()).flatten())
            }
            Self::Copier { pace, .. } if pace.is_zero() => Ok(None),
            Self::Copier { copier, pace, .. } => {
                clock::nap((*pace).min(max));
                Ok(copier.fault())
            }
        }
    }

    /// Shows some waiting packets; all copied ones if `is_last`. Returns whether there were any.
    pub(crate) fn take(&mut self, is_last: bool, mut show: impl FnMut(&Packet<'_>)) -> bool {
        match self {
            Self::Ring(ring) => {
                let Some(block) = ring.next_block() else {
                    return false;
                };
                for packet in block.packets() {
                    show(&packet);
                }
                true
            }
            Self::Copier { copier, pace, .. } => {
                let look = copier.look(BATCH, is_last, show);
                *pace = match look.filled {
                    _ if look.is_more => Duration::ZERO,
                    filled if filled > DEEP => WAKE / 8,
                    _ => WAKE,
                };
                look.taken > 0
            }
        }
    }

    /// Since the last call: packets that passed the filter, where known; lost packets; and how
    /// often the buffer was full.
    pub(crate) fn count(&mut self) -> [u64; 3] {
        match self {
            Self::Ring(ring) => ring.counts().map_or([0; 3], |counts| {
                [counts.packets, counts.dropped, counts.frozen].map(u64::from)
            }),
            Self::Copier { copier, lost, .. } => {
                let more = copier.lost() - *lost;
                *lost += more;
                [0, more, u64::from(more > 0)]
            }
        }
    }
}

/// Whether BPF programs see the same packets as a ring. A program sees sent packets before the
/// interface's queue, and before the kernel segments them for an interface without segmentation
/// offload. It also copies fewer bytes of each packet and has less memory. A property that cannot
/// be read counts as a difference.
fn reports_the_same(listening: &Listening<'_>, heads: Heads) -> bool {
    heads == Heads::Ambiguous(Link::Ethernet)
        && listening.snaplen <= MAX_KEPT
        && listening.ring.0 <= MAX_MEMORY
        && discipline(listening.interface).is_ok_and(|name| name == "noqueue")
        && takes_segments_whole(listening.interface).unwrap_or(false)
}

fn copier(listening: &Listening<'_>, filter: &[FilterStep]) -> Result<Source, RingError> {
    let copying = Copying {
        memory: listening.ring.0,
        snaplen: listening.snaplen,
        filter,
    };
    Ok(Source::Copier {
        copier: Copier::open(listening.interface, &copying)?,
        lost: 0,
        pace: WAKE,
    })
}

fn ring(
    listening: &Listening<'_>,
    heads: Heads,
    filter: &[FilterStep],
) -> Result<Source, RingError> {
    let blocks = listening.ring.0.div_ceil(BLOCK_BYTES as u64);
    let taking = Taking {
        blocks: usize::try_from(blocks).unwrap_or(usize::MAX),
        wake: WAKE,
        filter,
    };
    let ring = match heads {
        Heads::Any => BlockRing::open_any(&taking),
        Heads::Ambiguous(_) => BlockRing::open(listening.interface, &taking),
    };
    ring.map(Source::Ring)
}
