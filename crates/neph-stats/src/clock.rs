//! Limits from messages for one clock against another: offset and rate, with error bounds.
//!
//! Owns the fit around one moment ([`clock_fit`]) for clocks that are not set. [`sides`] is for a clock that
//! may have been set undetected. [`course`] has steps and courses over hours, with the steps of
//! [`clock_sets`]. [`retained`] thins limits over days, [`most_likely_line`] selects the likeliest line.
//! Reads no clock.
//!
//! No delay is negative. A message to the peer shows `offset <= received - sent`; one from the peer shows
//! `offset >= sent - received`. Over a short time the difference in rate is constant to within a small
//! *wander*. So the offset is a line below all limits of the first kind and above all of the second. Two
//! convex hulls bound these lines (Moon, Skelly and Towsley, INFOCOM 1999, here from both sides). All results
//! are extremes over these lines, not averages: delays may have any distribution.

mod clock_sets;
mod corners;
mod course;
mod four_timestamps;
mod hull;
mod most_likely_line;
mod retained;
mod sides;
mod step_free;
mod steps;
#[cfg(test)]
mod tests;

pub use course::{ClockCourse, ClockCut, clock_course, clock_course_between};
pub use four_timestamps::{FourTimestamps, MeanOffset};
pub use retained::RetainedLimits;
pub use steps::ClockStep;

use crate::casts::{nanos_to_f64, round_to_i64};
use crate::error::StatsError;
use hull::Hull;

/// The longest horizon, in nanoseconds: floats represent each nanosecond of 104 days.
const MAX_HORIZON_NS: i64 = 1 << f64::MANTISSA_DIGITS;

/// The limit from one message for the peer's clock minus the local one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetLimit {
    /// The peer read its clock not before this moment, in nanoseconds of the local clock: when the exchange
    /// began.
    pub at: i64,
    /// And at most this long after it, in nanoseconds: the round trip.
    pub within: i64,
    /// The offset was at most, or at least, this: nanoseconds.
    pub offset: i64,
}

/// Limits from both directions, each ascending in time.
#[derive(Debug, Clone, Copy)]
pub struct OffsetLimits<'a> {
    /// From messages to the peer.
    pub at_most: &'a [OffsetLimit],
    /// From messages of the peer.
    pub at_least: &'a [OffsetLimit],
}

/// What is known of the two clocks before any message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockNature {
    /// How much their difference in rate may change within `horizon`, as a fraction; 2e-6 by default.
    /// Oscillators of PCs stay within 0.1 ppm over hours and within 0.02 ppm over 1000 s (Veitch, Ridoux and
    /// Korada, Transactions on Networking 17(2), 2009). Load, temperature, a guest that moves or a clock
    /// daemon change them more. A limit that is 1 s away then has an error of 2 us, and limits that near are
    /// nearly as tight as those of minutes.
    pub wander: f64,
    /// Largest difference of their rates, as a fraction; 1e-3 by default. Linux slews a clock by 500 ppm at
    /// most, and a crystal worse than 500 ppm is broken.
    pub steepest: f64,
    /// A limit is used for moments this near, in nanoseconds: 104 days at most, 100 s by default.
    pub horizon: i64,
}

impl Default for ClockNature {
    fn default() -> Self {
        Self {
            wander: 2e-6,
            steepest: 1e-3,
            horizon: 100_000_000_000,
        }
    }
}

/// The peer's clock against the local one at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockFit {
    /// The moment, in nanoseconds of the local clock.
    pub at: i64,
    /// Peer's clock minus local clock, in nanoseconds: the middle of the possible values.
    pub offset: i64,
    /// Error bound of `offset`, in nanoseconds.
    pub bound: i64,
    /// How much faster the peer's clock runs, as a fraction: the middle of the possible values. From
    /// [`clock_fit`] at the moment, from a [`ClockCourse`] the mean over the limits within the horizon.
    pub rate: f64,
    /// Error bound of `rate`. From a [`ClockCourse`] it is valid for that mean while the rate changes by at
    /// most 0.05 ppm within the horizon. Otherwise, or if an undetected step exceeds the shortest round trip,
    /// the mean may be off by more. The excess is a further round trip within the time of the limits: 0.25
    /// ppm for 50 us in 200 s. The rate at the moment differs from the mean by up to the wander.
    pub rate_bound: f64,
    /// Number of messages used.
    pub n: usize,
}

