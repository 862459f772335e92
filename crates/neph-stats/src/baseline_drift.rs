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
const LOOP_WINDOWS_AT_TOLERANCE: f64 = 60.0;
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
const MIN_SAMPLES_PER_OUTLIER: usize = 2;
const MIN_SAMPLES_PER_OUTLIER_FEW_FLOWS: usize = 3;
/// Windows over which a slope fades while no window can be used.
const FADE_WINDOWS: f64 = 30.0;
/// Most consecutive windows to wait for the end of a queue. Anything longer is no queue.
const MAX_PAUSED_WINDOWS: u32 = 30;

/// Drift of all flows since the first sample.
#[derive(Debug)]
pub(crate) struct BaselineDrift {
    tolerance: f64,
    /// Nanoseconds.
    value_ns: f64,
    /// Nanoseconds per window.
    slope: f64,
    /// Random error of windows in nanoseconds, and from how many windows it is known.
    noise: f64,
    noise_windows: f64,
    window: Window,
    /// Windows that begin before this are not used, and the number of consecutive ones.
    queue_until: i64,
    paused_windows: u32,
    /// The lowest and the highest so far, in nanoseconds.
    range: (i64, i64),
    /// In which window each flow was seen last.
    last_window_by_flow: Vec<u32>,
    window_number: u32,
}

/// The samples of one window.
#[derive(Debug, Default)]
struct Window {
    /// When its first sample was sent.
    first_sent_at: Option<i64>,
    samples: usize,
    /// Flows that had one.
    flows: usize,
    /// How many samples were far from their flow's level.
    outliers: usize,
    /// Used samples: number, sum of distances in nanoseconds from the flow's level, and sum of squares.
    used_samples: f64,
    sum: f64,
    squares: f64,
}

impl Window {
    /// The mean distance of the flows from their levels, if that can be decided.
    fn mean_deviation(&self) -> Option<f64> {
        let samples_per_outlier = if self.flows < MIN_FLOWS {
            MIN_SAMPLES_PER_OUTLIER_FEW_FLOWS
        } else {
            MIN_SAMPLES_PER_OUTLIER
        };
        (self.used_samples > 1.0 && samples_per_outlier * self.outliers < self.samples)
            .then(|| self.sum / self.used_samples)
    }

    /// Its random error: the standard error of the mean, in nanoseconds.
    fn standard_error(&self) -> f64 {
        let squared_deviations = self.squares - self.sum * self.sum / self.used_samples;
        (squared_deviations.max(0.0) / (self.used_samples - 1.0) / self.used_samples).sqrt()
    }
}

impl BaselineDrift {
    /// For levels that are distinguished by more than `tolerance` nanoseconds.
    pub(crate) fn new(tolerance: i64) -> Self {
        Self {
            tolerance: nanos_to_f64(tolerance),
            value_ns: 0.0,
            slope: 0.0,
            noise: 0.0,
            noise_windows: 0.0,
            window: Window::default(),
            queue_until: i64::MIN,
            paused_windows: 0,
            range: (0, 0),
            last_window_by_flow: Vec::new(),
            window_number: 1,
        }
    }

    /// The current drift, in nanoseconds.
    pub(crate) fn value_ns(&self) -> i64 {
        round_to_i64(self.value_ns)
    }

    /// The lowest and the highest so far, in nanoseconds.
    pub(crate) const fn range(&self) -> (i64, i64) {
        self.range
    }

    /// Adds the distance of a sample at its flow's level from the flow's usual samples, in nanoseconds. Its
    /// mean is 0 while nothing drifts.
    pub(crate) fn add_deviation(&mut self, deviation_ns: i64) {
        let deviation_ns = nanos_to_f64(deviation_ns);
        self.window.sum += deviation_ns;
        self.window.squares += deviation_ns * deviation_ns;
        self.window.used_samples += 1.0;
    }

    /// A queue of all flows lasts until this moment: samples until then, and those used shortly after, show
    /// no drift.
    pub(crate) fn pause(&mut self, until: i64) {
        self.queue_until = until.saturating_add(MIN_WINDOW_NS);
    }

    /// The levels of all flows are learnt again: the gathered samples refer to other levels.
    pub(crate) fn restart(&mut self) {
        self.begin_window(None);
        self.slope = 0.0;
    }

    /// A flow had a sample that was sent at `at`. Ends the window if it was long enough.
    pub(crate) fn record_sample(&mut self, at: i64, flow: u32, is_outlier: bool) {
        self.count(flow);
        let window = &mut self.window;
        window.samples += 1;
        window.outliers += usize::from(is_outlier);
        let first_sent_at = *window.first_sent_at.get_or_insert(at);
        if at.saturating_sub(first_sent_at) < MIN_WINDOW_NS
            || window.samples < MIN_SAMPLES_PER_FLOW * window.flows
        {
            return;
        }
        let window = self.begin_window(Some(at));
        let is_queued = first_sent_at < self.queue_until;
        self.paused_windows = if is_queued {
            self.paused_windows.saturating_add(1)
        } else {
            0
        };
        let is_paused = is_queued && self.paused_windows <= MAX_PAUSED_WINDOWS;
        if is_paused || !self.update(&window) {
            self.slope *= 1.0 - 1.0 / FADE_WINDOWS;
            self.value_ns += self.slope;
        }
        let value_ns = self.value_ns();
        self.range = (self.range.0.min(value_ns), self.range.1.max(value_ns));
    }

