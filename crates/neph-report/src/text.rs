//! A report for a terminal, as wide as the terminal: a conclusion of three sentences, one line with a
//! box plot per scenario, and for fleets a line per pair.

mod fleets;
mod layers;
mod legend;
mod loads;
mod transfers;

use crate::axis::{Limits, Scale, Spacing, Spread, choose_scale};
use crate::shorten::shorten_among;
use neph_analysis::findings::{ALARM, Finding, FindingKind, Statements, findings_of};
use neph_analysis::latencies::Latencies;
use neph_analysis::numbers::{count, level, millis, percent};
use neph_analysis::{CampaignData, Diagnoses, PlotSettings};
use neph_stats::{BoxPlot, boxplot};
use unicode_width::UnicodeWidthStr;

/// Columns of the numbers next to the box: median, p99, n and loss.
const NUMBERS_WIDTH: usize = 11 + 11 + 9 + 9;
/// And, where there are any, messages that could not be sent.
const NOT_SENT_WIDTH: usize = 10;
/// The column of messages that were not answered as expected.
const ERRORS_WIDTH: usize = 9;
/// Labels are cut down to this; in narrower terminals they stand above their numbers.
const MIN_LABEL_WIDTH: usize = 20;
/// The narrowest useful box.
const MIN_BOX_PLOT_WIDTH: usize = 16;

/// The conclusion and the table, `width` columns wide (at least 40), with a final line break.
pub fn text(
    data: &CampaignData,
    settings: &PlotSettings,
    diagnoses: &Diagnoses,
    width: usize,
) -> String {
    let width = width.max(40);
    let mut out = conclusion(data, settings, diagnoses)
        .iter()
        .map(|finding| wrap(&finding.text, width))
        .collect::<String>();
    for table in [
        scenario_table(data, settings, width),
        layers::tables(data, settings),
        fleets::table(data, settings),
        transfers::table(data, settings),
        loads::table(data, settings),
    ] {
        if !table.is_empty() {
            out.push('\n');
            out.push_str(&table);
        }
    }
    out
}

/// What was measured, the largest result besides the root causes (each alarm of the plan, if any was
/// raised), the first comparisons with a verdict, and every kind of flag.
pub fn conclusion(
    data: &CampaignData,
    settings: &PlotSettings,
    diagnoses: &Diagnoses,
) -> Vec<Finding> {
    let statements = Statements::of(data, settings);
    let findings = findings_of(data, settings, &diagnoses.causes, &statements);
    [
        FindingKind::Measured,
        FindingKind::Notable,
        FindingKind::Flagged,
    ]
    .into_iter()
    .flat_map(|kind| {
        let mut of_kind = findings.iter().filter(move |finding| finding.kind == kind);
        let first = of_kind.next();
        // A user with several rules wants the result of each.
        let is_alarm = first.is_some_and(|finding| finding.topic == ALARM);
        // Every kind of warning is shown: one that is left out makes the numbers look better than they are.
        let is_flagged = kind == FindingKind::Flagged;
        let mut verdicts_left = MAX_VERDICTS;
        let more = of_kind.filter(move |finding| {
            let is_shown = has_verdict(finding) && verdicts_left > 0;
            verdicts_left -= usize::from(is_shown);
            let is_counted = kind == FindingKind::Measured;
            is_shown || is_flagged || is_counted || (is_alarm && finding.topic == ALARM)
        });
        first.into_iter().chain(more).cloned()
    })
    .collect()
}

/// Comparisons with a verdict that the terminal shows.
const MAX_VERDICTS: usize = 3;

/// Whether a comparison decided that something is slower or faster.
fn has_verdict(finding: &Finding) -> bool {
    let has_count = |key: &str| finding.evidence.get(key).is_some_and(|count| *count > 0.0);
    has_count("slower") || has_count("faster")
}

fn wrap(text: &str, width: usize) -> String {
    wrap_with_indent(text, 0, width)
}

