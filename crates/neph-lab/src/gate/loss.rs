//! Loss on the wire: of single packets, or in bursts.

use super::random::Random;
use super::{DropCause, Share};

/// How packets are lost. A lost packet has taken its transmission time, as a damaged frame does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Independent losses.
    Random(Share),
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
}

impl Default for Loss {
    fn default() -> Self {
        Self::Random(Share::NONE)
    }
}

impl Loss {
    /// The share of losses in the long run, 0 to 1.
    pub fn fraction(&self) -> f64 {
        match self {
            Self::Random(share) => share.fraction(),
            Self::GilbertElliott(model) => model.stationary_loss(),
        }
    }
}

/// Two states, good and bad, each with its own loss (Gilbert 1960, Elliott 1963). The state at its arrival
/// decides about a packet; then the state may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// p: the probability that good becomes bad after a packet.
    pub to_bad: Share,
    /// r: the probability that bad becomes good after a packet.
    pub to_good: Share,
    /// The share of losses in the good state.
    pub loss_good: Share,
    /// The share of losses in the bad state.
    pub loss_bad: Share,
}

impl GilbertElliott {
    /// The share of packets in the bad state in the long run: p / (p + r). A link that never changes stays
    /// good.
    pub fn bad_share(&self) -> f64 {
        let (p, r) = (self.to_bad.fraction(), self.to_good.fraction());
        if p > 0.0 { p / (p + r) } else { 0.0 }
    }

    /// The share of losses in the long run, 0 to 1.
    pub fn stationary_loss(&self) -> f64 {
        let bad = self.bad_share();
        (1.0 - bad) * self.loss_good.fraction() + bad * self.loss_bad.fraction()
    }

    /// Mean number of consecutive losses: the share of losses divided by the share at which a burst begins.
    /// This is 1 / r if only the bad state loses, and all packets. Zero without loss, infinite if everything
    /// is lost.
    pub fn mean_burst(&self) -> f64 {
        let loss = self.stationary_loss();
        if loss <= 0.0 {
            return 0.0;
        }
        let (p, r) = (self.to_bad.fraction(), self.to_good.fraction());
        let (good, bad) = (self.loss_good.fraction(), self.loss_bad.fraction());
        let after_good = (1.0 - p) * good + p * bad;
        let after_bad = r * good + (1.0 - r) * bad;
        let bad_share = self.bad_share();
        let consecutive_loss = (1.0 - bad_share) * good * after_good + bad_share * bad * after_bad;
        loss / (loss - consecutive_loss).max(0.0)
    }
}

/// The state of a direction in its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LossState {
    #[default]
    Unknown,
    Good,
    Bad,
}

impl LossState {
    /// Why the next packet is lost, if it is.
    pub(super) fn next_loss(&mut self, loss: &Loss, random: &mut Random) -> Option<DropCause> {
        match loss {
            Loss::Random(share) => random.bernoulli(*share).then_some(DropCause::Random),
            Loss::GilbertElliott(model) => self.next_in_burst_model(model, random),
        }
    }

    fn next_in_burst_model(
        &mut self,
        model: &GilbertElliott,
        random: &mut Random,
    ) -> Option<DropCause> {
        if *self == Self::Unknown {
            // The first state is random with the long-run shares, so that a short test sees the same link.
            let bad = random.uniform() < model.bad_share();
            *self = if bad { Self::Bad } else { Self::Good };
        }
        let (share, transition, other_state, cause) = match *self {
            Self::Bad => (model.loss_bad, model.to_good, Self::Good, DropCause::Burst),
            _ => (model.loss_good, model.to_bad, Self::Bad, DropCause::Random),
        };
        let is_lost = random.bernoulli(share);
        if random.bernoulli(transition) {
            *self = other_state;
        }
        is_lost.then_some(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn percent(percent: u32) -> Share {
        Share::from_billionths(percent * 10_000_000)
    }

    fn model([p, r, good, bad]: [u32; 4]) -> GilbertElliott {
        GilbertElliott {
            to_bad: percent(p),
            to_good: percent(r),
            loss_good: percent(good),
            loss_bad: percent(bad),
        }
    }

    /// The share of losses of `packets`, and the mean length of bursts.
    fn simulate(model: GilbertElliott, packets: u32) -> (f64, f64) {
        let (mut random, mut state) = (Random::new(11), LossState::default());
        let (mut lost, mut bursts, mut was_lost) = (0_u32, 0_u32, false);
        for _ in 0..packets {
            let cause = state.next_loss(&Loss::GilbertElliott(model), &mut random);
            lost += u32::from(cause.is_some());
            bursts += u32::from(cause.is_some() && !was_lost);
            was_lost = cause.is_some();
        }
        let share = f64::from(lost) / f64::from(packets);
        (share, f64::from(lost) / f64::from(bursts.max(1)))
    }

    #[test]
    fn bursts_have_the_share_and_the_length_of_their_model() {
        for numbers in [
            [1, 20, 0, 100],
            [2, 10, 1, 50],
            [5, 5, 0, 30],
            [30, 70, 10, 90],
        ] {
            let model = model(numbers);
            let (loss, burst) = simulate(model, 2_000_000);
            let (expected_loss, expected_burst) = (model.stationary_loss(), model.mean_burst());
            assert!(
                (loss / expected_loss - 1.0).abs() < 0.03,
                "{numbers:?}: {loss}"
            );
            assert!(
                (burst / expected_burst - 1.0).abs() < 0.03,
                "{numbers:?}: {burst}"
            );
        }
    }

    #[test]
    fn mean_burst_is_one_over_r_if_only_the_bad_state_loses() {
        let model = model([1, 20, 0, 100]);
        assert!((model.mean_burst() - 5.0).abs() < 1e-9);
        assert!((model.stationary_loss() - 1.0 / 21.0).abs() < 1e-12);
        assert!(Loss::GilbertElliott(model).fraction() > 0.047);
    }

    #[test]
    fn loss_probabilities_of_0_and_1_have_their_exact_effect() {
        assert!(model([0, 10, 0, 100]).mean_burst() <= 0.0);
        assert!(simulate(model([0, 10, 0, 100]), 1_000).0 <= 0.0);
        assert!(model([10, 10, 100, 100]).mean_burst().is_infinite());
        let never_bad = model([0, 0, 10, 100]);
        // Without states a burst ends with probability 0.9.
        assert!((never_bad.mean_burst() - 1.0 / 0.9).abs() < 1e-9);
        let (loss, _) = simulate(model([100, 100, 0, 100]), 1_001);
        assert!(
            (loss - 0.5).abs() < 0.001,
            "good and bad take turns: {loss}"
        );
    }
}
