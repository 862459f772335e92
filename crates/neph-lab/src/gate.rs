//! The decision about each packet of one direction of a link: when it leaves, or why it does not.
//!
//! Owns rate, queue, delay, jitter and loss. Reads no clock and touches no packet: the engine
//! tells it when a packet came and how long it is, tests do the same in virtual time. The same
//! seed and the same arrivals give the same fates.

use neph_model::{BitRate, ByteSize, Span};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A moment in nanoseconds, on the clock of whoever drives the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl std::ops::Add<Span> for Moment {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.nanos()))
    }
}

impl std::ops::Sub for Moment {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// What one direction of a link does to packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Time on the wire, without transmission and queue; at least 0.
    pub delay: Span,
    /// How the delay varies from packet to packet. Packets never overtake each other.
    pub jitter: Jitter,
    /// Share of packets lost at random, each by itself. They are lost on the wire: they have
    /// taken their transmission time, as a damaged frame does.
    pub loss: Share,
    /// Transmission rate; counted over whole frames, Ethernet header included, as `tc` does.
    pub rate: Option<BitRate>,
    /// Bytes that may wait for transmission, the frame being sent included; the one that does
    /// not fit is dropped (drop-tail). Without a rate nothing ever waits.
    pub queue: ByteSize,
}

/// How a delay varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// Evenly, at most this much either way.
    Uniform(Span),
    /// Normally, with this standard deviation; a delay never falls below zero.
    Normal(Span),
}

impl Jitter {
    /// How far from the middle the jitter usually goes: its bound, or three deviations.
    pub fn reach(self) -> Span {
        match self {
            Self::None => Span::ZERO,
            Self::Uniform(bound) => bound,
            Self::Normal(deviation) => deviation.times(3),
        }
    }
}

/// A share between none and all, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// From billionths; more than all is all.
    pub const fn from_billionths(billionths: u32) -> Self {
        Self(if billionths > 1_000_000_000 {
            1_000_000_000
        } else {
            billionths
        })
    }

    /// Between 0 and 1, for statistics and display.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves at this moment.
    Leaves(Moment),
    /// It is lost on the wire at random.
    Lost,
    /// It found the queue full.
    QueueFull,
}

/// One direction's state: until when the transmitter is busy, and when the last packet leaves.
#[derive(Clone, Debug)]
pub struct Gate {
    shape: Shape,
    random: Xoshiro256PlusPlus,
    busy_until: Moment,
    last_due: Moment,
}

impl Gate {
    /// How long it keeps a packet, apart from jitter, transmission and queue.
    pub(crate) const fn delay(&self) -> Span {
        self.shape.delay
    }

    /// A gate that nothing has passed yet.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let never = Moment(i64::MIN / 2);
        Self {
            shape,
            random,
            busy_until: never,
            last_due: never,
        }
    }

    /// Decides about a packet of `length` bytes (Ethernet header included) that came at `arrival`.
    pub fn admit(&mut self, arrival: Moment, length: u32) -> Fate {
        let Some(transmitted) = self.transmit(arrival, length) else {
            return Fate::QueueFull;
        };
        if self.shape.loss.0 > 0 && self.below_one() < self.shape.loss.fraction() {
            return Fate::Lost;
        }
        let delay = (self.shape.delay + self.deviation()).max(Span::ZERO);
        self.last_due = self.last_due.max(transmitted + delay);
        Fate::Leaves(self.last_due)
    }

    /// When the packet's last bit is on the wire; none if the queue has no room for it.
    fn transmit(&mut self, arrival: Moment, length: u32) -> Option<Moment> {
        let Some(rate) = self.shape.rate else {
            return Some(arrival);
        };
        let start = self.busy_until.max(arrival);
        let waiting = bits_in(start - arrival, rate) / 8;
        if waiting + u128::from(length) > u128::from(self.shape.queue.0) {
            return None;
        }
        self.busy_until = start + transmission_time(length, rate);
        Some(self.busy_until)
    }

    fn deviation(&mut self) -> Span {
        match self.shape.jitter {
            Jitter::None => Span::ZERO,
            Jitter::Uniform(bound) => scaled(bound, 2.0 * self.below_one() - 1.0),
            Jitter::Normal(deviation) => {
                // Box and Muller, 1958; 1 - u keeps the logarithm finite.
                let radius = (-2.0 * (1.0 - self.below_one()).ln()).sqrt();
                let angle = std::f64::consts::TAU * self.below_one();
                scaled(deviation, radius * angle.cos())
            }
        }
    }

    /// Evenly from [0, 1), with the 53 bits that a float holds.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    fn below_one(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How long `length` bytes take at `rate`, rounded to the nanosecond.
pub fn transmission_time(length: u32, rate: BitRate) -> Span {
    let rate = u128::from(rate.0.max(1));
    let nanos = (u128::from(length) * 8_000_000_000 + rate / 2) / rate;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

fn bits_in(span: Span, rate: BitRate) -> u128 {
    let nanos = u128::try_from(span.nanos()).unwrap_or(0);
    nanos * u128::from(rate.0) / 1_000_000_000
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a random factor needs no last nanosecond"
)]
fn scaled(span: Span, factor: f64) -> Span {
    Span::from_nanos((span.nanos() as f64 * factor) as i64)
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;
