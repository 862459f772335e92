//! The slow drift that all flows of a fleet share, for example of a host or a long line that warms up.
//!
//! Owns its current value and its range. Does not own queues, which change faster (`congestion.rs`), nor
//! which samples belong to a flow's level (`flow_level.rs`).
//!
//! Samples are gathered for at least a second. Their mean distance from their flows' levels drives a
//! second-order loop (Gardner, "Phaselock Techniques", 2005, chapter 2). A steady slope leaves no error, so
//! levels stay constant. A path change of one flow hardly moves it. It pauses where many samples are far from
//! their levels.

use crate::casts::{nanos_to_f64, round_to_i64};
use crate::congestion::MIN_FLOWS;

/// Least length of a window, in nanoseconds, and least mean number of samples per flow. A sample is used once
/// the next ones have come, and a loop must be slow compared to its delay.
const MIN_WINDOW_NS: i64 = 1_000_000_000;
const MIN_SAMPLES_PER_FLOW: usize = 4;
/// Windows until a new slope is followed: this many if windows differ by the tolerance, else fewer, at least
/// the second number.
const MAX_LOOP_NOISE: f64 = 60.0;
const MIN_LOOP_WINDOWS: f64 = 3.0;
/// If windows differ by more than this part of the tolerance, no slope is followed: it may be jitter of
/// single flows.
const MAX_NOISE_SHARE: f64 = 1.0 / 8.0;
/// Windows over which the noise is averaged.
const NOISE_WINDOWS: f64 = 30.0;
/// The steepest slope is the tolerance in this many windows. Anything faster is a queue.
const MIN_WINDOWS_PER_TOLERANCE: f64 = 5.0;
/// A window is not used if one sample of this many lies far from its flow's level: flows change their paths,
/// or wait in a queue. Fleets below the batch size have no other sign of a queue.
const OUTLIER_DIVISOR: usize = 2;
const OUTLIER_DIVISOR_ALONE: usize = 3;
/// Windows over which a slope fades while no window can be used.
const FADE_WINDOWS: f64 = 30.0;
/// Most consecutive windows to wait for the end of a queue. Anything longer is no queue.
const MAX_PAUSED_WINDOWS: u32 = 30;

/// Drift of all flows since the first sample.
#[derive(Debug)]
pub(crate) struct Drift {
    tolerance: f64,
    /// Nanoseconds.
    by: f64,
    /// Nanoseconds per window.
    slope: f64,
    /// Random error of windows in nanoseconds, and from how many windows it is known.
    noise: f64,
    looks: f64,
    look: Look,
    /// Windows that begin before this are not used, and the number of consecutive ones.
    queued: i64,
    paused: u32,
    /// The lowest and the highest so far, in nanoseconds.
    range: (i64, i64),
    /// In which window each flow was seen last.
    flows: Vec<u32>,
    number: u32,
}

/// The samples of one window.
#[derive(Debug, Default)]
struct Look {
    /// When its first sample was sent.
    since: Option<i64>,
    samples: usize,
    /// Flows that had one.
    flows: usize,
    /// How many samples were far from their flow's level.
    astray: usize,
    /// Used samples: number, sum of distances in nanoseconds from the flow's level, and sum of squares.
    used: f64,
    sum: f64,
    squares: f64,
}

impl Look {
    /// The mean distance of the flows from their levels, if that can be decided.
    fn off(&self) -> Option<f64> {
        let part = if self.flows < MIN_FLOWS {
            OUTLIER_DIVISOR_ALONE
        } else {
            OUTLIER_DIVISOR
        };
        (self.used > 1.0 && part * self.astray < self.samples).then(|| self.sum / self.used)
    }

    /// Its random error: the standard error of the mean, in nanoseconds.
    fn noise(&self) -> f64 {
        let squares = self.squares - self.sum * self.sum / self.used;
        (squares.max(0.0) / (self.used - 1.0) / self.used).sqrt()
    }
}

