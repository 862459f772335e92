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
    pub is_ok: bool,
}

/// Checks the packets that did not arrive.
pub(super) fn check(packets: &[PacketTimes], requested_link: &RequestedLink<'_>) -> LossCheck {
    let count = |predicate: fn(&PacketTimes) -> bool| {
        u32::try_from(packets.iter().filter(|times| predicate(times)).count()).unwrap_or(u32::MAX)
    };
    let sent = count(|times| times.departure.is_some());
    let lost = count(|times| times.departure.is_some() && times.arrival.is_none());
    let share = f64::from(lost) / f64::from(sent.max(1));
    let departures: Vec<i64> = packets
        .iter()
        .filter_map(|packet_times| packet_times.departure)
        .collect();
    let expected = requested_link.loss(&departures, PROBE_BYTES);
    let interval = wilson(
        share,
        f64::from(sent) / variance_inflation(&requested_link.wire().loss),
    );
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
        is_ok: ok && sent > 0,
    }
}

/// Ratio of the variance of the share of losses to that of independent losses. In the model of Gilbert and
/// Elliott the losses of two packets k apart have the correlation c (1 - p - r)^k. c is the part of the
/// variance that the state explains. Summed over all k.
pub(super) fn variance_inflation(loss: &Loss) -> f64 {
    let Loss::GilbertElliott(model) = loss else {
        return 1.0;
    };
    let (share, bad_share) = (model.stationary_loss(), model.bad_share());
    let correlation = 1.0 - model.to_bad.fraction() - model.to_good.fraction();
    let loss_difference = model.loss_bad.fraction() - model.loss_good.fraction();
    let variance = share * (1.0 - share);
    if variance <= 0.0 || correlation >= 1.0 {
        return 1.0;
    }
    let explained_share =
        bad_share * (1.0 - bad_share) * loss_difference * loss_difference / variance;
    (1.0 + 2.0 * explained_share * correlation / (1.0 - correlation)).max(1.0)
}

/// Wilson's score interval (1927) at 99 %.
fn wilson(share: f64, sample_size: f64) -> (f64, f64) {
    if sample_size <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = Z99 * Z99;
    let middle = (share + z2 / (2.0 * sample_size)) / (1.0 + z2 / sample_size);
    let margin = Z99
        * (share * (1.0 - share) / sample_size + z2 / (4.0 * sample_size * sample_size)).sqrt()
        / (1.0 + z2 / sample_size);
    // At the ends the limits are exact, without rounding errors.
    let low = if share <= 0.0 { 0.0 } else { middle - margin };
    let high = if share >= 1.0 { 1.0 } else { middle + margin };
    (low.max(0.0), high.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::replay::requested;
    use super::*;
    use crate::gate::{GilbertElliott, Shape, Share};

    #[test]
    fn wilson_bounds_are_z99_standard_deviations_from_the_share() {
        for (hits, sample_size) in [
            (10.0, 1000.0),
            (1.0, 50.0),
            (120.0, 2400.0),
            (2399.0, 2400.0),
        ] {
            let share = hits / sample_size;
            let (low, high) = wilson(share, sample_size);
            for bound in [low, high] {
                // Definition of the interval: the share is Z99 deviations from either limit.
                let deviation = (bound * (1.0 - bound) / sample_size).sqrt();
                assert!(
                    ((share - bound).abs() - Z99 * deviation).abs() < 1e-12,
                    "{hits}/{sample_size}"
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
        let expected_inflation = 1.79 / 0.21;
        let actual_inflation = variance_inflation(&Loss::GilbertElliott(model));
        assert!(
            (actual_inflation - expected_inflation).abs() < 1e-9,
            "{actual_inflation}"
        );
        assert!((variance_inflation(&Loss::default()) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn loss_other_than_configured_fails_the_check() {
        let arrived_packet = PacketTimes {
            departure: Some(0),
            arrival: Some(5_010_000),
        };
        let lost_packet = PacketTimes {
            departure: Some(0),
            arrival: None,
        };
        let lossless_shape = Shape::default();
        assert!(
            check(
                &[arrived_packet, arrived_packet],
                &requested(&lossless_shape)
            )
            .is_ok
        );
        assert!(!check(&[arrived_packet, lost_packet], &requested(&lossless_shape)).is_ok);
        assert!(
            !check(&[], &requested(&lossless_shape)).is_ok,
            "nothing was sent"
        );
        let mut lossy_shape = Shape::default();
        lossy_shape.wire.loss = Loss::Random(Share::from_billionths(500_000_000));
        let half_lost: Vec<PacketTimes> = [arrived_packet, lost_packet]
            .into_iter()
            .cycle()
            .take(200)
            .collect();
        assert!(check(&half_lost, &requested(&lossy_shape)).is_ok);
        assert!(!check(&[arrived_packet; 200], &requested(&lossy_shape)).is_ok);
    }
}
