//! What was asked of each link against what it does, measured from outside the engine.
//!
//! Owns the burst, the flood and the judgement. Timed UDP packets go from one site to the other;
//! the kernel stamps them at both interfaces. It is one machine with one clock, so the one-way
//! delays are exact. Whatever else uses a link meanwhile disturbs what is measured.

mod end;
mod exchange;

use neph_model::{BitRate, ByteSize, Span};

use crate::counters::Direction;
use crate::gate::{Shape, transmission_time};
use crate::lab::{Lab, LabError};
use crate::topology::Link;
use end::{End, PROBE_BYTES};
use exchange::{FLOOD_BYTES, Sighting};

/// How far a median delay may be off. Far above what an idle machine does (below 20 us), far
/// below what matters; the hypervisor's thefts show in the p99, which is told, not judged.
const DELAY_TOLERANCE: Span = Span::from_micros(50);
/// 99 % of a normal distribution lie within this many deviations.
const Z99: f64 = 2.576;

/// One direction of one link: asked, measured, and whether they agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkCheck {
    /// The link's name.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// The one-way delay of small packets: asked (with their transmission time) and median.
    pub delay: Check<Span>,
    /// 99 % of the small packets took at most this long.
    pub delay_p99: Span,
    /// Packets lost out of those sent.
    pub loss: LossCheck,
    /// The rate at which a flood came out; none where no rate was asked.
    pub rate: Option<Check<BitRate>>,
    /// The queue that a flood filled; none where no rate was asked, or where it is so long or so
    /// fast that a second does not fill and drain it.
    pub queue: Option<Check<ByteSize>>,
}

impl LinkCheck {
    /// Whether everything that was measured is as asked.
    pub fn is_ok(&self) -> bool {
        self.delay.ok
            && self.loss.ok
            && self.rate.is_none_or(|rate| rate.ok)
            && self.queue.is_none_or(|queue| queue.ok)
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

/// Loss as asked and as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossCheck {
    /// The share asked for, 0 to 1.
    pub asked: f64,
    /// Packets sent.
    pub sent: u32,
    /// Packets that did not arrive.
    pub lost: u32,
    /// The 99 % interval (Wilson) of the share lost.
    pub interval: (f64, f64),
    /// Whether what was asked lies in the interval; where none was asked, whether none was lost.
    pub ok: bool,
}

/// Measures both directions of every link, one link after the other, at most 2.5 s each.
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

/// Measures both directions of the link with this index in the topology.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_link(lab: &Lab, number: usize) -> Result<[LinkCheck; 2], LabError> {
    verify_against(lab, &lab.topology().links[number], number)
}

/// Measures both directions of the link with index `number` and holds them against `asked`
/// instead of what the lab was made from: what if, and what has changed since.
///
/// # Errors
/// As [`verify`].
///
/// # Panics
/// There is no link with this index.
pub fn verify_against(lab: &Lab, asked: &Link, number: usize) -> Result<[LinkCheck; 2], LabError> {
    let link = &lab.topology().links[number];
    let shapes = [&asked.a_to_b, &asked.b_to_a];
    let mut ends = End::both(lab, number)?;
    let small = exchange::burst(&mut ends, shapes);
    let flood = exchange::flood(&mut ends, shapes);
    Ok(Direction::BOTH.map(|direction| {
        let sites = [link.a, link.b].map(|site| lab.topology().sites[site].name.clone());
        let [from, to] = match direction {
            Direction::AToB => sites,
            Direction::BToA => {
                let [a, b] = sites;
                [b, a]
            }
        };
        let shape = shapes[direction.index()];
        let (delay, delay_p99) = check_delay(&small[direction.index()], shape);
        LinkCheck {
            link: link.name.clone(),
            from,
            to,
            delay,
            delay_p99,
            loss: check_loss(&small[direction.index()], shape),
            rate: check_rate(&flood[direction.index()].sightings, shape),
            queue: check_queue(&flood[direction.index()], shape),
        }
    }))
}

fn check_delay(small: &[Sighting], shape: &Shape) -> (Check<Span>, Span) {
    let mut delays: Vec<Span> = small.iter().filter_map(Sighting::delay).collect();
    delays.sort_unstable();
    let transmission = shape.rate.map(|rate| transmission_time(PROBE_BYTES, rate));
    let asked = shape.wire.delay + transmission.unwrap_or_default();
    let nearest_rank = |percent: usize| {
        let rank = (delays.len() * percent).div_ceil(100);
        delays.get(rank.saturating_sub(1)).copied()
    };
    let Some((median, p99)) = nearest_rank(50).zip(nearest_rank(99)) else {
        // Nothing arrived: right only where everything was to be lost.
        let ok = shape.wire.loss.fraction() >= 1.0;
        return (
            Check {
                asked,
                measured: Span::ZERO,
                ok,
            },
            Span::ZERO,
        );
    };
    let ok = (median - asked).abs() <= DELAY_TOLERANCE + shape.wire.jitter.reach();
    (
        Check {
            asked,
            measured: median,
            ok,
        },
        p99,
    )
}