/// The offset at the moment `at`, from the limits within the horizon. `None` where no clock of this nature
/// can give these limits: one of the two was set between them.
///
/// # Errors
/// [`StatsError::TooFew`] without a limit of each kind within the horizon; [`StatsError::OutOfRange`] for an
/// invalid nature.
pub fn clock_fit(
    limits: OffsetLimits<'_>,
    at: i64,
    nature: ClockNature,
) -> Result<Option<ClockFit>, StatsError> {
    refuse_unnatural(nature)?;
    let near = limits.between(
        at.saturating_sub(nature.horizon),
        at.saturating_add(nature.horizon),
    );
    near.fit(at, nature)
}

impl<'a> OffsetLimits<'a> {
    /// Limits from one moment up to and including another.
    fn between(self, from: i64, until: i64) -> Self {
        let part = |of: &'a [OffsetLimit]| {
            let start = of.partition_point(|limit| limit.at < from);
            let end = of.partition_point(|limit| limit.at <= until);
            of.get(start..end).unwrap_or_default()
        };
        Self {
            at_most: part(self.at_most),
            at_least: part(self.at_least),
        }
    }

    /// The fit at the moment `at` from all of these limits, at any distance.
    fn fit(self, at: i64, nature: ClockNature) -> Result<Option<ClockFit>, StatsError> {
        let (Some(first), false) = (self.at_most.first(), self.at_least.is_empty()) else {
            return Err(StatsError::TooFew {
                subject: "a clock's offset, from messages in both directions",
                need: 2,
                have: self.at_most.len().min(1) + self.at_least.len().min(1),
            });
        };
        let lines = Lines::around(at, first, nature);
        let n = self.at_most.len() + self.at_least.len();
        Ok(self
            .lines(lines, |_| true)
            .map(|possible| possible.fit(lines.origin, n)))
    }

    /// The extremes over the lines that some of these permit; `None` where there are none, or one kind is
    /// missing.
    fn lines(self, lines: Lines, is_of: impl Fn(&OffsetLimit) -> bool) -> Option<PossibleLines> {
        self.hulls(lines, is_of)?.possible(lines.rates)
    }

    /// The hulls of some of these, relative to the moment of the lines. `None` without both kinds.
    fn hulls(self, lines: Lines, is_of: impl Fn(&OffsetLimit) -> bool) -> Option<Hulls> {
        let Lines { origin, nature, .. } = lines;
        let above = self.at_most.iter().filter(|limit| is_of(limit));
        let above = Hull::below(above.map(|limit| {
            let (x, y) = limit.seen_from(origin);
            (x, y + limit.doubt(x, nature))
        }));
        let below = self.at_least.iter().filter(|limit| is_of(limit));
        let below = Hull::below(below.map(|limit| {
            let (x, y) = limit.seen_from(origin);
            (x, limit.doubt(x, nature) - y)
        }));
        let has_both = !above.is_empty() && !below.is_empty();
        has_both.then_some(Hulls { above, below })
    }
}

/// Of the limits from above, and of those from below turned upside down.
struct Hulls {
    above: Hull,
    below: Hull,
}

impl Hulls {
    /// The extremes over the lines of these rates between the two; `None` where there are none.
    fn possible(&self, rates: (f64, f64)) -> Option<PossibleLines> {
        PossibleLines::between(&self.above, &self.below, rates)
    }
}

/// The candidate lines: through one moment, of these rates, by clocks of this nature.
#[derive(Debug, Clone, Copy)]
struct Lines {
    origin: OffsetLimit,
    nature: ClockNature,
    /// The slowest and the fastest, as fractions.
    rates: (f64, f64),
}

impl Lines {
    /// All lines, relative to one of the offsets: clocks may differ by years, and a float represents
    /// nanoseconds for 104 days only.
    const fn around(at: i64, limit: &OffsetLimit, nature: ClockNature) -> Self {
        let origin = OffsetLimit {
            at,
            within: 0,
            offset: limit.offset,
        };
        Self {
            origin,
            nature,
            rates: (-nature.steepest, nature.steepest),
        }
    }

    const fn wandering(mut self, wander: f64) -> Self {
        self.nature.wander = wander;
        self
    }

    /// Only those with rates in this range.
    const fn within(self, (slowest, fastest): (f64, f64)) -> Self {
        let rates = (slowest.max(self.rates.0), fastest.min(self.rates.1));
        Self { rates, ..self }
    }
}

impl OffsetLimit {
    fn seen_from(self, origin: Self) -> (f64, f64) {
        (
            nanos_to_f64(self.at.saturating_sub(origin.at)),
            nanos_to_f64(self.offset.saturating_sub(origin.offset)),
        )
    }

