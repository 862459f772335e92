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

mod config;
mod flip;
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
use crate::gate::{Moment, both_ways};
use crate::truth::TruthWriter;
use link_packets::LinkPackets;
use spin_budget::SpinBudget;

pub use config::{EngineConfig, EngineError, Pace, TruthConfig};

/// Packets that are sent or read before the other side of the loop continues.
const BATCH: usize = 8;
/// Busy rounds after which the engine checks whether it should stop.
const ROUNDS: u32 = 256;
/// Interval for reading drop counters of rings and recording an anchor.
const HOUSEKEEPING: Span = Span::from_secs(1);
/// How often an idle engine with a schedule checks for a new cue. This delays nothing: a packet gets the
/// state of its own arrival time.
const CUE_WATCH: Span = Span::from_millis(100);

/// Why an engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
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
    carriage: LinkPackets,
    counters: Arc<LinkCounters>,
    writer: Option<TruthWriter>,
    tidied: Moment,
    /// Whether anything happened since the last housekeeping: then drops must still be counted.
    untidy: bool,
    lead: SpinBudget,
}

impl Engine {
    /// Opens both ends in the network namespace of the calling thread, on which [`Self::run`] must be called.
    ///
    /// # Errors
    /// An interface is missing or not permitted, or the truth file cannot be created.
    pub fn open(config: EngineConfig, counters: Arc<LinkCounters>) -> Result<Self, EngineError> {
        let open = |end: &String| {
            PacketRing::open(end, config.pace.ring_blocks, RingMode::Wire).map_err(|source| {
                EngineError::Ring {
                    link: config.link.clone(),
                    source,
                }
            })
        };
        let rings = [open(&config.interfaces[0])?, open(&config.interfaces[1])?];
        let started = config.truth.as_ref().map(|truth| {
            let opened = truth
                .truth_thread
                .open(&truth.path, &config.link, truth.every);
            opened.map_err(|source| EngineError::Truth {
                link: config.link.clone(),
                path: truth.path.clone(),
                source,
            })
        });
        let (recorder, writer) = started.transpose()?.unzip();
        let lead = SpinBudget::at_most(config.pace.spin);
        let gates = both_ways(&config.shapes, &config.schedule, config.seed);
        Ok(Self {
            config,
            rings,
            carriage: LinkPackets::new(gates, Arc::clone(&counters), recorder),
            counters,
            writer,
            tidied: Moment(clock::raw().0 - HOUSEKEEPING.nanos()),
            untidy: true,
            lead,
        })
    }

    /// Forwards packets until `stop`'s writing end is closed or the link is removed; waiting packets are
    /// dropped then. Requests the configured real-time priority for the calling thread.
    ///
    /// # Errors
    /// Waiting failed, or the truth file could not be completed.
    pub fn run(mut self, stop: &io::PipeReader) -> Result<Ending, EngineError> {
        self.take_scheduling();
        let mut busy_rounds = 0;
        let ending = loop {
            if let Some(ending) = self.round(stop, &mut busy_rounds)? {
                break ending;
            }
        };
        self.tidy();
        // The recorder's data precedes the end in the writer's queue.
        drop(self.carriage);
        if let (Some(writer), Some(truth)) = (self.writer.take(), &self.config.truth) {
            let (link, path) = (self.config.link.clone(), truth.path.clone());
            writer
                .finish()
                .map_err(|source| EngineError::Truth { link, path, source })?;
            let missed = self.counters.records_missed();
            if missed > 0 {
                tracing::warn!(
                    "the record of link {} lacks {missed} entries: the disk was too slow",
                    self.config.link
                );
            }
        }
        Ok(ending)
    }