fn check_loss(small: &[Sighting], shape: &Shape) -> LossCheck {
    let count = |wanted: fn(&Sighting) -> bool| {
        u32::try_from(small.iter().filter(|sighting| wanted(sighting)).count()).unwrap_or(u32::MAX)
    };
    let sent = count(|sighting| sighting.left.is_some());
    let lost = count(|sighting| sighting.left.is_some() && sighting.came.is_none());
    let (asked, interval) = (shape.wire.loss.fraction(), wilson(lost, sent));
    let ok = match asked {
        0.0 => lost == 0,
        _ => (interval.0..=interval.1).contains(&asked),
    };
    LossCheck {
        asked,
        sent,
        lost,
        interval,
        ok: ok && sent > 0,
    }
}

/// Wilson's score interval (1927) at 99 %.
fn wilson(hits: u32, of: u32) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (f64::from(of), Z99 * Z99);
    let share = f64::from(hits) / n;
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z99 * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The rate from the first to the last frame that came, those lost at random counted in: they
/// took their time on the wire. Within 1 %, plus what jitter does to two stamps.
#[expect(
    clippy::cast_precision_loss,
    reason = "rates and nanoseconds far below 2^53"
)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive rate"
)]
fn check_rate(flood: &[Sighting], shape: &Shape) -> Option<Check<BitRate>> {
    let asked = shape.rate?;
    let came: Vec<i64> = flood.iter().filter_map(|sighting| sighting.came).collect();
    let (first, last) = (came.first()?, came.last()?);
    let nanos = (last - first) as f64;
    let kept = 1.0 - shape.wire.loss.fraction();
    if came.len() < 20 || nanos <= 0.0 || kept <= 0.0 {
        return Some(Check {
            asked,
            measured: BitRate(0),
            ok: false,
        });
    }
    let bits = (came.len() - 1) as f64 * f64::from(FLOOD_BYTES) * 8.0 / kept;
    let measured = bits * 1e9 / nanos;
    let slack = 0.01
        + 2.0 * shape.wire.jitter.reach().nanos() as f64 / nanos
        + Z99 * (shape.wire.loss.fraction() / came.len() as f64).sqrt();
    let ok = (measured / asked.0 as f64 - 1.0).abs() <= slack;
    Some(Check {
        asked,
        measured: BitRate(measured.round() as u64),
        ok,
    })
}

/// The queue by the longest wait: what stood before the last packet that found room, and itself.
fn check_queue(flood: &exchange::Flood, shape: &Shape) -> Option<Check<ByteSize>> {
    let (rate, asked) = (shape.rate?, shape.queue.bytes_of(FLOOD_BYTES));
    if !flood.filled || !flood.drained {
        return None;
    }
    let longest = flood.sightings.iter().filter_map(Sighting::delay).max()?;
    let bytes_in = |span: Span| {
        let nanos = u128::try_from(span.nanos()).unwrap_or(0);
        u64::try_from(nanos * u128::from(rate.0) / 8_000_000_000).unwrap_or(u64::MAX)
    };
    let measured = ByteSize(bytes_in(longest - shape.wire.delay));
    // The last frame may miss the limit by almost its own length.
    let slack = 2 * u64::from(FLOOD_BYTES)
        + asked.0 / 50
        + bytes_in(DELAY_TOLERANCE.times(4) + shape.wire.jitter.reach());
    Some(Check {
        asked,
        measured,
        ok: measured.0.abs_diff(asked.0) <= slack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_the_shares_that_would_just_not_surprise() {
        for (hits, of) in [(10, 1000), (1, 50), (120, 2400), (2399, 2400)] {
            let (low, high) = wilson(hits, of);
            let share = f64::from(hits) / f64::from(of);
            for bound in [low, high] {
                // What defines the interval: the share lies Z99 deviations from either bound.
                let deviation = (bound * (1.0 - bound) / f64::from(of)).sqrt();
                assert!(
                    ((share - bound).abs() - Z99 * deviation).abs() < 1e-12,
                    "{hits}/{of}"
                );
            }
            assert!(low < share && share < high);
        }
        assert!(wilson(0, 1000).0 < 1e-12);
    }

    #[test]
    fn a_link_that_loses_without_being_asked_is_not_ok() {
        let mut shape = Shape::default();
        shape.wire.delay = Span::from_millis(5);
        let fine = Sighting {
            left: Some(0),
            came: Some(5_010_000),
        };
        let gone = Sighting {
            left: Some(0),
            came: None,
        };
        let late = Sighting {
            left: Some(0),
            came: Some(5_060_000),
        };
        assert!(check_loss(&[fine, fine], &shape).ok);
        assert!(!check_loss(&[fine, gone], &shape).ok);
        assert!(!check_loss(&[], &shape).ok);
        assert!(check_delay(&[fine, fine, late], &shape).0.ok);
        assert!(!check_delay(&[fine, late, late], &shape).0.ok);
        assert!(!check_delay(&[gone], &shape).0.ok);
    }
}