impl Drift {
    /// For levels that are distinguished by more than `tolerance` nanoseconds.
    pub(crate) fn new(tolerance: i64) -> Self {
        Self {
            tolerance: nanos_to_f64(tolerance),
            by: 0.0,
            slope: 0.0,
            noise: 0.0,
            looks: 0.0,
            look: Look::default(),
            queued: i64::MIN,
            paused: 0,
            range: (0, 0),
            flows: Vec::new(),
            number: 1,
        }
    }

    /// The current drift, in nanoseconds.
    pub(crate) fn now(&self) -> i64 {
        round_to_i64(self.by)
    }

    /// The lowest and the highest so far, in nanoseconds.
    pub(crate) const fn range(&self) -> (i64, i64) {
        self.range
    }

    /// Adds the distance of a sample at its flow's level from the flow's usual samples, in nanoseconds. Its
    /// mean is 0 while nothing drifts.
    pub(crate) fn learn(&mut self, aside: i64) {
        let aside = nanos_to_f64(aside);
        self.look.sum += aside;
        self.look.squares += aside * aside;
        self.look.used += 1.0;
    }

    /// A queue of all flows lasts until this moment: samples until then, and those used shortly after, show
    /// no drift.
    pub(crate) fn pause(&mut self, until: i64) {
        self.queued = until.saturating_add(MIN_WINDOW_NS);
    }

    /// The levels of all flows are learnt again: the gathered samples refer to other levels.
    pub(crate) fn forget_levels(&mut self) {
        self.begin_look(None);
        self.slope = 0.0;
    }

    /// A flow had a sample that was sent at `at`. Ends the window if it was long enough.
    pub(crate) fn record_sample(&mut self, at: i64, flow: u32, is_astray: bool) {
        self.count(flow);
        let look = &mut self.look;
        look.samples += 1;
        look.astray += usize::from(is_astray);
        let since = *look.since.get_or_insert(at);
        if at.saturating_sub(since) < MIN_WINDOW_NS
            || look.samples < MIN_SAMPLES_PER_FLOW * look.flows
        {
            return;
        }
        let look = self.begin_look(Some(at));
        let is_queued = since < self.queued;
        self.paused = if is_queued {
            self.paused.saturating_add(1)
        } else {
            0
        };
        let is_paused = is_queued && self.paused <= MAX_PAUSED_WINDOWS;
        if is_paused || !self.follow(&look) {
            self.slope *= 1.0 - 1.0 / FADE_WINDOWS;
            self.by += self.slope;
        }
        let now = self.now();
        self.range = (self.range.0.min(now), self.range.1.max(now));
    }

    /// Begins the next window, without flows. Returns the one before.
    fn begin_look(&mut self, since: Option<i64>) -> Look {
        self.number = self.number.wrapping_add(1);
        let next = Look {
            since,
            ..Look::default()
        };
        std::mem::replace(&mut self.look, next)
    }

