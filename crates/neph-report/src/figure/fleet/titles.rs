//! Pairs' labels as titles of their panels.
use crate::scene::{Anchor, Point, Text, fit_among};
use neph_analysis::fleet::Pair;

/// The labels of pairs that stand in one figure, for [`title`].
pub(super) fn labels(pairs: &[Pair<'_>]) -> Vec<String> {
    pairs.iter().map(|pair| pair.label.clone()).collect()
}

/// A pair's label as the title of its panel, shortened to fit and still different from the others.
pub(super) fn title(
    pair: &Pair<'_>,
    labels: &[String],
    at: Point,
    (size, max_width): (f64, f64),
) -> Text {
    // Semibold is wider.
    let text = fit_among(&pair.label, labels, size, max_width / 1.06);
    Text::new(at, Anchor::Start, size, text).semibold()
}
