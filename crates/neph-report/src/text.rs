//! A report for a terminal, as wide as the terminal: a conclusion of three sentences, one line with a
//! box plot per scenario, and for fleets a line per pair.

mod fleets;
mod layers;
mod legend;
mod loads;
mod transfers;

use crate::axis::{Limits, Scale, Spacing, Spread, choose};
use crate::shortened::shortened_among;
use neph_analysis::findings::{ALARM, Finding, FindingKind, Statements, findings_of};
use neph_analysis::latencies::Latencies;
use neph_analysis::numbers::{count, level, millis, percent};
use neph_analysis::{CampaignData, Diagnoses, PlotSettings};
use neph_stats::{BoxPlot, boxplot};
use unicode_width::UnicodeWidthStr;

/// Columns of the numbers next to the box: median, p99, n and loss.
const NUMBERS: usize = 11 + 11 + 9 + 9;
/// And, where there are any, messages that could not be sent.
const NOT_SENT: usize = 10;
/// The column of messages that were not answered as expected.
const ERRORS: usize = 9;
/// Labels are cut down to this; in narrower terminals they stand above their numbers.
const SHORTEST: usize = 20;
/// The narrowest useful box.
const NARROWEST: usize = 16;

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
        .map(|finding| wrapped(&finding.text, width))
        .collect::<String>();
    for table in [
        table(data, settings, width),
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
        let mut verdicts = VERDICTS;
        let more = of_kind.filter(move |finding| {
            let is_shown = has_verdict(finding) && verdicts > 0;
            verdicts -= usize::from(is_shown);
            let is_counted = kind == FindingKind::Measured;
            is_shown || is_flagged || is_counted || (is_alarm && finding.topic == ALARM)
        });
        first.into_iter().chain(more).cloned()
    })
    .collect()
}

/// Comparisons with a verdict that the terminal shows.
const VERDICTS: usize = 3;

/// Whether a comparison decided that something is slower or faster.
fn has_verdict(finding: &Finding) -> bool {
    let decided = |key: &str| finding.evidence.get(key).is_some_and(|count| *count > 0.0);
    decided("slower") || decided("faster")
}

fn wrapped(text: &str, width: usize) -> String {
    indented(text, 0, width)
}

