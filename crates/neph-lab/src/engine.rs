//! The user-space link: reads frames from one interface, delays them as its gates decide, and sends them out
//! of the other.
//!
//! Owns the loop and its sleep. The gates decide; [`LinkPackets`] holds the bytes. One engine runs both
//! directions of one link on one thread, so that links are independent of each other. [`Engine::run`] works
//! on a thread of any process.
//!
//! Loop, as measured best: send what is due (at most 8), read both rings (at most 8 each), sleep in `ppoll`
//! until the next is due. Delays use `CLOCK_MONOTONIC_RAW`: a step of the wall clock affects only packets in
//! the ring at that moment.

mod bit_error;
mod config;
mod link_packets;
mod spin_budget;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use neph_model::Span;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::ring::{PacketRing, RingMode};
use neph_sys::{clock, sched};

use crate::counters::{LinkCounters, SchedulingClass};
use crate::direction::Direction;
use crate::gate::{Moment, gates_of_link};
use crate::truth::TruthWriter;
use link_packets::LinkPackets;
use spin_budget::SpinBudget;

pub use config::{EngineConfig, EngineError, EngineResources, TruthConfig};

/// Packets that are sent or read before the other side of the loop continues.
const MAX_BATCH: usize = 8;
/// Busy rounds after which the engine checks whether it should stop.
const MAX_BUSY_ROUNDS: u32 = 256;
/// Interval for reading drop counters of rings and recording an anchor.
const HOUSEKEEPING_INTERVAL: Span = Span::from_secs(1);
/// How often an idle engine with a schedule checks for a new cue. This delays nothing: a packet gets the
/// state of its own arrival time.
const CUE_CHECK_INTERVAL: Span = Span::from_millis(100);

/// Why an engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It was stopped.
    Stopped,
    /// One of its interfaces was taken down or removed.
    LinkGone,
}

/// A link that is ready for packets.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    rings: [PacketRing; 2],
    packets: LinkPackets,
    counters: Arc<LinkCounters>,
    writer: Option<TruthWriter>,
    last_housekeeping: Moment,
    /// Whether anything happened since the last housekeeping: then drops must still be counted.
    needs_housekeeping: bool,
    spin_budget: SpinBudget,
}

impl Engine {
    /// Opens both ends in the network namespace of the calling thread, on which [`Self::run`] must be called.
    ///
    /// # Errors
    /// An interface is missing or not permitted, or the truth file cannot be created.
    pub fn open(config: EngineConfig, counters: Arc<LinkCounters>) -> Result<Self, EngineError> {
        let open = |end: &String| {
            let ring_blocks = config.resources.ring_blocks;
            PacketRing::open(end, ring_blocks, RingMode::Wire).map_err(|source| {
                EngineError::LinkEnd {
                    link: config.link.clone(),
                    source,
                }
            })
        };
        let rings = [open(&config.interfaces[0])?, open(&config.interfaces[1])?];
        let opened_truth = config.truth.as_ref().map(|truth| {
            let truth_result = truth
                .truth_thread
                .open(&truth.path, &config.link, truth.every);
            truth_result.map_err(|source| EngineError::TruthFile {
                link: config.link.clone(),
                path: truth.path.clone(),
                source,
            })
        });
        let (recorder, writer) = opened_truth.transpose()?.unzip();
        let spin_budget = SpinBudget::with_max_lead(config.resources.spin);
        let gates = gates_of_link(&config.shapes, &config.schedule, config.seed);
        Ok(Self {
            config,
            rings,
            packets: LinkPackets::new(gates, Arc::clone(&counters), recorder),
            counters,
            writer,
            last_housekeeping: Moment(clock::raw().0 - HOUSEKEEPING_INTERVAL.nanos()),
            needs_housekeeping: true,
            spin_budget,
        })
    }

    /// Forwards packets until `stop`'s writing end is closed or the link is removed; waiting packets are
    /// dropped then. Requests the configured real-time priority for the calling thread.
    ///
    /// # Errors
    /// Waiting failed, or the truth file could not be completed.
    pub fn run(mut self, stop: &io::PipeReader) -> Result<EndReason, EngineError> {
        self.request_scheduling();
        let mut busy_rounds = 0;
        let end_reason = loop {
            if let Some(end_reason) = self.run_round(stop, &mut busy_rounds)? {
                break end_reason;
            }
        };
        self.do_housekeeping();
        // The recorder's data precedes the end in the writer's queue.
        drop(self.packets);
        if let (Some(writer), Some(truth)) = (self.writer.take(), &self.config.truth) {
            let (link, path) = (self.config.link.clone(), truth.path.clone());
            writer
                .finish()
                .map_err(|source| EngineError::TruthFile { link, path, source })?;
            let missed = self.counters.records_missed();
            if missed > 0 {
                tracing::warn!(
                    "the record of link {} lacks {missed} entries: the disk was too slow",
                    self.config.link
                );
            }
        }
        Ok(end_reason)
    }

    fn request_scheduling(&self) {
        let real_time = self.config.resources.priority.is_some_and(|priority| {
            sched::use_fifo(priority)
                .inspect_err(|error| {
                    // The same for all links, so log it once.
                    tracing::warn!("links run at ordinary priority, and may be late: {error}");
                })
                .is_ok()
        });
        if let Err(error) = sched::set_timer_slack(Duration::from_nanos(1)) {
            tracing::warn!("links may be late: {error}");
        }
        let locked = self.rings.iter().all(PacketRing::is_locked);
        self.counters
            .set_scheduling(SchedulingClass { real_time, locked });
    }