    /// Begins the next window, without flows. Returns the one before.
    fn begin_window(&mut self, first_sent_at: Option<i64>) -> Window {
        self.window_number = self.window_number.wrapping_add(1);
        let next = Window {
            first_sent_at,
            ..Window::default()
        };
        std::mem::replace(&mut self.window, next)
    }

    /// Counts a flow once in a window.
    fn count(&mut self, flow: u32) {
        let index = flow as usize;
        if self.last_window_by_flow.len() <= index {
            self.last_window_by_flow.resize(index + 1, 0);
        }
        if self.last_window_by_flow[index] != self.window_number {
            self.last_window_by_flow[index] = self.window_number;
            self.window.flows += 1;
        }
    }

    /// Updates the drift by a window. Returns whether it could be used.
    fn update(&mut self, window: &Window) -> bool {
        let Some(mean_deviation) = window.mean_deviation() else {
            return false;
        };
        self.noise_windows = (self.noise_windows + 1.0).min(NOISE_WINDOWS);
        self.noise += (window.standard_error() - self.noise) / self.noise_windows;
        let noise_share = self.noise / self.tolerance;
        if noise_share > MAX_NOISE_SHARE {
            return false;
        }
        let steepest = self.tolerance / MIN_WINDOWS_PER_TOLERANCE;
        let loop_windows = (LOOP_WINDOWS_AT_TOLERANCE * noise_share).max(MIN_LOOP_WINDOWS);
        self.slope = (self.slope + mean_deviation / (loop_windows * loop_windows))
            .clamp(-steepest, steepest);
        self.value_ns += self.slope + mean_deviation * 2.0 / loop_windows;
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

    /// This many flows of 5 samples per second lie `drift_at(at)` above constant levels, with `jitter` above or
    /// below.
    fn simulate(
        flows: i64,
        seconds: i64,
        drift_at: impl Fn(i64) -> i64,
        jitter: i64,
    ) -> BaselineDrift {
        let mut random = Random::new(1);
        let mut drift = BaselineDrift::new(MS / 2);
        for number in 0..seconds * 5 * flows {
            let at = number * S / (5 * flows);
            let own_jitter = round_to_i64(nanos_to_f64(2 * jitter) * random.unit()) - jitter;
            let deviation_ns = drift_at(at) + own_jitter - drift.value_ns();
            let is_outlier = deviation_ns.abs() > MS / 2;
            if !is_outlier {
                drift.add_deviation(deviation_ns);
            }
            drift.record_sample(at, u32::try_from(number % flows).unwrap(), is_outlier);
        }
        drift
    }

    fn steady_drift(at: i64) -> i64 {
        at / 64_000
    }

    #[test]
    fn a_steady_slope_is_followed_without_an_error() {
        let drift = simulate(16, 120, steady_drift, 0);
        let error = drift.value_ns() - steady_drift(120 * S);
        assert!(error.abs() < 20 * US, "{drift:?}");
        assert_eq!(drift.range(), (0, drift.value_ns()));
    }

    #[test]
    fn jitter_alone_is_no_drift() {
        let drift = simulate(16, 600, |_| 0, MS / 2);
        assert!(drift.value_ns().abs() < 50 * US, "{drift:?}");
    }

    #[test]
    fn a_jump_of_all_flows_is_no_drift() {
        let jump = |at: i64| if at < 60 * S { 0 } else { 2 * MS };
        assert_eq!(simulate(16, 90, jump, 0).value_ns(), 0);
    }

    #[test]
    fn during_a_queue_the_slope_is_continued_and_decays() {
        let mut drift = simulate(16, 60, steady_drift, 0);
        let before = drift.value_ns();
        drift.pause(80 * S);
        for number in 0..20 * 80 {
            drift.add_deviation(MS / 4);
            drift.record_sample(
                60 * S + number * S / 80,
                u32::try_from(number % 16).unwrap(),
                false,
            );
        }
        let change = drift.value_ns() - before;
        let full_change = steady_drift(20 * S);
        assert!(
            (full_change / 2..full_change).contains(&change),
            "{change} of {full_change}"
        );
    }

    /// More than 30 windows: levels wait for no queue so long.
    #[test]
    fn a_slope_longer_than_a_queue_is_followed_as_drift() {
        let mut drift = simulate(16, 60, steady_drift, 0);
        drift.pause(400 * S);
        for number in 0..300 * 80 {
            let at = 60 * S + number * S / 80;
            drift.add_deviation(steady_drift(at) - drift.value_ns());
            drift.record_sample(at, u32::try_from(number % 16).unwrap(), false);
        }
        let error = drift.value_ns() - steady_drift(360 * S);
        assert!(error.abs() < 20 * US, "{error}");
    }

    /// 500 of 512 flows have ended: windows last as long as four samples of each of the others take.
    #[test]
    fn silent_flows_do_not_delay_the_drift() {
        let mut drift = simulate(512, 10, steady_drift, 0);
        for number in 0..60 * 60 {
            let at = 10 * S + number * S / 60;
            drift.add_deviation(steady_drift(at) - drift.value_ns());
            drift.record_sample(at, u32::try_from(number % 12).unwrap(), false);
        }
        let error = drift.value_ns() - steady_drift(70 * S);
        assert!(error.abs() < 20 * US, "{error}");
    }

    #[test]
    fn jitter_of_a_single_flow_is_no_drift() {
        let jittery = simulate(1, 600, steady_drift, MS / 2);
        assert!(jittery.value_ns().abs() < 100 * US, "{jittery:?}");
        let quiet = simulate(1, 600, steady_drift, MS / 20);
        let error = quiet.value_ns() - steady_drift(600 * S);
        assert!(error.abs() < 100 * US, "{error}");
    }
}