/// Wrapped, with so many blanks before each line.
pub(crate) fn wrap_with_indent(text: &str, indent: usize, width: usize) -> String {
    let blanks = " ".repeat(indent);
    let mut out = blanks.clone();
    let mut column = indent;
    for word in text.split_whitespace() {
        let word_width = word.width();
        if column > indent && column + 1 + word_width > width {
            out.push('\n');
            out.push_str(&blanks);
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word_width;
    }
    out.push('\n');
    out
}

/// One scenario's line.
struct ScenarioLine {
    label: String,
    latencies: Latencies,
    /// Share lost; `None` if it is not known.
    loss: Option<f64>,
}

impl ScenarioLine {
    fn of(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Self {
        let latencies = Latencies::of(data.main_flows(scenario, settings), settings.basis);
        let is_known = latencies.count() > 0 && !data.is_imported();
        Self {
            label: data.label(scenario),
            loss: is_known.then(|| latencies.loss()),
            latencies,
        }
    }

    /// Whether there are messages, and too few for one of the two percentiles.
    fn has_missing_percentile(&self) -> bool {
        let latencies = &self.latencies;
        let is_missing = |p: f64| latencies.quantile(p).is_none();
        latencies.count() > 0 && (is_missing(0.5) || is_missing(0.99))
    }
}

fn scenario_table(data: &CampaignData, settings: &PlotSettings, width: usize) -> String {
    let lines: Vec<ScenarioLine> = data
        .scenarios_with_main_flow(settings)
        .into_iter()
        .map(|scenario| ScenarioLine::of(data, settings, scenario))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let longest_label = lines
        .iter()
        .map(|line| line.label.width())
        .max()
        .unwrap_or(0)
        .max(8);
    let max_errors = lines.iter().map(|line| line.latencies.errors).max();
    let errors_width = max_errors
        .filter(|max| *max > 0)
        .map_or(0, |_| ERRORS_WIDTH);
    let max_failed = lines.iter().map(|line| line.latencies.failed).max();
    let not_sent_width = max_failed
        .filter(|max| *max > 0)
        .map_or(0, |_| NOT_SENT_WIDTH);
    let numbers_width = NUMBERS_WIDTH + errors_width + not_sent_width;
    let max_label_width = width.saturating_sub(numbers_width);
    // A label that would be cut to nothing stands on a line of its own.
    let label_width = if max_label_width < longest_label.min(MIN_LABEL_WIDTH) {
        0
    } else {
        longest_label.min(max_label_width)
    };
    let box_plot_width = width.saturating_sub(label_width + numbers_width + 2);
    let spreads: Vec<Spread> = lines
        .iter()
        .filter_map(|line| Spread::of_latencies(&line.latencies))
        .collect();
    let scale = choose_scale(&spreads, Limits::from(settings))
        .filter(|_| box_plot_width >= MIN_BOX_PLOT_WIDTH);
    let widths = ColumnWidths {
        label: label_width,
        errors: errors_width,
        not_sent: not_sent_width,
        box_plot: box_plot_width,
    };
    let mut out = header(widths, scale.as_ref(), settings);
    let line_labels: Vec<String> = lines.iter().map(|line| line.label.clone()).collect();
    for line in &lines {
        out.push_str(&row(line, &line_labels, widths, scale.as_ref(), settings));
    }
    out.extend(data.shared_label().map(|shared| wrap(&shared, width)));
    let table_marks = legend::TableMarks {
        is_axis_logarithmic: scale.map(|scale| scale.spacing == Spacing::Logarithmic),
        is_percentile_missing: lines.iter().any(ScenarioLine::has_missing_percentile),
    };
    let legend = table_marks.legend(settings);
    if !legend.is_empty() {
        out.push_str(&wrap(&legend, width));
    }
    out
}

/// How wide a table's columns are, in characters; 0: not there.
#[derive(Clone, Copy)]
struct ColumnWidths {
    /// The labels; without them they stand on lines of their own.
    label: usize,
    /// The number of messages that were not answered as expected.
    errors: usize,
    /// The number of messages that could not be sent.
    not_sent: usize,
    /// The box plots.
    box_plot: usize,
}

fn header(widths: ColumnWidths, scale: Option<&Scale>, settings: &PlotSettings) -> String {
    let label_width = widths.label;
    let mut out = match label_width {
        0 => format!("{}\n", settings.basis.name()),
        _ => format!("{:<label_width$}", settings.basis.name()),
    };
    out.push_str(&format!(
        "{:>11}{:>11}{:>9}{:>9}",
        "p50", "p99", "messages", "loss"
    ));
    if widths.errors > 0 {
        out.push_str(&format!("{:>1$}", "errors", widths.errors));
    }
    if widths.not_sent > 0 {
        out.push_str(&format!("{:>1$}", "not sent", widths.not_sent));
    }
    if let Some(scale) = scale {
        let low = millis(scale.low);
        let high = millis(scale.high);
        let line_width = widths
            .box_plot
            .saturating_sub(low.width() + high.width() + 2);
        out.push_str(&format!("  {low} {} {high}", "─".repeat(line_width)));
    }
    out.push('\n');
    out
}

fn row(
    line: &ScenarioLine,
    line_labels: &[String],
    widths: ColumnWidths,
    scale: Option<&Scale>,
    settings: &PlotSettings,
) -> String {
    let latencies = &line.latencies;
    let quantile_cell = |p: f64| {
        let quantile = latencies.quantile(p);
        quantile.map_or_else(
            || "-".to_owned(),
            |quantile| level(quantile, latencies.without_reply()),
        )
    };
    let mut out = match widths.label {
        0 => {
            fit_to_width(&line.label, line_labels, 40)
                .trim_end()
                .to_owned()
                + "\n"
        }
        label_width => fit_to_width(&line.label, line_labels, label_width),
    };
    out.push_str(&format!(
        "{:>11}{:>11}{:>9}{:>9}",
        quantile_cell(0.5),
        quantile_cell(0.99),
        count(latencies.count()),
        line.loss.map_or_else(|| "-".to_owned(), percent)
    ));
    if widths.errors > 0 {
        let errors = count(latencies.errors);
        out.push_str(&format!("{errors:>0$}", widths.errors));
    }
    if widths.not_sent > 0 {
        let not_sent = count(latencies.failed);
        out.push_str(&format!("{not_sent:>0$}", widths.not_sent));
    }
    let box_plot = boxplot(latencies.sorted(), settings.whiskers(), 1);
    if let (Some(scale), Ok(box_plot)) = (scale, box_plot) {
        out.push_str("  ");
        out.push_str(draw_boxplot(&box_plot, scale, widths.box_plot).trim_end());
    }
    out.push('\n');
    out
}

/// A box plot of characters: `  ├──▒▒┃▒──┤   ·`.
fn draw_boxplot(box_plot: &BoxPlot, scale: &Scale, width: usize) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a column of a terminal"
    )]
    let column = |value: f64| (scale.clamped_share(value) * (width - 1) as f64).round() as usize;
    let mut cells = vec![' '; width];
    let (low, high) = (column(box_plot.whisker_low), column(box_plot.whisker_high));
    cells[low..=high].fill('─');
    cells[low] = '├';
    cells[high] = '┤';
    cells[column(box_plot.q1)..=column(box_plot.q3)].fill('▒');
    cells[column(box_plot.median)] = '┃';
    if let Some(farthest) = box_plot.above.farthest.first() {
        let farthest_column = column(*farthest);
        if cells[farthest_column] == ' ' {
            cells[farthest_column] = if scale.share(*farthest) > 1.0 {
                '›'
            } else {
                '·'
            };
        }
    }
    cells.into_iter().collect()
}

/// Cut or filled to so many columns, and different from the others.
fn fit_to_width(text: &str, labels: &[String], columns: usize) -> String {
    let out = shorten_among(text, labels, |short| short.width() <= columns);
    let padding = columns.saturating_sub(out.width());
    out + &" ".repeat(padding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_or_padded_to_their_column() {
        assert_eq!(fit_to_width("metro", &[], 8), "metro   ");
        assert_eq!(fit_to_width("continent", &[], 5), "co…nt");
    }

    #[test]
    fn long_sentences_wrap() {
        let out = wrap("one two three four", 9);
        assert_eq!(out, "one two\nthree\nfour\n");
    }
}