    /// Counts a flow once in a window.
    fn count(&mut self, flow: u32) {
        let index = flow as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, 0);
        }
        if self.flows[index] != self.number {
            self.flows[index] = self.number;
            self.look.flows += 1;
        }
    }

    /// Updates the drift by a window. Returns whether it could be used.
    fn follow(&mut self, look: &Look) -> bool {
        let Some(off) = look.off() else {
            return false;
        };
        self.looks = (self.looks + 1.0).min(NOISE_WINDOWS);
        self.noise += (look.noise() - self.noise) / self.looks;
        let noise = self.noise / self.tolerance;
        if noise > MAX_NOISE_SHARE {
            return false;
        }
        let steepest = self.tolerance / MIN_WINDOWS_PER_TOLERANCE;
        let length = (MAX_LOOP_NOISE * noise).max(MIN_LOOP_WINDOWS);
        self.slope = (self.slope + off / (length * length)).clamp(-steepest, steepest);
        self.by += self.slope + off * 2.0 / length;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const US: i64 = 1_000;
    const MS: i64 = 1_000 * US;
    const S: i64 = 1_000 * MS;

    /// This many flows of 5 samples per second lie `drifts(at)` above constant levels, with `jitter` above or
    /// below.
    fn followed(flows: i64, seconds: i64, drifts: impl Fn(i64) -> i64, jitter: i64) -> Drift {
        let mut random = Random::new(1);
        let mut drift = Drift::new(MS / 2);
        for number in 0..seconds * 5 * flows {
            let at = number * S / (5 * flows);
            let own = round_to_i64(nanos_to_f64(2 * jitter) * random.unit()) - jitter;
            let aside = drifts(at) + own - drift.now();
            let is_astray = aside.abs() > MS / 2;
            if !is_astray {
                drift.learn(aside);
            }
            drift.record_sample(at, u32::try_from(number % flows).unwrap(), is_astray);
        }
        drift
    }

    fn slope(at: i64) -> i64 {
        at / 64_000
    }

    #[test]
    fn a_steady_slope_is_followed_without_an_error() {
        let drift = followed(16, 120, slope, 0);
        assert!((drift.now() - slope(120 * S)).abs() < 20 * US, "{drift:?}");
        assert_eq!(drift.range(), (0, drift.now()));
    }

    #[test]
    fn jitter_alone_is_no_drift() {
        let drift = followed(16, 600, |_| 0, MS / 2);
        assert!(drift.now().abs() < 50 * US, "{drift:?}");
    }

    #[test]
    fn a_jump_of_all_flows_is_no_drift() {
        let jump = |at: i64| if at < 60 * S { 0 } else { 2 * MS };
        assert_eq!(followed(16, 90, jump, 0).now(), 0);
    }

    #[test]
    fn in_a_queue_the_slope_goes_on_and_fades() {
        let mut drift = followed(16, 60, slope, 0);
        let before = drift.now();
        drift.pause(80 * S);
        for number in 0..20 * 80 {
            drift.learn(MS / 4);
            drift.record_sample(
                60 * S + number * S / 80,
                u32::try_from(number % 16).unwrap(),
                false,
            );
        }
        let since = drift.now() - before;
        let full = slope(20 * S);
        assert!((full / 2..full).contains(&since), "{since} of {full}");
    }

    /// More than 30 windows: levels wait for no queue so long.
    #[test]
    fn a_slope_longer_than_a_queue_is_followed_as_drift() {
        let mut drift = followed(16, 60, slope, 0);
        drift.pause(400 * S);
        for number in 0..300 * 80 {
            let at = 60 * S + number * S / 80;
            drift.learn(slope(at) - drift.now());
            drift.record_sample(at, u32::try_from(number % 16).unwrap(), false);
        }
        let off = drift.now() - slope(360 * S);
        assert!(off.abs() < 20 * US, "{off}");
    }

    /// 500 of 512 flows have ended: windows last as long as four samples of each of the others take.
    #[test]
    fn flows_that_are_silent_are_not_waited_for() {
        let mut drift = followed(512, 10, slope, 0);
        for number in 0..60 * 60 {
            let at = 10 * S + number * S / 60;
            drift.learn(slope(at) - drift.now());
            drift.record_sample(at, u32::try_from(number % 12).unwrap(), false);
        }
        let off = drift.now() - slope(70 * S);
        assert!(off.abs() < 20 * US, "{off}");
    }

    #[test]
    fn a_flow_that_jitters_and_has_no_company_is_not_followed() {
        let jitters = followed(1, 600, slope, MS / 2);
        assert!(jitters.now().abs() < 100 * US, "{jitters:?}");
        let quiet = followed(1, 600, slope, MS / 20);
        let off = quiet.now() - slope(600 * S);
        assert!(off.abs() < 100 * US, "{off}");
    }
}
