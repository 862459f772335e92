//! Time, in integers of nanoseconds, on clocks that cannot be mixed.
//!
//! [`Instant`] is a reading of somebody's `CLOCK_MONOTONIC_RAW`; the type says whose. Instants of
//! two sites cannot be subtracted, and neither meets [`Wall`] except through an [`Anchor`].

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A signed length of time in nanoseconds: 292 years either way.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// From microseconds; saturates.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }
    /// From milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }
    /// From seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }
    /// In nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
    /// In milliseconds, for statistics and display only.
    #[expect(
        clippy::cast_precision_loss,
        reason = "display and statistics; exact to 104 days"
    )]
    pub fn millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In seconds, for statistics and display only.
    #[expect(
        clippy::cast_precision_loss,
        reason = "display and statistics; exact to 104 days"
    )]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Without its sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// `self` times `n`; saturates.
    #[must_use]
    pub const fn times(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// Every digit and no trailing zero: `25 ms`, `2.5 ms`, `33.333333 ms`. For labels, which have to
    /// tell apart what differs.
    pub fn exact(self) -> String {
        let (unit, digits, name) = match self.0.unsigned_abs() {
            1_000_000_000.. => (1_000_000_000, 9, "s"),
            1_000_000.. => (1_000_000, 6, "ms"),
            1_000.. => (1_000, 3, "us"),
            _ => (1, 0, "ns"),
        };
        let (whole, rest) = (self.0 / unit, (self.0 % unit).unsigned_abs());
        if rest == 0 {
            return format!("{whole} {name}");
        }
        let fraction = format!("{rest:0digits$}");
        format!("{whole}.{} {name}", fraction.trim_end_matches('0'))
    }
    /// As a standard duration; a negative span becomes zero.
    pub fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

/// Shows the unit that reads best: `812 ns`, `26.8 us`, `40.12 ms`, `1.500 s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let nanos = self.0 as f64;
        let text = match self.0.unsigned_abs() {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{:.1} us", nanos / 1e3),
            1_000_000..1_000_000_000 => format!("{:.2} ms", nanos / 1e6),
            _ => format!("{:.3} s", nanos / 1e9),
        };
        f.pad(&text)
    }
}

/// Whose monotonic clock an [`Instant`] was read from.
pub trait Clock: Copy {}

/// The clock of the asking side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Own {}
/// The clock of the answering side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {}

impl Clock for Own {}
impl Clock for Peer {}

/// A reading of clock `C`'s `CLOCK_MONOTONIC_RAW`, in nanoseconds.
///
/// In a prober it counts from the clock's own zero; in the store, own instants count from the
/// experiment's start (see [`crate::Experiment`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant<C: Clock>(i64, PhantomData<C>);

impl<C: Clock> Serialize for Instant<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de, C: Clock> Deserialize<'de> for Instant<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self::from_nanos)
    }
}

impl<C: Clock> Instant<C> {
    /// From a reading in nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos, PhantomData)
    }
    /// The reading in nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
}

impl<C: Clock> fmt::Debug for Instant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instant({})", self.0)
    }
}
impl<C: Clock> Sub for Instant<C> {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
impl<C: Clock> Add<Span> for Instant<C> {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_nanos(self.0.saturating_add(span.0))
    }
}
impl<C: Clock> Sub<Span> for Instant<C> {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self::from_nanos(self.0.saturating_sub(span.0))
    }
}

/// Wall-clock time: nanoseconds since 1970-01-01 UTC, as `CLOCK_REALTIME` tells it. May step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(i64);

impl Wall {
    /// From nanoseconds since the epoch.
    pub const fn from_unix_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the epoch.
    pub const fn unix_nanos(self) -> i64 {
        self.0
    }
}

/// What the wall clock may move between two anchors, nanoseconds, and one in how many with time.
const STEADY: u64 = 1_000_000;
const SLEWED: u64 = 10_000;

/// One moment read on both clocks: the only bridge between wall and monotonic time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor<C: Clock> {
    /// The moment on the monotonic clock.
    pub at: Instant<C>,
    /// The same moment on the wall clock.
    pub wall: Wall,
}

