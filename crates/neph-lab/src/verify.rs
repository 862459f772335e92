//! What was asked of each link against what it does, measured from outside the engine.
//!
//! Owns the order of the exchanges and what is told of each link. Timed UDP packets go from one
//! site to the other; the kernel stamps them at both interfaces. It is one machine with one clock,
//! so the one-way delays are exact. What should have come of the very same packets is calculated
//! by [`replay`]. Whatever else uses a link meanwhile disturbs what is measured.

mod delay;
mod end;
mod exchange;
mod loss;
mod rate;
mod replay;

use neph_model::{BitRate, ByteSize, Span};
use neph_sys::sched;

use crate::counters::{Direction, DirectionCount};
use crate::gate::{self, Shape};
use crate::lab::{Lab, LabError};
use crate::topology::Link;
use end::{End, PROBE_BYTES};

pub use delay::{DelayCheck, JitterCheck, Quantiles};
pub use loss::LossCheck;

/// How far a median delay may be off. Far above what an idle machine does (below 20 us), far
/// below what matters; the hypervisor's thefts show in the p99, which is told, not judged.
const DELAY_TOLERANCE: Span = Span::from_micros(50);
/// 99 % of a normal distribution lie within this many deviations.
const Z99: f64 = 2.576;
/// Of the sender: below that of a link.
const PRIORITY: u8 = 40;
/// One packet in so many may be late, as in a campaign.
const LATE_SHARE: u64 = 100;

/// One direction of one link: asked, measured, and whether they agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkCheck {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// The one-way delay of small packets.
    pub delay: DelayCheck,
    /// Packets lost out of those sent.
    pub loss: LossCheck,
    /// The rate at which a stream came out; none where no rate was asked, or more than this
    /// machine sends.
    pub rate: Option<Check<BitRate>>,
    /// The queue that a stream filled; none where no rate was asked, or where it is so long or so
    /// fast that it is not filled and drained in time.
    pub queue: Option<Check<ByteSize>>,
    /// What the link itself counted as late meanwhile; none where it does not count.
    pub late: Option<Lateness>,
}

/// Packets that a link sent on late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// How many left later than [`crate::tolerance`] after they were due.
    pub late: u64,
    /// Of how many.
    pub carried: u64,
}

impl Lateness {
    /// Whether at most one packet in a hundred was late.
    pub const fn is_ok(self) -> bool {
        self.late * LATE_SHARE <= self.carried
    }

    const fn between(before: DirectionCount, after: DirectionCount) -> Self {
        Self {
            late: after.late - before.late,
            carried: after.delivered - before.delivered,
        }
    }
}

impl LinkCheck {
    /// Whether everything that was measured is as asked.
    pub fn is_ok(&self) -> bool {
        self.delay.ok
            && self.loss.ok
            && self.rate.is_none_or(|rate| rate.ok)
            && self.queue.is_none_or(|queue| queue.ok)
    }

    /// Whether the link itself counted so many late packets that an experiment on it would be
    /// flagged: the machine is too busy, whatever the median says.
    pub fn is_late(&self) -> bool {
        self.late.is_some_and(|late| !late.is_ok())
    }
}

/// A quantity as asked and as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check<T> {
    /// What the topology says.
    pub asked: T,
    /// What the link does.
    pub measured: T,
    /// Whether they agree within the tolerance.
    pub ok: bool,
}

/// Measures both directions of every link, one link after the other; see [`verify_link`].
///
/// # Errors
/// A site's interface cannot be opened. A link that does not do as asked is no error.
pub fn verify(lab: &Lab) -> Result<Vec<LinkCheck>, LabError> {
    let mut checks = Vec::new();
    for number in 0..lab.topology().links.len() {
        checks.extend(verify_link(lab, number)?);
    }
    Ok(checks)
}

/// Measures both directions of the link with this index in the topology: 1 s, up to 6 s where
/// there is a slow rate or a long jitter. A link that does not do as asked is measured a second
/// time, and that counts: one right link in a hundred fails by chance, and a busy machine fails
/// many, but not twice.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_link(lab: &Lab, number: usize) -> Result<[LinkCheck; 2], LabError> {
    let asked = &lab.topology().links[number];
    let first = verify_against(lab, asked, number)?;
    if first.iter().all(|check| check.is_ok() && !check.is_late()) {
        return Ok(first);
    }
    verify_against(lab, asked, number)
}

/// Measures both directions of the link with index `number` once and holds them against `asked`
/// instead of what the lab was made from: what if, and what has changed since.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_against(lab: &Lab, asked: &Link, number: usize) -> Result<[LinkCheck; 2], LabError> {
    let link = &lab.topology().links[number];
    let mut ends = End::both(lab, number)?;
    // One flow each way: of several paths it takes one, another one the next time.
    let seeds = gate::seeds(lab.link_seed(number).unwrap_or_default());
    let found = [(&asked.a_to_b, 0), (&asked.b_to_a, 1)]
        .map(|(shape, side)| gate::as_found(shape, ends[side].flow(), seeds[side]));
    let shapes = found.each_ref();
    let before = counts(lab, number);
    let (small, large) = punctually(|| {
        let small = exchange::trickle(&mut ends, shapes);
        let large = [0, 1].map(|side| exchange::stream(&mut ends, side, shapes[side]));
        (small, large)
    });
    let after = counts(lab, number);
    Ok(Direction::BOTH.map(|direction| {
        let at = direction.index();
        let (shape, small, large) = (shapes[at], &small[at], large[at].as_ref());
        let sites = [link.a, link.b].map(|site| lab.topology().sites[site].name.clone());
        let [from, to] = in_order(sites, direction);
        LinkCheck {
            link: link.name.clone(),
            from,
            to,
            delay: delay::check(small, shape),
            loss: loss::check(small, &shape.wire.loss),
            rate: large.and_then(|stream| rate::check(stream, shape)),
            queue: large.and_then(|stream| rate::check_queue(stream, shape)),
            late: before
                .zip(after)
                .map(|(before, after)| Lateness::between(before[at], after[at])),
        }
    }))
}

/// With real-time priority, below the links' own: a stream with pauses tells no rate. Without the
/// permission as it is.
fn punctually<T>(work: impl FnOnce() -> T) -> T {
    if let Err(error) = sched::use_fifo(PRIORITY) {
        tracing::debug!("verify: {error}");
        return work();
    }
    let done = work();
    if let Err(error) = sched::use_normal() {
        tracing::warn!("verify: {error}");
    }
    done
}

fn in_order<T>([a, b]: [T; 2], direction: Direction) -> [T; 2] {
    match direction {
        Direction::AToB => [a, b],
        Direction::BToA => [b, a],
    }
}

fn counts(lab: &Lab, number: usize) -> Option<[DirectionCount; 2]> {
    let counters = lab.counters(number)?;
    Some(Direction::BOTH.map(|direction| counters.read(direction)))
}

/// How long a direction can take at most for one packet, its queue excepted.
fn longest(shape: &Shape) -> Span {
    shape.wire.delay + shape.wire.jitter.reach()
}
