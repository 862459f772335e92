//! The plan's `[plot]` section: the plot settings of the Latency Tester, and those of neph.
//!
//! Plain values: the binary turns them into the report's own settings.

use neph_model::Span;
use neph_text::{Fields, Nanos, Percent, Spanned};

use super::single_line_text::single_line_text;

/// What the report shows. Each absent value is chosen by the report.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotPlan {
    /// Percentiles cut off at each end, 0 to below 50.
    pub percentiles_to_remove: f64,
    /// Same scale across a group of figures.
    pub equalize: bool,
    /// Least round-trip time shown.
    pub rtt_min: Option<Span>,
    /// Greatest round-trip time shown.
    pub rtt_max: Option<Span>,
    /// Percentile of the lower whisker; 1.5 interquartile ranges if absent.
    pub whisker_min: Option<f64>,
    /// Percentile of the upper whisker; 1.5 interquartile ranges if absent.
    pub whisker_max: Option<f64>,
    /// Blocks that are shown, from 0; empty: all. Plans count them from 1.
    pub blocks: Vec<u32>,
    /// Distribution figures show the tail on a logarithmic axis.
    pub log_tail: bool,
    /// Names of figures with their places; empty: all. The report knows which there are.
    pub figures: Vec<Spanned<String>>,
}

impl Default for PlotPlan {
    fn default() -> Self {
        Self {
            percentiles_to_remove: 0.0,
            equalize: true,
            rtt_min: None,
            rtt_max: None,
            whisker_min: None,
            whisker_max: None,
            blocks: Vec::new(),
            log_tail: false,
            figures: Vec::new(),
        }
    }
}

/// Reads `[plot]` of a plan.
pub(crate) fn read(mut fields: Fields<'_>) -> PlotPlan {
    let span = |nanos: Nanos| Span::from_nanos(nanos.0);
    let percent = |percent: Percent| percent.0;
    let mut plot = PlotPlan::default();
    if let Some(value) = fields.optional::<Percent>("percentiles_to_remove") {
        plot.percentiles_to_remove = value.value.0;
    }
    if let Some(value) = fields.optional::<bool>("equalize") {
        plot.equalize = value.value;
    }
    plot.rtt_min = fields.optional("rtt_min").map(|v| span(v.value));
    plot.rtt_max = fields.optional("rtt_max").map(|v| span(v.value));
    plot.whisker_min = fields.optional("whisker_min").map(|v| percent(v.value));
    plot.whisker_max = fields.optional("whisker_max").map(|v| percent(v.value));
    plot.blocks = blocks(&mut fields, "blocks");
    if let Some(value) = fields.optional::<bool>("log_tail") {
        plot.log_tail = value.value;
    }
    plot.figures = fields
        .one_or_list_with("figures", single_line_text)
        .unwrap_or_default();
    check(&plot, &fields);
    fields.finish();
    plot
}

/// Block numbers, written from 1 and meant from 0.
pub(crate) fn blocks<'a>(fields: &mut Fields<'a>, key: &'a str) -> Vec<u32> {
    let mut blocks = Vec::new();
    for block in fields.one_or_list::<u32>(key).unwrap_or_default() {
        match block.value.checked_sub(1) {
            Some(index) => blocks.push(index),
            None => fields.fault(
                block.span,
                "blocks are counted from 1",
                "write 1 for the first",
            ),
        }
    }
    blocks
}

/// The box of a box plot goes from quartile to quartile, percent: no whisker ends inside.
pub(crate) const BOX_PERCENTILES: (f64, f64) = (25.0, 75.0);

/// What contradicts itself.
pub(crate) fn check(plot: &PlotPlan, fields: &Fields<'_>) {
    if plot.percentiles_to_remove >= 50.0 {
        let message = "percentiles_to_remove leaves nothing";
        fields.fault(fields.span(), message, "write less than 50");
    }
    let is_reversed = |low: Option<f64>, high: Option<f64>| matches!((low, high), (Some(low), Some(high)) if low >= high);
    let millis = |span: Option<Span>| span.map(Span::millis_f64);
    if is_reversed(millis(plot.rtt_min), millis(plot.rtt_max)) {
        fields.fault(
            fields.span(),
            "rtt_min is not below rtt_max",
            "exchange them",
        );
    }
    let is_inside = |value: Option<f64>| {
        value.is_some_and(|at| at > BOX_PERCENTILES.0 && at < BOX_PERCENTILES.1)
    };
    for (name, value) in [
        ("whisker_min", plot.whisker_min),
        ("whisker_max", plot.whisker_max),
    ] {
        if let Some(percentile) = value.filter(|_| is_inside(value)) {
            let message = format!("{name} {percentile} lies inside the box, which covers 25 to 75");
            let remedy = "write whisker_min from 0 to 25, and whisker_max from 75 to 100";
            fields.fault(fields.span(), message, remedy);
        }
    }
    if is_reversed(plot.whisker_min, plot.whisker_max) {
        let message = "whisker_min is not below whisker_max";
        fields.fault(fields.span(), message, "exchange them");
    }
}
