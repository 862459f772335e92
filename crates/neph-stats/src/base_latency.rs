//! The base propagation latency of one flow by a rolling minimum: streaming, with a small state per flow.
//!
//! The rule is that of Chiesa et al. ("Internet clouds are (also) unpredictable!", RIPE 2018). The last 4
//! samples are stable if 3 of them lie within 0.5 ms. The base is updated to their minimum only if they are
//! stable and it changes by more than 0.5 ms. [`BaseLatency`] is exactly that rule. `flow_level.rs` and
//! `fleet_base.rs` keep congestion and jitter from being reported as path changes.

use crate::casts::nanos_to_f64;
use crate::error::StatsError;

/// The largest window that is accepted.
pub(crate) const LARGEST_WINDOW: u8 = 16;

/// The three numbers of the rule. Only [`Detection::new`] and `default` create it, so they are consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    window: u8,
    quorum: u8,
    tolerance: i64,
}

impl Detection {
    /// Uses the last `window` samples (2..=16), of which `quorum` (2..=window) must lie within `tolerance`
    /// nanoseconds (above 0) of the lowest.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] for a number outside its range.
    pub fn new(window: usize, quorum: usize, tolerance: i64) -> Result<Self, StatsError> {
        let refuse = |subject, value, wanted| {
            Err(StatsError::OutOfRange {
                subject,
                value,
                wanted,
            })
        };
        let small = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        if !(2..=usize::from(LARGEST_WINDOW)).contains(&window) {
            return refuse("window", f64::from(small(window)), "from 2 to 16 samples");
        }
        if !(2..=window).contains(&quorum) {
            return refuse("quorum", f64::from(small(quorum)), "from 2 to the window");
        }
        if tolerance <= 0 {
            return refuse("tolerance", nanos_to_f64(tolerance), "above 0");
        }
        Ok(Self {
            window: small(window),
            quorum: small(quorum),
            tolerance,
        })
    }

    /// Number of samples in the window.
    pub fn window(&self) -> usize {
        self.window.into()
    }

    /// How many of them must lie together.
    pub fn quorum(&self) -> usize {
        self.quorum.into()
    }

    /// Largest distance of these, and largest difference that is no change, in nanoseconds.
    pub fn tolerance(&self) -> i64 {
        self.tolerance
    }
}

impl Default for Detection {
    /// The source's numbers: 3 of 4 samples within 0.5 ms.
    fn default() -> Self {
        Self {
            window: 4,
            quorum: 3,
            tolerance: 500_000,
        }
    }
}

/// A stable window: its minimum, and the oldest sample near it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stable {
    /// The lowest sample, in nanoseconds.
    pub(crate) minimum: i64,
    /// How many samples ago the oldest within the tolerance of it was; 0 is the newest.
    pub(crate) since: u8,
}

/// The result of a window if it is full and stable; `ago` returns the sample that came so many before the
/// newest, in nanoseconds.
pub(crate) fn stable(detection: &Detection, ago: impl Fn(usize) -> Option<i64>) -> Option<Stable> {
    let mut samples = [0; LARGEST_WINDOW as usize];
    let samples = &mut samples[..detection.window()];
    for (number, sample) in samples.iter_mut().enumerate() {
        *sample = ago(number)?;
    }
    let minimum = *samples.iter().min()?;
    let near = |sample: i64| sample.saturating_sub(minimum) <= detection.tolerance;
    let together = samples.iter().filter(|&&s| near(s)).count();
    if together < detection.quorum() {
        return None;
    }
    let since = samples.iter().rposition(|&s| near(s))?;
    Some(Stable {
        minimum,
        since: u8::try_from(since).unwrap_or(u8::MAX),
    })
}

/// The last samples of one flow.
#[derive(Debug, Clone)]
struct Window {
    ring: Box<[i64]>,
    next: u8,
    length: u8,
}

impl Window {
    fn new(detection: &Detection) -> Self {
        Self {
            ring: vec![0; detection.window()].into_boxed_slice(),
            next: 0,
            length: 0,
        }
    }

    fn push(&mut self, sample: i64) {
        let size = u8::try_from(self.ring.len()).unwrap_or(u8::MAX);
        self.ring[usize::from(self.next)] = sample;
        self.next = (self.next + 1) % size;
        self.length = (self.length + 1).min(size);
    }

    fn clear(&mut self) {
        (self.next, self.length) = (0, 0);
    }

    /// The sample that came `ago` samples before the newest. It must be in the window.
    fn ago(&self, ago: u8) -> i64 {
        let size = self.ring.len();
        self.ring[(usize::from(self.next) + 2 * size - 1 - usize::from(ago)) % size]
    }

    fn stable(&self, detection: &Detection) -> Option<Stable> {
        let length = usize::from(self.length);
        stable(detection, |ago| {
            (ago < length).then(|| self.ago(u8::try_from(ago).unwrap_or(u8::MAX)))
        })
    }
}

/// A change of the base latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseShift {
    /// The base before, in nanoseconds; `None` for the first.
    pub before: Option<i64>,
    /// The base from now on, in nanoseconds.
    pub after: i64,
    /// How many samples ago the new level began: 0 would be the latest one.
    pub since: u8,
}

