//! What the report shows, as the Latency Tester's settings say it.

use neph_model::Span;
use neph_text::{Fault, Fields, FromNode, Percent, Spanned, Value};

use crate::plan::{BOX_PERCENTILES, PlotPlan, check_plot, plot_blocks};

pub(super) fn plot(fields: &mut Fields<'_>, notes: &mut Vec<String>) -> PlotPlan {
    let mut plot = PlotPlan::default();
    if let Some(value) = fields.optional::<Percent>("percentiles_to_remove") {
        plot.percentiles_to_remove = value.value.0;
    }
    if let Some(off) = fields.optional::<bool>("equalization_disabled") {
        plot.equalize = !off.value;
    }
    plot.rtt_min = rtt(fields, "rtt_min");
    plot.rtt_max = rtt(fields, "rtt_max");
    // 0 and 0 is what an omitted pair becomes in the Latency Tester.
    let percentile = |value: Option<Spanned<Percent>>| value.map(|v| v.value.0);
    plot.whisker_min = percentile(fields.optional("whisker_min"));
    plot.whisker_max = percentile(fields.optional("whisker_max")).filter(|max| *max > 0.0);
    if plot.whisker_max.is_none() {
        plot.whisker_min = plot.whisker_min.filter(|min| *min > 0.0);
    }
    let shows_all_blocks =
        fields
            .entry("runs_to_plot")
            .is_some_and(|entry| match &entry.node.value {
                Value::List(list) => list.is_empty(),
                value => *value == Value::Nothing,
            });
    if !shows_all_blocks {
        plot.blocks = plot_blocks(fields, "runs_to_plot");
    }
    for (name, value, edge) in [
        ("whisker_min", &mut plot.whisker_min, BOX_PERCENTILES.0),
        ("whisker_max", &mut plot.whisker_max, BOX_PERCENTILES.1),
    ] {
        let is_inside = |at: &f64| *at > BOX_PERCENTILES.0 && *at < BOX_PERCENTILES.1;
        if let Some(percentile) = value.filter(is_inside) {
            notes.push(format!(
                "{name} {percentile} lies inside the box, which covers 25 to 75: it is drawn at {edge}"
            ));
            *value = Some(edge);
        }
    }
    check_plot(&plot, fields);
    plot
}

/// Milliseconds, possibly with a fraction; 0 means that the plot chooses.
fn rtt(fields: &mut Fields<'_>, key: &'static str) -> Option<Span> {
    let millis = fields.optional_with(key, |node| match f64::from_node(node)? {
        millis if (0.0..=1e9).contains(&millis) => Ok(millis),
        _ => Err(Fault::new(
            "this is out of range",
            "write milliseconds from 0 on",
        )),
    })?;
    #[expect(clippy::cast_possible_truncation, reason = "at most 10^15")]
    let nanos = (millis.value * 1e6).round() as i64;
    (nanos > 0).then(|| Span::from_nanos(nanos))
}
