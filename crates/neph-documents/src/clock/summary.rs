//! The summary: offset, drift, steps, wander, and the mean of four timestamps.

use std::io::{self, Write};

use neph_model::Span;
use neph_stats::{ClockNature, ClockStep, MeanOffset};

use super::row::Row;
use neph_capture::clocks::course::{Course, DriftEstimate};
use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::peer_exchanges::WallClockStep;
use neph_capture::clocks::value_format;
use neph_text::counted::counted;
use neph_text::decimals::{fixed, signed};

/// Number of horizons that a wander needs.
const MIN_HORIZONS: i64 = 3;

/// The result of the measurement.
#[derive(Debug)]
pub struct Summary {
    /// The peer, or both captures.
    pub subject: String,
    pub clocks: Clocks,
    /// Start on the local clock, in nanoseconds.
    pub began: i64,
    /// The clocks at the end.
    pub row: Row,
    pub course: Course,
    pub steps: Vec<LabelledStep>,
    /// Means of four timestamps, if requested.
    pub means: Option<Means>,
    /// Exchanges without a reply.
    pub lost: Option<u64>,
    pub nature: ClockNature,
}

/// Which clocks were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// Raw clocks, and the wall clocks as well.
    Raw,
    /// The peer's wall clock and the local raw clock: the peer reports no other.
    PeersWall,
    /// The clocks of two captures.
    Captures,
}

/// The means of four timestamps, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    pub(super) offset: i64,
    pub(super) wall: Option<i64>,
    pub(super) deviation: f64,
    pub(super) n: usize,
}

impl Means {
    /// `None` with fewer than two exchanges.
    pub fn of(raw: &MeanOffset, wall: Option<&MeanOffset>) -> Option<Self> {
        Some(Self {
            offset: raw.mean()?,
            wall: wall.and_then(MeanOffset::mean),
            deviation: wall.unwrap_or(raw).deviation()?,
            n: raw.n(),
        })
    }
}

/// A step with its clock.
#[derive(Debug, Clone, Copy)]
pub struct LabelledStep {
    pub(super) clock: &'static str,
    pub(super) after: i64,
    pub(super) before: i64,
    pub(super) size: i64,
    /// Error bound of `size`; `None` if the stepped host reports the step.
    pub(super) bound: Option<i64>,
}

impl LabelledStep {
    /// A step of one host's wall clock, which the host itself reports.
    pub const fn wall(step: &WallClockStep) -> Self {
        Self {
            clock: if step.is_of_peer {
                "peer's wall clock"
            } else {
                "local wall clock"
            },
            after: step.after,
            before: step.before,
            size: step.by.nanos(),
            bound: None,
        }
    }

    /// A step of one clock against the other. Raw clocks are never set, but a host may have been
    /// suspended or moved.
    pub const fn between(clocks: Clocks, step: &ClockStep) -> Self {
        Self {
            clock: match clocks {
                Clocks::Raw => "raw clocks",
                Clocks::PeersWall => "peer's wall clock",
                Clocks::Captures => "clocks",
            },
            after: step.after,
            before: step.before,
            size: step.by,
            bound: Some(step.bound),
        }
    }

    pub fn sentence(&self, began: i64) -> String {
        let seconds = |time: i64| fixed(Span::from_nanos(time - began).secs_f64(), 3);
        let (after, before) = (seconds(self.after), seconds(self.before));
        let step_text = match self.bound {
            Some(bound) => value_format::step(self.size, bound),
            None => value_format::value_text(self.size, 10_000),
        };
        let event = match self.clock {
            "raw clocks" | "clocks" => "stepped against each other, or took another rate, by",
            _ => "was set by",
        };
        format!(
            "{} {event} {step_text}, between {after} and {before} s",
            self.clock
        )
    }
}

impl Summary {
    /// `hulls`: whether the offsets by convex hulls were requested.
    pub fn write(&self, hulls: bool, out: &mut dyn Write) -> io::Result<()> {
        self.write_count(out)?;
        if hulls {
            self.write_offsets(out)?;
        }
        if let Some(means) = self.means {
            self.write_means(means, out)?;
        }
        self.write_steps(out)
    }

    fn write_count(&self, out: &mut dyn Write) -> io::Result<()> {
        let noun = match self.clocks {
            Clocks::Captures => "packet",
            Clocks::Raw | Clocks::PeersWall => "exchange",
        };
        write!(out, "{}", counted(self.row.n, noun))?;
        let time = Span::from_nanos(self.course.end - self.course.start);
        write!(out, " in {:.1} s, {}", time.secs_f64(), self.subject)?;
        if let Some(lost) = self.lost.filter(|lost| *lost > 0) {
            write!(out, "; {lost} without a reply")?;
        }
        if let Some(round_trip) = self.row.round_trip {
            write!(out, "; minimum RTT {}", Span::from_nanos(round_trip))?;
        }
        writeln!(out)
    }