impl<C: Clock> Anchor<C> {
    /// The monotonic instant of a wall-clock stamp taken near this anchor.
    pub const fn to_instant(self, stamp: Wall) -> Instant<C> {
        Instant::from_nanos(
            self.at
                .0
                .saturating_add(stamp.0.saturating_sub(self.wall.0)),
        )
    }
    /// The wall-clock time of an instant near this anchor.
    pub const fn to_wall(self, at: Instant<C>) -> Wall {
        Wall(self.wall.0.saturating_add(at.0.saturating_sub(self.at.0)))
    }
    /// Wall minus monotonic: constant while the wall clock neither steps nor slews.
    pub const fn offset(self) -> Span {
        Span(self.wall.0.saturating_sub(self.at.0))
    }

    /// Whether the wall clock was not stepped between two anchors: it moved against the monotonic one
    /// by 1 ms at most, and with time as clocks do that are slewed gently (100 ppm).
    pub const fn is_steady(self, other: Self) -> bool {
        let moved = other.offset().0.saturating_sub(self.offset().0);
        let apart = other.at.0.saturating_sub(self.at.0);
        moved.unsigned_abs() <= STEADY + apart.unsigned_abs() / SLEWED
    }

    /// The wall-clock time of an instant between this anchor and a later one: along the line between
    /// them if the clock was steady, as a clock that runs fast moves by seconds in days; else by the
    /// nearer one, so that a step spoils the instants near it only.
    pub fn wall_between(self, later: Self, at: Instant<C>) -> Wall {
        if self.is_steady(later) {
            self.along(later, at)
        } else {
            self.by_the_nearer(later, at)
        }
    }

    /// The wall-clock time of an instant by the nearer one of this anchor and a later one.
    pub fn by_the_nearer(self, later: Self, at: Instant<C>) -> Wall {
        let is_nearer = (at - self.at).abs() <= (later.at - at).abs();
        let nearer = if is_nearer { self } else { later };
        nearer.to_wall(at)
    }

    /// The wall-clock time of an instant on the line from this anchor to a later one.
    pub fn along(self, later: Self, at: Instant<C>) -> Wall {
        let (since, apart) = (at - self.at, later.at - self.at);
        let moved = later.offset() - self.offset();
        let part = i128::from(moved.0) * i128::from(since.0) / i128::from(apart.0.max(1));
        let along = i64::try_from(part).unwrap_or(0);
        Wall(self.to_wall(at).0.saturating_add(along))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_prints_in_the_unit_that_reads_best() {
        assert_eq!(Span::from_nanos(812).to_string(), "812 ns");
        assert_eq!(Span::from_nanos(-26_830).to_string(), "-26.8 us");
        assert_eq!(Span::from_micros(40_123).to_string(), "40.12 ms");
        assert_eq!(Span::from_millis(1_500).to_string(), "1.500 s");
    }

    #[test]
    fn labels_tell_any_two_times_apart() {
        assert_eq!(Span::from_millis(25).exact(), "25 ms");
        assert_eq!(Span::from_micros(2_500).exact(), "2.5 ms");
        assert_eq!(Span::from_secs(1).exact(), "1 s");
        assert_eq!(Span::from_millis(1_500).exact(), "1.5 s");
        assert_eq!(Span::from_nanos(1_000_100).exact(), "1.0001 ms");
        assert_eq!(Span::from_nanos(33_333_333).exact(), "33.333333 ms");
        assert_eq!(Span::ZERO.exact(), "0 ns");
    }

    #[test]
    fn an_anchor_converts_there_and_back() {
        let anchor = Anchor::<Own> {
            at: Instant::from_nanos(5_000),
            wall: Wall::from_unix_nanos(1_700_000_000_000_000_000),
        };
        let stamp = Wall::from_unix_nanos(1_699_999_999_999_999_000);
        assert_eq!(anchor.to_instant(stamp).nanos(), 4_000);
        assert_eq!(anchor.to_wall(anchor.to_instant(stamp)), stamp);
    }

    #[test]
    fn anchors_that_are_centuries_apart_have_a_line_between_them_too() {
        let anchor = |at, wall| Anchor::<Own> {
            at: Instant::from_nanos(at),
            wall: Wall::from_unix_nanos(wall),
        };
        let (first, last) = (anchor(i64::MIN, i64::MAX), anchor(i64::MAX, i64::MIN));
        assert_eq!(first.along(last, first.at), first.wall);
        let end = first.wall_between(last, last.at);
        assert_eq!(end, last.wall, "stepped: by the nearer one");
    }
}