    fn take_scheduling(&self) {
        let real_time = self.config.pace.priority.is_some_and(|priority| {
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
            .stand_on(SchedulingClass { real_time, locked });
    }

    fn round(
        &mut self,
        stop: &io::PipeReader,
        busy_rounds: &mut u32,
    ) -> Result<Option<Ending>, EngineError> {
        self.carriage.apply_cue(self.config.cue.last());
        let worked = self.send_due() + self.read(Direction::AToB) + self.read(Direction::BToA) > 0;
        self.untidy |= worked;
        if self.untidy && Moment(clock::raw().0) - self.tidied >= HOUSEKEEPING {
            self.tidy();
        }
        *busy_rounds += 1;
        if *busy_rounds < ROUNDS && (worked || self.spun()) {
            return Ok(None);
        }
        *busy_rounds = 0;
        let timeout = if worked {
            Some(Duration::ZERO)
        } else {
            self.until_next()
        };
        self.rest(stop, timeout)
    }

    /// Sends due packets, at most a batch; returns their number.
    fn send_due(&mut self) -> usize {
        for sent in 0..BATCH {
            let now = Moment(clock::raw().0);
            if !self.carriage.send_next(now, &self.rings) {
                return sent;
            }
        }
        BATCH
    }

    /// Reads the packets of one direction, at most a batch, and advances its gate to the last known arrival.
    /// So a packet gets the state of its arrival time, even if it is read later. Returns their number.
    fn read(&mut self, direction: Direction) -> usize {
        let ring = &mut self.rings[direction.index()];
        let (mut pair, mut last) = (None, Moment::DAWN);
        let looked = Moment(clock::raw().0);
        for read in 0..BATCH {
            let Some(frame) = ring.next_frame() else {
                self.carriage.advance(direction, looked);
                return read;
            };
            // One clock reading serves the batch: it takes less than 30 us.
            let pair = pair.get_or_insert_with(clock::pair);
            let arrival = Moment(pair.to_raw(clock::WallNanos(frame.stamp())).0);
            self.carriage.take_in(direction, &frame, arrival);
            last = arrival;
        }
        self.carriage.advance(direction, last);
        BATCH
    }

    /// Reads the drop counters of the rings and records an anchor: once a second while packets pass, once
    /// after the last, and at the end.
    fn tidy(&mut self) {
        self.tidied = Moment(clock::raw().0);
        self.untidy = false;
        for (ring, direction) in self.rings.iter().zip(Direction::BOTH) {
            let dropped = ring.counts().map_or(0, |counts| counts.dropped);
            self.carriage.ring_dropped(direction, dropped);
        }
        self.carriage.anchor();
    }

    /// Whether the next packet is so near that the engine spun instead of sleeping.
    fn spun(&mut self) -> bool {
        let before = Moment(clock::raw().0);
        let lead = self.lead.now();
        let is_close = |due: Moment| due - before <= lead;
        if lead <= Span::ZERO || !self.carriage.next_due().is_some_and(is_close) {
            return false;
        }
        std::hint::spin_loop();
        // Includes the round around the spin: about 300 ns for reading clocks and rings.
        let round = Span::from_nanos(300);
        self.lead.spun(Moment(clock::raw().0) - before + round);
        true
    }

    /// How long to sleep: until the next packet is due, less the lead, or until housekeeping; `None` without
    /// either.
    fn until_next(&self) -> Option<Duration> {
        let lead = self.lead.now();
        let due = self.carriage.next_due().map(|due| due + -lead);
        let tidy = self.untidy.then(|| self.tidied + HOUSEKEEPING);
        let now = Moment(clock::raw().0);
        let look = (!self.config.schedule.is_empty()).then(|| now + CUE_WATCH);
        let wake = due.into_iter().chain(tidy).chain(look).min()?;
        Some((wake - now).to_duration())
    }

    fn rest(
        &mut self,
        stop: &io::PipeReader,
        timeout: Option<Duration>,
    ) -> Result<Option<Ending>, EngineError> {
        let before = clock::raw().0;
        let [a, b] = &self.rings;
        let mut awaited = [a.as_fd(), b.as_fd(), stop.as_fd()].map(Awaited::readable);
        ppoll::wait(&mut awaited, timeout).map_err(|source| EngineError::Wait {
            link: self.config.link.clone(),
            source,
        })?;
        let slept = Span::from_nanos(clock::raw().0 - before);
        self.lead.slept(slept);
        let requested = timeout.and_then(|timeout| i64::try_from(timeout.as_nanos()).ok());
        if let Some(requested) = requested.filter(|requested| *requested > 0)
            && !awaited.iter().any(Awaited::has_something)
        {
            self.lead.woke(slept - Span::from_nanos(requested));
        }
        let [a, b, stop] = &awaited;
        Ok(match () {
            () if stop.is_gone() => Some(Ending::Stopped),
            () if a.is_gone() || b.is_gone() => Some(Ending::LinkGone),
            () => None,
        })
    }
}