    /// How far the offset may have moved off its line: up to `x` nanoseconds away, and along it while the
    /// message was in flight. That is a thousandth of the round trip, half of which is uncertain anyway.
    fn doubt(self, x: f64, nature: ClockNature) -> f64 {
        nature.wander * x.abs() + nature.steepest * nanos_to_f64(self.within)
    }
}

fn refuse_unnatural(nature: ClockNature) -> Result<(), StatsError> {
    let fraction = |subject, value: f64| {
        if (0.0..1.0).contains(&value) {
            return Ok(());
        }
        Err(StatsError::OutOfRange {
            subject,
            value,
            wanted: "a fraction from 0 up to 1",
        })
    };
    fraction("wander of a clock", nature.wander)?;
    fraction("difference of two clocks' rates", nature.steepest)?;
    if !(1..=MAX_HORIZON_NS).contains(&nature.horizon) {
        return Err(StatsError::OutOfRange {
            subject: "horizon of a clock's fit",
            value: nanos_to_f64(nature.horizon),
            wanted: "1 nanosecond to 104 days",
        });
    }
    Ok(())
}

/// The extremes over all lines between the two hulls, at x = 0.
struct PossibleLines {
    low: f64,
    high: f64,
    slowest: f64,
    fastest: f64,
}

impl PossibleLines {
    /// `above` are the limits from above, `below` those from below, turned upside down. For a rate r, a line
    /// at x = 0 is at most `above.intercept(r)` and at least `-below.intercept(-r)`. Both are straight
    /// between the rates of the hulls' edges, and their difference is concave. So these rates are enough, and
    /// the two where the difference is zero.
    fn between(above: &Hull, below: &Hull, (slow, fast): (f64, f64)) -> Option<Self> {
        let room = |rate: f64| above.intercept(rate) + below.intercept(-rate);
        let mut rates: Vec<f64> = above.slopes().chain(below.slopes().map(|s| -s)).collect();
        rates.retain(|rate| slow < *rate && *rate < fast);
        rates.extend([slow, fast]);
        rates.sort_by(f64::total_cmp);
        let inside = |rate: &&f64| room(**rate) >= 0.0;
        let (first, last) = (
            rates.iter().position(|rate| inside(&rate))?,
            rates.iter().rposition(|rate| inside(&rate))?,
        );
        let edge = |inner: usize, outer: Option<usize>| {
            let inner = rates[inner];
            outer
                .and_then(|outer| rates.get(outer))
                .map_or(inner, |&outer| crossing(&room, inner, outer))
        };
        let slowest = edge(first, first.checked_sub(1));
        let fastest = edge(last, last.checked_add(1));
        let among = || {
            let within = rates.get(first..=last).unwrap_or_default();
            within.iter().copied().chain([slowest, fastest])
        };
        Some(Self {
            high: among()
                .map(|r| above.intercept(r))
                .fold(f64::NEG_INFINITY, f64::max),
            low: among()
                .map(|r| -below.intercept(-r))
                .fold(f64::INFINITY, f64::min),
            slowest,
            fastest,
        })
    }

    /// From the least offset to the largest, in nanoseconds.
    const fn room(&self) -> f64 {
        self.high - self.low
    }

    const fn rate(&self) -> f64 {
        f64::midpoint(self.slowest, self.fastest)
    }

    /// The same with offsets that are off by so many nanoseconds more.
    const fn wider(mut self, by: f64) -> Self {
        self.low -= by;
        self.high += by;
        self
    }

    /// The union of both ranges.
    const fn union(&self, other: &Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            slowest: self.slowest.min(other.slowest),
            fastest: self.fastest.max(other.fastest),
        }
    }

    /// The middles and error bounds of lines relative to `origin`.
    fn fit(&self, origin: OffsetLimit, n: usize) -> ClockFit {
        let offset = round_to_i64(f64::midpoint(self.low, self.high));
        ClockFit {
            at: origin.at,
            offset: origin.offset.saturating_add(offset),
            // Rounded outwards, plus the nanosecond that rounding may have lost.
            bound: round_to_i64(((self.high - self.low) / 2.0).ceil()) + 1,
            rate: self.rate(),
            rate_bound: (self.fastest - self.slowest) / 2.0,
            n,
        }
    }
}

/// Where a straight piece between a rate with room and one without has none left.
fn crossing(room: &impl Fn(f64) -> f64, inner: f64, outer: f64) -> f64 {
    let (has, lacks) = (room(inner), room(outer));
    inner + (outer - inner) * (has / (has - lacks))
}
