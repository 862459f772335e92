//! Time, in integers of nanoseconds, on clocks that cannot be mixed.
//!
//! [`Instant`] is a reading of a `CLOCK_MONOTONIC_RAW`; its type names the clock. Instants of two
//! sites cannot be subtracted. Only an [`Anchor`] converts between an instant and [`Wall`].

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Sub};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Span;

/// Whose monotonic clock an [`Instant`] was read from.
pub trait Clock: Copy {}

/// The client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Local {}
/// The peer's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {}

impl Clock for Local {}
impl Clock for Peer {}

/// A reading of clock `C`'s `CLOCK_MONOTONIC_RAW`, in nanoseconds.
///
/// In a prober it counts from the clock's own zero. In the store, instants of the client count from
/// the experiment's start (see [`crate::Experiment`]).
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

impl<C: Clock> JsonSchema for Instant<C> {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "description": "Nanoseconds on a monotonic clock" })
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
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
impl<C: Clock> Add<Span> for Instant<C> {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_nanos(self.0.saturating_add(span.nanos()))
    }
}
impl<C: Clock> Sub<Span> for Instant<C> {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self::from_nanos(self.0.saturating_sub(span.nanos()))
    }
}

/// Wall-clock time (`CLOCK_REALTIME`): nanoseconds since 1970-01-01 UTC. It may step.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
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

/// The wall time after this span, if the clock is not set meanwhile.
impl Add<Span> for Wall {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.nanos()))
    }
}

/// What the wall clock may move between two anchors, nanoseconds, and one in how many with time.
const MAX_STEP_NANOS: u64 = 1_000_000;
const SLEW_DIVISOR: u64 = 10_000;

/// One moment read on both clocks: the only bridge between wall and monotonic time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor<C: Clock> {
    /// The moment on the monotonic clock.
    pub at: Instant<C>,
    /// The same moment on the wall clock.
    pub wall: Wall,
}

impl<C: Clock> Anchor<C> {
    /// The monotonic instant of a wall-clock timestamp taken near this anchor.
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
        Span::from_nanos(self.wall.0.saturating_sub(self.at.0))
    }

    /// Whether the wall clock was not stepped between two anchors. Against the monotonic clock it
    /// may move by 1 ms, plus 100 ppm of the time for gentle slewing.
    pub const fn is_steady(self, other: Self) -> bool {
        let offset_change = other.offset().nanos().saturating_sub(self.offset().nanos());
        let interval = other.at.0.saturating_sub(self.at.0);
        offset_change.unsigned_abs() <= MAX_STEP_NANOS + interval.unsigned_abs() / SLEW_DIVISOR
    }

    /// The wall-clock time of an instant between this anchor and a later one. If the clock was
    /// steady, it is on the line between them, since a fast clock moves by seconds in days.
    /// Otherwise the nearer anchor counts, so that a step affects only the instants near it.
    pub fn wall_between(self, later: Self, at: Instant<C>) -> Wall {
        if self.is_steady(later) {
            self.interpolate(later, at)
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
    pub fn interpolate(self, later: Self, at: Instant<C>) -> Wall {
        let (since, interval) = (at - self.at, later.at - self.at);
        let offset_change = later.offset() - self.offset();
        let part = i128::from(offset_change.nanos()) * i128::from(since.nanos())
            / i128::from(interval.nanos().max(1));
        let correction = i64::try_from(part).unwrap_or(0);
        Wall(self.to_wall(at).0.saturating_add(correction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchor_conversions_roundtrip() {
        let anchor = Anchor::<Local> {
            at: Instant::from_nanos(5_000),
            wall: Wall::from_unix_nanos(1_700_000_000_000_000_000),
        };
        let stamp = Wall::from_unix_nanos(1_699_999_999_999_999_000);
        assert_eq!(anchor.to_instant(stamp).nanos(), 4_000);
        assert_eq!(anchor.to_wall(anchor.to_instant(stamp)), stamp);
    }

    #[test]
    fn anchors_centuries_apart_are_interpolated() {
        let anchor = |at, wall| Anchor::<Local> {
            at: Instant::from_nanos(at),
            wall: Wall::from_unix_nanos(wall),
        };
        let (first, last) = (anchor(i64::MIN, i64::MAX), anchor(i64::MAX, i64::MIN));
        assert_eq!(first.interpolate(last, first.at), first.wall);
        let end = first.wall_between(last, last.at);
        assert_eq!(end, last.wall, "stepped: by the nearer one");
    }
}