    fn write_offsets(&self, out: &mut dyn Write) -> io::Result<()> {
        let offset_text = |(offset, bound): (i64, i64)| {
            let equality_note = if offset.saturating_abs() <= bound {
                " (they may be equal)"
            } else {
                ""
            };
            format!("{}{equality_note}", value_format::offset(offset, bound))
        };
        let fit = (self.row.fit.offset, self.row.fit.bound);
        if let Some(wall) = self.row.wall {
            writeln!(out, "wall clocks now   {}", offset_text(wall))?;
            if self.clocks == Clocks::Raw {
                writeln!(out, "raw clocks        {}", offset_text(fit))?;
            }
        } else {
            writeln!(out, "clocks at the end {}", offset_text(fit))?;
        }
        self.write_drift(out)?;
        self.write_wander(out)
    }

    fn write_drift(&self, out: &mut dyn Write) -> io::Result<()> {
        let max_drift = value_format::ppm(self.nature.steepest);
        match self.course.estimate_drift(self.nature) {
            None => Ok(()),
            Some(DriftEstimate::AboveAnyDrift(rate)) => writeln!(
                out,
                "drift             not plausible: {} ppm, reported as steps (clocks differ by at most {max_drift} ppm). A host was suspended, its clock was set repeatedly, or capture times were changed (replay, editcap -t)",
                signed(rate * 1e6, 0)
            ),
            Some(DriftEstimate::Unknown(within)) => writeln!(
                out,
                "drift             not known after so little: within ±{:.0} ppm, and clocks differ by {max_drift} ppm at most",
                within * 1e6
            ),
            Some(DriftEstimate::Known(drift)) => {
                let drift = value_format::rate(drift.rate, drift.bound);
                let clock_note = match self.clocks {
                    Clocks::Raw => " (of the raw clocks)",
                    Clocks::PeersWall => {
                        " (of its wall clock, which may be steered, against our raw one)"
                    }
                    Clocks::Captures => "",
                };
                writeln!(out, "drift             {drift}{clock_note}")
            }
        }
    }

    fn write_wander(&self, out: &mut dyn Write) -> io::Result<()> {
        let assumed = value_format::ppm(self.nature.wander);
        let drift_text = match (self.drift(), self.course.rate_range) {
            (None, _) => "not estimated without a drift".to_owned(),
            (Some(_), None)
                if self.course.nanos_since_last_step() < MIN_HORIZONS * self.nature.horizon =>
            {
                "not estimated in less than 300 s".to_owned()
            }
            (Some(_), None) => {
                "not estimated: gaps in the data (needs messages every 100 s)".to_owned()
            }
            (Some(_), Some((min_drift, max_drift))) => format!(
                "the drift was {} to {} ppm",
                signed(min_drift * 1e6, 4),
                signed(max_drift * 1e6, 4)
            ),
        };
        writeln!(
            out,
            "wander            {drift_text}; up to {assumed} ppm in 100 s was assumed"
        )
    }

    /// The drift, if there is one and it is known.
    pub(super) fn drift(&self) -> Option<Drift> {
        match self.course.estimate_drift(self.nature)? {
            DriftEstimate::Known(drift) => Some(drift),
            DriftEstimate::AboveAnyDrift(_) | DriftEstimate::Unknown(_) => None,
        }
    }

    fn write_means(&self, means: Means, out: &mut dyn Write) -> io::Result<()> {
        let digits = self.row.offset().1;
        write!(out, "four timestamps   ")?;
        let offset_text = match (means.wall, self.clocks) {
            (Some(wall), Clocks::Raw) => {
                let raw = value_format::value_text(means.offset, digits);
                format!("wall {}, raw {raw}", value_format::value_text(wall, digits))
            }
            (wall, _) => value_format::value_text(wall.unwrap_or(means.offset), digits),
        };
        writeln!(
            out,
            "{offset_text}: mean of {}, deviation {:.1} us. No bound: where one direction takes d longer than the other it is wrong by d/2, and drift and steps are in the mean",
            means.n,
            means.deviation / 1e3
        )
    }

    fn write_steps(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.steps.is_empty() {
            return writeln!(out, "steps             none");
        }
        for step in &self.steps {
            writeln!(out, "step              {}", step.sentence(self.began))?;
        }
        Ok(())
    }
}