/// Wrapped, with so many blanks before each line.
pub(crate) fn indented(text: &str, indent: usize, width: usize) -> String {
    let blanks = " ".repeat(indent);
    let mut out = blanks.clone();
    let mut column = indent;
    for word in text.split_whitespace() {
        let long = word.width();
        if column > indent && column + 1 + long > width {
            out.push('\n');
            out.push_str(&blanks);
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += long;
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
    fn misses_a_percentile(&self) -> bool {
        let latencies = &self.latencies;
        let is_missing = |p: f64| latencies.quantile(p).is_none();
        latencies.count() > 0 && (is_missing(0.5) || is_missing(0.99))
    }
}

fn table(data: &CampaignData, settings: &PlotSettings, width: usize) -> String {
    let lines: Vec<ScenarioLine> = data
        .determined_by_main(settings)
        .into_iter()
        .map(|scenario| ScenarioLine::of(data, settings, scenario))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let longest = lines
        .iter()
        .map(|line| line.label.width())
        .max()
        .unwrap_or(0)
        .max(8);
    let errors = lines.iter().map(|line| line.latencies.errors).max();
    let errors = errors.filter(|max| *max > 0).map_or(0, |_| ERRORS);
    let not_sent = lines.iter().map(|line| line.latencies.failed).max();
    let not_sent = not_sent.filter(|max| *max > 0).map_or(0, |_| NOT_SENT);
    let label_width = width.saturating_sub(NUMBERS + errors + not_sent);
    // A label that would be cut to nothing stands on a line of its own.
    let labels = if label_width < longest.min(SHORTEST) {
        0
    } else {
        longest.min(label_width)
    };
    let room = width.saturating_sub(labels + NUMBERS + errors + not_sent + 2);
    let spreads: Vec<Spread> = lines
        .iter()
        .filter_map(|line| Spread::of_latencies(&line.latencies))
        .collect();
    let scale = choose(&spreads, Limits::from(settings)).filter(|_| room >= NARROWEST);
    let columns = Columns {
        labels,
        errors,
        not_sent,
        room,
    };
    let mut out = header(columns, scale.as_ref(), settings);
    let line_labels: Vec<String> = lines.iter().map(|line| line.label.clone()).collect();
    for line in &lines {
        out.push_str(&row(line, &line_labels, columns, scale.as_ref(), settings));
    }
    out.extend(data.shared_label().map(|shared| wrapped(&shared, width)));
    let shown = legend::Shown {
        bars: scale.map(|scale| scale.spacing == Spacing::Logarithmic),
        is_percentile_missing: lines.iter().any(ScenarioLine::misses_a_percentile),
    };
    let legend = shown.text(settings);
    if !legend.is_empty() {
        out.push_str(&wrapped(&legend, width));
    }
    out
}

/// How wide a table's parts are; 0: not there.
#[derive(Clone, Copy)]
struct Columns {
    /// The labels; without them they stand on lines of their own.
    labels: usize,
    /// The number of messages that were not answered as expected.
    errors: usize,
    /// The number of messages that could not be sent.
    not_sent: usize,
    /// The box plots.
    room: usize,
}

fn header(columns: Columns, scale: Option<&Scale>, settings: &PlotSettings) -> String {
    let labels = columns.labels;
    let mut out = match labels {
        0 => format!("{}\n", settings.basis.name()),
        _ => format!("{:<labels$}", settings.basis.name()),
    };
    out.push_str(&format!(
        "{:>11}{:>11}{:>9}{:>9}",
        "p50", "p99", "messages", "loss"
    ));
    if columns.errors > 0 {
        out.push_str(&format!("{:>1$}", "errors", columns.errors));
    }
    if columns.not_sent > 0 {
        out.push_str(&format!("{:>1$}", "not sent", columns.not_sent));
    }
    if let Some(scale) = scale {
        let low = millis(scale.low);
        let high = millis(scale.high);
        let line = columns.room.saturating_sub(low.width() + high.width() + 2);
        out.push_str(&format!("  {low} {} {high}", "─".repeat(line)));
    }
    out.push('\n');
    out
}

fn row(
    line: &ScenarioLine,
    line_labels: &[String],
    columns: Columns,
    scale: Option<&Scale>,
    settings: &PlotSettings,
) -> String {
    let latencies = &line.latencies;
    let at = |p: f64| {
        let quantile = latencies.quantile(p);
        quantile.map_or_else(
            || "-".to_owned(),
            |quantile| level(quantile, latencies.without_reply()),
        )
    };
    let mut out = match columns.labels {
        0 => padded(&line.label, line_labels, 40).trim_end().to_owned() + "\n",
        labels => padded(&line.label, line_labels, labels),
    };
    out.push_str(&format!(
        "{:>11}{:>11}{:>9}{:>9}",
        at(0.5),
        at(0.99),
        count(latencies.count()),
        line.loss.map_or_else(|| "-".to_owned(), percent)
    ));
    if columns.errors > 0 {
        let errors = count(latencies.errors);
        out.push_str(&format!("{errors:>0$}", columns.errors));
    }
    if columns.not_sent > 0 {
        let not_sent = count(latencies.failed);
        out.push_str(&format!("{not_sent:>0$}", columns.not_sent));
    }
    let numbers = boxplot(latencies.sorted(), settings.whiskers(), 1);
    if let (Some(scale), Ok(numbers)) = (scale, numbers) {
        out.push_str("  ");
        out.push_str(draw_boxplot(&numbers, scale, columns.room).trim_end());
    }
    out.push('\n');
    out
}

/// A box plot of characters: `  ├──▒▒┃▒──┤   ·`.
fn draw_boxplot(numbers: &BoxPlot, scale: &Scale, room: usize) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a column of a terminal"
    )]
    let column = |value: f64| (scale.clamped(value) * (room - 1) as f64).round() as usize;
    let mut cells = vec![' '; room];
    let (low, high) = (column(numbers.whisker_low), column(numbers.whisker_high));
    cells[low..=high].fill('─');
    cells[low] = '├';
    cells[high] = '┤';
    cells[column(numbers.q1)..=column(numbers.q3)].fill('▒');
    cells[column(numbers.median)] = '┃';
    if let Some(farthest) = numbers.above.farthest.first() {
        let column_of = column(*farthest);
        if cells[column_of] == ' ' {
            cells[column_of] = if scale.share(*farthest) > 1.0 {
                '›'
            } else {
                '·'
            };
        }
    }
    cells.into_iter().collect()
}

/// Cut or filled to so many columns, and different from the others.
fn padded(text: &str, labels: &[String], columns: usize) -> String {
    let out = shortened_among(text, labels, |short| short.width() <= columns);
    let missing = columns.saturating_sub(out.width());
    out + &" ".repeat(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_and_filled_to_their_column() {
        assert_eq!(padded("metro", &[], 8), "metro   ");
        assert_eq!(padded("continent", &[], 5), "co…nt");
    }

    #[test]
    fn long_sentences_wrap() {
        let out = wrapped("one two three four", 9);
        assert_eq!(out, "one two\nthree\nfour\n");
    }
}
