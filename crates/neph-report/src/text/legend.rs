//! The lines below the table of a terminal that explain its marks. Draws none of them.

use neph_analysis::PlotSettings;
use neph_stats::quantile_needs;

/// What the table shows and the legend has to explain.
pub(super) struct TableMarks {
    /// Whether the axis of the box plots is logarithmic; `None` without box plots.
    pub(super) is_axis_logarithmic: Option<bool>,
    /// A percentile has no value.
    pub(super) is_percentile_missing: bool,
}

impl TableMarks {
    /// The sentences; empty if nothing needs one.
    pub(super) fn legend(&self, settings: &PlotSettings) -> String {
        let box_plots = self.is_axis_logarithmic.map(|is_logarithmic| {
            let axis = if is_logarithmic { "logarithmic" } else { "linear" };
            format!(
                "Bar: ┃ median, ▒ box: the middle half of the messages, ├ ┤ whiskers {}, · the slowest message, › beyond the axis. A part that is narrower than a character is not drawn. The axis is {axis}; the heading shows its first and last value.",
                settings.whiskers_text()
            )
        });
        let missing_percentile = self.is_percentile_missing.then(|| {
            let min_messages = |p| quantile_needs(p).unwrap_or(usize::MAX);
            let (p50, p99) = (min_messages(0.5), min_messages(0.99));
            format!("'-': too few messages for this percentile (p50 needs {p50}, p99 needs {p99}).")
        });
        box_plots
            .into_iter()
            .chain(missing_percentile)
            .collect::<Vec<_>>()
            .join(" ")
    }
}
