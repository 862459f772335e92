//! Lost packets, compared with the requested share.

use super::exchange::PacketTimes;
use super::replay::RequestedLink;
use super::{PROBE_BYTES, Z99};
use crate::gate::Loss;

/// Loss as requested and as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossCheck {
    /// The requested share, 0 to 1.
    pub expected: f64,
    /// Packets sent.
    pub sent: u32,
    /// Packets that did not arrive.
    pub lost: u32,
    /// The 99 % interval (Wilson) of the share of losses; wider for burst losses.
    pub interval: (f64, f64),
    /// Whether the interval contains the requested share; without one, whether no packet was lost.
    pub ok: bool,
}

/// Checks the packets that did not arrive.
pub(super) fn check(small: &[PacketTimes], course: &RequestedLink<'_>) -> LossCheck {
    let count = |wanted: fn(&PacketTimes) -> bool| {
        u32::try_from(small.iter().filter(|sighting| wanted(sighting)).count()).unwrap_or(u32::MAX)
    };
    let sent = count(|sighting| sighting.left.is_some());
    let lost = count(|sighting| sighting.left.is_some() && sighting.came.is_none());
    let share = f64::from(lost) / f64::from(sent.max(1));
    let left: Vec<i64> = small
        .iter()
        .filter_map(|packet_times| packet_times.left)
        .collect();
    let expected = course.loss(&left, PROBE_BYTES);
    let interval = wilson(share, f64::from(sent) / excess(&course.wire().loss));
    let ok = if expected > 0.0 {
        (interval.0..=interval.1).contains(&expected)
    } else {
        lost == 0
    };
    LossCheck {
        expected,
        sent,
        lost,
        interval,
        ok: ok && sent > 0,
    }
}

/// Ratio of the variance of the share of losses to that of independent losses. In the model of Gilbert and
/// Elliott the losses of two packets k apart have the correlation c (1 - p - r)^k. c is the part of the
/// variance that the state explains. Summed over all k.
pub(super) fn excess(loss: &Loss) -> f64 {
    let Loss::GilbertElliott(model) = loss else {
        return 1.0;
    };
    let (share, bad) = (model.stationary_loss(), model.bad_share());
    let memory = 1.0 - model.to_bad.fraction() - model.to_good.fraction();
    let step = model.loss_bad.fraction() - model.loss_good.fraction();
    let variance = share * (1.0 - share);
    if variance <= 0.0 || memory >= 1.0 {
        return 1.0;
    }
    let explained = bad * (1.0 - bad) * step * step / variance;
    (1.0 + 2.0 * explained * memory / (1.0 - memory)).max(1.0)
}

/// Wilson's score interval (1927) at 99 %.
fn wilson(share: f64, of: f64) -> (f64, f64) {
    if of <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = Z99 * Z99;
    let middle = (share + z2 / (2.0 * of)) / (1.0 + z2 / of);
    let half = Z99 * (share * (1.0 - share) / of + z2 / (4.0 * of * of)).sqrt() / (1.0 + z2 / of);
    // At the ends the limits are exact, without rounding errors.
    let low = if share <= 0.0 { 0.0 } else { middle - half };
    let high = if share >= 1.0 { 1.0 } else { middle + half };
    (low.max(0.0), high.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::replay::requested;
    use super::*;
    use crate::gate::{GilbertElliott, Shape, Share};

    #[test]
    fn the_bounds_are_the_shares_that_would_just_not_surprise() {
        for (hits, of) in [
            (10.0, 1000.0),
            (1.0, 50.0),
            (120.0, 2400.0),
            (2399.0, 2400.0),
        ] {
            let share = hits / of;
            let (low, high) = wilson(share, of);
            for bound in [low, high] {
                // Definition of the interval: the share is Z99 deviations from either limit.
                let deviation = (bound * (1.0 - bound) / of).sqrt();
                assert!(
                    ((share - bound).abs() - Z99 * deviation).abs() < 1e-12,
                    "{hits}/{of}"
                );
            }
            assert!(low < share && share < high);
        }
        assert!(wilson(0.0, 1000.0).0 < 1e-12);
    }

    #[test]
    fn bursts_widen_the_interval_by_the_correlation_of_their_model() {
        let percent = |percent: u32| Share::from_billionths(percent * 10_000_000);
        let [p, r, good, bad] = [1, 20, 0, 100].map(percent);
        let model = GilbertElliott {
            to_bad: p,
            to_good: r,
            loss_good: good,
            loss_bad: bad,
        };
        // The state explains everything: (1 + 0.79) / (1 - 0.79).
        let by_hand = 1.79 / 0.21;
        let excess_is = excess(&Loss::GilbertElliott(model));
        assert!((excess_is - by_hand).abs() < 1e-9, "{excess_is}");
        assert!((excess(&Loss::default()) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn loss_other_than_configured_fails_the_check() {
        let fine = PacketTimes {
            left: Some(0),
            came: Some(5_010_000),
        };
        let gone = PacketTimes {
            left: Some(0),
            came: None,
        };
        let none = Shape::default();
        assert!(check(&[fine, fine], &requested(&none)).ok);
        assert!(!check(&[fine, gone], &requested(&none)).ok);
        assert!(!check(&[], &requested(&none)).ok, "nothing was sent");
        let mut half = Shape::default();
        half.wire.loss = Loss::Random(Share::from_billionths(500_000_000));
        let mixed: Vec<PacketTimes> = [fine, gone].into_iter().cycle().take(200).collect();
        assert!(check(&mixed, &requested(&half)).ok);
        assert!(!check(&[fine; 200], &requested(&half)).ok);
    }
}
