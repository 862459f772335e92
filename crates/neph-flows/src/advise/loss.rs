//! Whether the lowest class loses more messages than the others: then its lower latency is no advantage.
//!
//! All messages of a class count, not only the last ones of its flows. On a path with a loss of 8 %, some
//! flows lost few messages recently.

use super::FinalFlow;
use crate::advice::LowestClassLoss;
use crate::share::{Share, share_of_cases};
use crate::view::{Class, FlowHistory};

/// A smaller additional loss is not reported.
const MIN_DIFFERENCE: f64 = 0.001;

/// `None` if one of them had no message.
pub(super) fn lowest_class_loss(
    classes: &[Class],
    flows: &[&FlowHistory],
    flows_at_end: &[FinalFlow],
) -> Option<LowestClassLoss> {
    let (low_class, other_classes) = classes.split_first()?;
    let sum = |count: fn(&Class) -> u64| other_classes.iter().map(count).sum::<u64>();
    let (lost, sent) = (sum(|class| class.lost), sum(|class| class.sent));
    // If the losses of flows vary more than at random, they count as fewer messages.
    let class_dispersion = |is_low: bool| {
        let flows_of_class = flows_at_end
            .iter()
            .filter(|flow| (flow.class == Some(0)) == is_low);
        let flows_of_class = flows_of_class.filter_map(|flow| flows.get(flow.flow));
        dispersion_ratio(
            flows_of_class.map(|flow| (flow.tally.lost, flow.tally.lost + flow.tally.replies)),
        )
    };
    let dispersion = class_dispersion(true).max(class_dispersion(false));
    let low = share_with_cases(low_class.lost, low_class.sent, dispersion)?;
    let others = share_with_cases(lost, sent, dispersion)?;
    Some(LowestClassLoss {
        low,
        others,
        is_more: min_difference(&low, &others) > MIN_DIFFERENCE,
    })
}

fn share_with_cases(hits: u64, n: u64, dispersion: f64) -> Option<Share> {
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let cases = n as f64 / dispersion;
    share_of_cases(hits, n, cases)
}

/// Lower limit of the difference between two shares, with 97.5 % confidence (Newcombe 1998, method 10).
fn min_difference(low: &Share, others: &Share) -> f64 {
    let lower_square = (low.share - low.low).powi(2);
    let upper_square = (others.high - others.share).powi(2);
    low.share - others.share - (lower_square + upper_square).sqrt()
}

/// Ratio of the variation of flows' losses to that expected at random, at least 1: Pearson's chi square over
/// its degrees of freedom. 1 for a single flow.
fn dispersion_ratio(flows: impl Iterator<Item = (u64, u64)>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts")]
    let flows: Vec<(f64, f64)> = flows
        .filter(|(_, n)| *n > 0)
        .map(|(lost, n)| (lost as f64, n as f64))
        .collect();
    let (lost, n) = flows
        .iter()
        .fold((0.0, 0.0), |sum, flow| (sum.0 + flow.0, sum.1 + flow.1));
    let share: f64 = lost / n;
    if flows.len() < 2 || share <= 0.0 || share >= 1.0 {
        return 1.0;
    }
    let squared_deviation =
        |(lost, n): &(f64, f64)| (lost - share * n).powi(2) / (n * share * (1.0 - share));
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let degrees_of_freedom = (flows.len() - 1) as f64;
    (flows.iter().map(squared_deviation).sum::<f64>() / degrees_of_freedom).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calculated by hand for two flows with 10 and 30 of 100 lost. 20 % of 100 are 20, off by 10 each: 2 x
    /// 100 / (100 x 0.2 x 0.8) = 12.5, over one degree of freedom.
    #[test]
    fn unequal_loss_between_flows_reduces_the_effective_sample_size() {
        let deviation = dispersion_ratio([(10, 100), (30, 100)].into_iter());
        assert!((deviation - 12.5).abs() < 1e-12, "{deviation}");
        assert!((dispersion_ratio([(10, 100), (10, 100)].into_iter()) - 1.0).abs() < 1e-12);
        assert!((dispersion_ratio([(10, 100)].into_iter()) - 1.0).abs() < 1e-12);
        assert!((dispersion_ratio([(0, 100), (0, 0), (0, 9)].into_iter()) - 1.0).abs() < 1e-12);
    }

    /// Newcombe's own example: 56 of 70 against 48 of 80 differ by 0.0524 to 0.3339.
    #[test]
    fn the_minimum_loss_difference_is_the_newcombe_interval_bound() {
        let (low, others) = (
            share_with_cases(56, 70, 1.0).unwrap(),
            share_with_cases(48, 80, 1.0).unwrap(),
        );
        let difference = min_difference(&low, &others);
        assert!((difference - 0.0524).abs() < 5e-5, "{difference}");
    }
}