    fn run_round(
        &mut self,
        stop: &io::PipeReader,
        busy_rounds: &mut u32,
    ) -> Result<Option<EndReason>, EngineError> {
        self.packets.apply_cue(self.config.cue.last());
        let packets =
            self.send_due() + self.read_batch(Direction::AToB) + self.read_batch(Direction::BToA);
        let has_packets = packets > 0;
        self.needs_housekeeping |= has_packets;
        let since_housekeeping = Moment(clock::raw().0) - self.last_housekeeping;
        if self.needs_housekeeping && since_housekeeping >= HOUSEKEEPING_INTERVAL {
            self.do_housekeeping();
        }
        *busy_rounds += 1;
        if *busy_rounds < MAX_BUSY_ROUNDS && (has_packets || self.spin_if_due_soon()) {
            return Ok(None);
        }
        *busy_rounds = 0;
        let timeout = if has_packets {
            Some(Duration::ZERO)
        } else {
            self.sleep_timeout()
        };
        self.sleep(stop, timeout)
    }

    /// Sends due packets, at most a batch; returns their number.
    fn send_due(&mut self) -> usize {
        for sent in 0..MAX_BATCH {
            let now = Moment(clock::raw().0);
            if !self.packets.send_next(now, &self.rings) {
                return sent;
            }
        }
        MAX_BATCH
    }

    /// Reads the packets of one direction, at most a batch, and advances its gate to the last known arrival.
    /// So a packet gets the state of its arrival time, even if it is read later. Returns their number.
    fn read_batch(&mut self, direction: Direction) -> usize {
        let ring = &mut self.rings[direction.index()];
        let (mut clock_pair, mut last_arrival) = (None, Moment::DISTANT_PAST);
        let read_start = Moment(clock::raw().0);
        for read in 0..MAX_BATCH {
            let Some(frame) = ring.next_frame() else {
                self.packets.advance(direction, read_start);
                return read;
            };
            // One clock reading serves the batch: it takes less than 30 us.
            let clock_pair = clock_pair.get_or_insert_with(clock::pair);
            let arrival = Moment(clock_pair.to_raw(clock::WallNanos(frame.stamp())).0);
            self.packets.add_frame(direction, &frame, arrival);
            last_arrival = arrival;
        }
        self.packets.advance(direction, last_arrival);
        MAX_BATCH
    }

    /// Reads the drop counters of the rings and records an anchor: once a second while packets pass, once
    /// after the last, and at the end.
    fn do_housekeeping(&mut self) {
        self.last_housekeeping = Moment(clock::raw().0);
        self.needs_housekeeping = false;
        for (ring, direction) in self.rings.iter().zip(Direction::BOTH) {
            let dropped = ring.counts().map_or(0, |counts| counts.dropped);
            self.packets.count_ring_drops(direction, dropped);
        }
        self.packets.record_anchor();
    }

    /// Whether the next packet is so near that the engine spun instead of sleeping.
    fn spin_if_due_soon(&mut self) -> bool {
        let before = Moment(clock::raw().0);
        let lead = self.spin_budget.current_lead();
        let is_close = |due: Moment| due - before <= lead;
        if lead <= Span::ZERO || !self.packets.next_due().is_some_and(is_close) {
            return false;
        }
        std::hint::spin_loop();
        // Includes the round around the spin: about 300 ns for reading clocks and rings.
        let round = Span::from_nanos(300);
        self.spin_budget
            .record_spin(Moment(clock::raw().0) - before + round);
        true
    }

    /// How long to sleep: until the next packet is due, less the lead, or until housekeeping; `None` without
    /// either.
    fn sleep_timeout(&self) -> Option<Duration> {
        let lead = self.spin_budget.current_lead();
        let due = self.packets.next_due().map(|due| due + -lead);
        let housekeeping = self
            .needs_housekeeping
            .then(|| self.last_housekeeping + HOUSEKEEPING_INTERVAL);
        let now = Moment(clock::raw().0);
        let cue_check = (!self.config.schedule.is_empty()).then(|| now + CUE_CHECK_INTERVAL);
        let wake = due.into_iter().chain(housekeeping).chain(cue_check).min()?;
        Some((wake - now).to_duration())
    }

    fn sleep(
        &mut self,
        stop: &io::PipeReader,
        timeout: Option<Duration>,
    ) -> Result<Option<EndReason>, EngineError> {
        let before = clock::raw().0;
        let [a, b] = &self.rings;
        let mut awaited = [a.as_fd(), b.as_fd(), stop.as_fd()].map(Awaited::readable);
        ppoll::wait(&mut awaited, timeout).map_err(|source| EngineError::Wait {
            link: self.config.link.clone(),
            source,
        })?;
        let slept = Span::from_nanos(clock::raw().0 - before);
        self.spin_budget.record_sleep(slept);
        let requested_nanos = timeout.and_then(|timeout| i64::try_from(timeout.as_nanos()).ok());
        if let Some(requested_nanos) = requested_nanos.filter(|nanos| *nanos > 0)
            && !awaited.iter().any(Awaited::has_something)
        {
            self.spin_budget
                .record_wake_up(slept - Span::from_nanos(requested_nanos));
        }
        let [a, b, stop] = &awaited;
        Ok(match () {
            () if stop.is_gone() => Some(EndReason::Stopped),
            () if a.is_gone() || b.is_gone() => Some(EndReason::LinkGone),
            () => None,
        })
    }
}
