//! Replies of routers in numbers: round trips, and the share of flows.

use neph_model::Span;
use neph_stats::{Level, Sorted, median};

/// Shortest, median and longest of the replies. Routers answer when they have time: probes without
/// a reply are no loss, and do not count.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "nanoseconds of a round trip fit"
)]
pub(super) fn min_median_max(replies: &[Span]) -> [Option<Span>; 3] {
    let mut nanos: Vec<f64> = replies.iter().map(|span| span.nanos() as f64).collect();
    let median_nanos = Sorted::sort(&mut nanos).and_then(|sorted| median(sorted, 0));
    let median_nanos = median_nanos.ok().and_then(Level::number);
    [
        replies.iter().min().copied(),
        median_nanos.map(|nanos| Span::from_nanos(nanos.round() as i64)),
        replies.iter().max().copied(),
    ]
}

/// `12  38 %`
pub(super) fn share_text(flows: u32, total: u32) -> String {
    let percent = 100.0 * f64::from(flows) / f64::from(total.max(1));
    format!("{flows} {percent:>4.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_replies_is_the_mean_of_the_middle_two() {
        let spans = [4, 1, 3, 2].map(Span::from_millis);
        let micros = [1_000, 2_500, 4_000];
        assert_eq!(
            min_median_max(&spans),
            micros.map(|n| Some(Span::from_micros(n)))
        );
        assert_eq!(min_median_max(&[]), [None; 3]);
    }
}
