//! The lines below the table of a terminal that explain its marks. Draws none of them.

use neph_analysis::PlotSettings;
use neph_stats::quantile_needs;

/// What the table shows that needs an explanation.
pub(super) struct Shown {
    /// It has bars; whether their axis is logarithmic.
    pub(super) bars: Option<bool>,
    /// A percentile has no value.
    pub(super) is_percentile_missing: bool,
}

impl Shown {
    /// The sentences; empty if nothing needs one.
    pub(super) fn text(&self, settings: &PlotSettings) -> String {
        let bars = self.bars.map(|is_logarithmic| {
            let axis = if is_logarithmic { "logarithmic" } else { "linear" };
            format!(
                "Bar: ┃ median, ▒ box: the middle half of the messages, ├ ┤ whiskers {}, · the slowest message, › beyond the axis. A part that is narrower than a character is not drawn. The axis is {axis}; the heading shows its first and last value.",
                settings.whiskers_text()
            )
        });
        let missing = self.is_percentile_missing.then(|| {
            let needs = |p| quantile_needs(p).unwrap_or(usize::MAX);
            let (p50, p99) = (needs(0.5), needs(0.99));
            format!("'-': too few messages for this percentile (p50 needs {p50}, p99 needs {p99}).")
        });
        bars.into_iter()
            .chain(missing)
            .collect::<Vec<_>>()
            .join(" ")
    }
}
