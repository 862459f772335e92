//! Unfairness in the text of the summary: latency over flows in the median bin of time, and the
//! number of flows without one.

use neph_flows::{FlowLatencyBin, FlowQuantile, OverBins};
use neph_model::Span;
use neph_stats::Level;

use neph_text::counted::counted;

/// A line of quantiles, each of the bins with enough flows, and one of lost flows; empty if no bin
/// has enough flows.
pub(super) fn text(bins: &[FlowLatencyBin], width: Span) -> String {
    let medians = FlowQuantile::PERCENTILES
        .into_iter()
        .filter_map(|quantile| Some((quantile.name(), OverBins::median(bins, quantile)?)));
    let medians: Vec<(&str, OverBins)> = medians.collect();
    let Some((_, first)) = medians.first() else {
        return String::new();
    };
    let bin_count_text = |over_bins: &OverBins| counted(over_bins.bins as u64, "bin");
    let is_identical = medians
        .iter()
        .all(|(_, over_bins)| over_bins.bins == first.bins);
    let quantile = |(name, over_bins): &(&str, OverBins)| {
        let latency = level_text(over_bins.level);
        if is_identical {
            format!("{name} {latency}")
        } else {
            format!("{name} {latency} of {}", bin_count_text(over_bins))
        }
    };
    let quantiles: Vec<String> = medians.iter().map(quantile).collect();
    let bins_text = if is_identical {
        format!("the median of {}", bin_count_text(first))
    } else {
        "the median of the bins with flows enough for it".to_owned()
    };
    format!(
        "over flows:    {} (each flow's median in {}; {bins_text})\n{}",
        quantiles.join(", "),
        width.exact(),
        lost_flows_text(bins)
    )
}

/// The flows without a number in the quantiles; empty if there are none.
fn lost_flows_text(bins: &[FlowLatencyBin]) -> String {
    let bins_with_loss = bins.iter().filter(|bin| bin.lost > 0);
    let Some(max_loss_bin) = bins_with_loss.clone().max_by_key(|bin| bin.lost) else {
        return String::new();
    };
    format!(
        "lost flows:    at most {} of {} in a bin, in {} of {}: they lost half of their messages or more, and count as slower than all others\n",
        max_loss_bin.lost,
        max_loss_bin.flows,
        bins_with_loss.count(),
        counted(bins.len() as u64, "bin")
    )
}

fn level_text(level: Level) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "display")]
    let span_text = |nanos: f64| Span::from_nanos(nanos as i64).to_string();
    level.number().map_or_else(|| "lost".to_owned(), span_text)
}

#[cfg(test)]
mod tests {
    use neph_flows::Latency;
    use neph_model::Instant;

    use super::*;

    fn bin(flows: u32, latency: [Latency; 5]) -> FlowLatencyBin {
        FlowLatencyBin {
            from: Instant::from_nanos(0),
            flows,
            lost: 0,
            latency,
            changes: Some(0),
            base: None,
        }
    }

    fn latencies(millis: [i64; 5]) -> [Latency; 5] {
        millis.map(|value| Latency::Took(Span::from_millis(value)))
    }

    #[test]
    fn each_quantile_counts_only_bins_with_enough_flows() {
        let width = Span::from_secs(20);
        let mut bins = vec![bin(59, latencies([8, 10, 20, 30, 30])); 3];
        assert_eq!(
            text(&bins, width),
            "over flows:    p50 10.00 ms, p95 20.00 ms (each flow's median in 20 s; the median of 3 bins)\n"
        );
        // Flows that end: too few for p95, then for any quantile.
        bins.extend([bin(58, latencies([8, 90, 90, 90, 90])); 4]);
        bins.extend([bin(5, latencies([8, 70, 70, 70, 70])); 9]);
        assert_eq!(
            text(&bins, width),
            "over flows:    p50 90.00 ms of 7 bins, p95 20.00 ms of 3 bins (each flow's median in 20 s; the median of the bins with flows enough for it)\n"
        );
        assert_eq!(text(&bins[7..], width), "", "five flows have no quantile");
    }

    #[test]
    fn a_quantile_that_most_bins_lost_is_lost_and_its_flows_are_counted() {
        let mut lost = bin(59, latencies([8, 10, 20, 30, 30]));
        lost.latency[2..].fill(Latency::Lost);
        lost.lost = 6;
        let bins = [lost, bin(59, latencies([8, 10, 20, 30, 30])), lost];
        let medians = text(&bins, Span::from_secs(20));
        assert!(medians.contains("p95 lost (each"), "{medians}");
        assert!(
            medians.contains("at most 6 of 59 in a bin, in 2 of 3 bins"),
            "{medians}"
        );
    }
}