/// The source's detector for one flow, exactly as published.
#[derive(Debug, Clone)]
pub struct BaseLatency {
    window: Window,
    base: Option<i64>,
    detection: Detection,
}

impl BaseLatency {
    /// A detector without samples.
    pub fn new(detection: Detection) -> Self {
        Self {
            window: Window::new(&detection),
            base: None,
            detection,
        }
    }

    /// The base so far, in nanoseconds; `None` until a window was stable.
    pub fn base(&self) -> Option<i64> {
        self.base
    }

    /// Adds the next sample, in nanoseconds. Do not push lost messages: the source's window counts samples,
    /// not time.
    pub fn push(&mut self, sample: i64) -> Option<BaseShift> {
        self.window.push(sample);
        let Stable { minimum, since } = self.window.stable(&self.detection)?;
        let close = |base: i64| minimum.saturating_sub(base).abs() <= self.detection.tolerance;
        if self.base.is_some_and(close) {
            return None;
        }
        let before = self.base.replace(minimum);
        Some(BaseShift {
            before,
            after: minimum,
            since,
        })
    }

    /// Forgets the window, not the base: later samples are not to be compared with earlier ones, for example
    /// after a pause.
    pub fn gap(&mut self) {
        self.window.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: i64 = 1000;

    fn run(samples: &[i64]) -> Vec<(usize, BaseShift)> {
        let mut base = BaseLatency::new(Detection::default());
        let shifts = |(i, &s): (usize, &i64)| base.push(s * US).map(|shift| (i, shift));
        samples.iter().enumerate().filter_map(shifts).collect()
    }

    fn shift(before: Option<i64>, after: i64, since: u8) -> BaseShift {
        BaseShift {
            before: before.map(|b| b * US),
            after: after * US,
            since,
        }
    }

    /// By hand: the third low sample makes 3 of 4, so a fall is reported one sample before a rise. A rise
    /// needs all 4, because the window's minimum is the old level until then.
    #[test]
    fn a_decrease_needs_three_samples_and_an_increase_four() {
        let shifts = run(&[
            80_000, 80_100, 80_050, 80_020, // stable at 80.0
            72_000, 72_010, 72_020, 72_000, // three of them are enough
            80_000, 80_010, 80_020, 80_030,
        ]);
        let wanted = [
            (3, shift(None, 80_000, 3)),
            (6, shift(Some(80_000), 72_000, 2)),
            (11, shift(Some(72_000), 80_000, 3)),
        ];
        assert_eq!(shifts, wanted);
    }

    #[test]
    fn a_step_of_500_us_is_no_change_and_one_nanosecond_more_is() {
        let mut base = BaseLatency::new(Detection::default());
        for sample in [0, 0, 0, 0] {
            base.push(sample);
        }
        assert!((0..8).all(|_| base.push(500_000).is_none()));
        let shifts: Vec<_> = (0..4).filter_map(|_| base.push(500_001)).collect();
        assert_eq!((shifts.len(), base.base()), (1, Some(500_001)));
    }

    #[test]
    fn an_unstable_window_changes_nothing() {
        let ramp: Vec<i64> = (0..40).map(|i| 80_000 + 600 * i).collect();
        assert!(run(&ramp).is_empty(), "never 3 within 0.5 ms");
    }

    #[test]
    fn a_gap_keeps_the_base_and_clears_the_window() {
        let mut base = BaseLatency::new(Detection::default());
        for sample in [7, 7, 7, 7, 9_000_000, 9_000_000, 9_000_000] {
            base.push(sample);
        }
        base.gap();
        assert!(base.push(9_000_000).is_none());
        assert_eq!(base.base(), Some(7));
    }

    #[test]
    fn inconsistent_settings_are_refused() {
        assert!(Detection::new(4, 3, 1).is_ok() && Detection::new(16, 16, 1).is_ok());
        for (window, quorum, tolerance) in [(1, 1, 1), (17, 3, 1), (4, 5, 1), (4, 1, 1), (4, 3, 0)]
        {
            assert!(Detection::new(window, quorum, tolerance).is_err());
        }
    }

    proptest! {
        /// A slow implementation of the rule over the whole series.
        #[test]
        fn the_streaming_base_equals_the_base_of_the_complete_series(
            samples in prop::collection::vec(0..30_i64, 0..60),
            window in 2..6_usize,
            quorum in 2..6_usize,
            tolerance in 1..6_i64,
        ) {
            prop_assume!(quorum <= window);
            let mut streaming = BaseLatency::new(Detection::new(window, quorum, tolerance).unwrap());
            let mut base: Option<i64> = None;
            for (i, &sample) in samples.iter().enumerate() {
                streaming.push(sample);
                if i + 1 >= window {
                    let window_samples = &samples[i + 1 - window..=i];
                    let low = *window_samples.iter().min().unwrap();
                    let near = window_samples.iter().filter(|&&s| s - low <= tolerance).count();
                    if near >= quorum && base.is_none_or(|b| (low - b).abs() > tolerance) {
                        base = Some(low);
                    }
                }
                prop_assert_eq!(streaming.base(), base);
            }
        }
    }
}
