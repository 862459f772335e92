//! Flags: warnings, visible in every figure that is made from a flagged experiment.

use std::mem::{Discriminant, discriminant};

use super::sheet::Note;
use crate::scene::{Colour, Fill, Mark, Point};
use neph_analysis::discarded_changes;
use neph_analysis::numbers::with_micro_signs;
use neph_analysis::text::first_few;
use neph_analysis::{CampaignData, PlotSettings};
use neph_model::Warning;

/// Up to this many warnings are spelled out below a figure one by one; of more, each kind is.
const MAX_SPELLED_OUT: usize = 6;

/// A small pennant whose foot stands on a text's base line at `at`; it takes 9 pixels.
pub(crate) fn marker(at: Point) -> Mark {
    let corner = |x: f64, y: f64| Point::new(at.x + x, at.y - y);
    Mark::Area {
        points: vec![
            corner(0.0, -0.5),
            corner(0.0, 8.5),
            corner(8.0, 5.75),
            corner(1.4, 3.0),
            corner(1.4, -0.5),
        ],
        fill: Fill::solid(Colour::ALARM),
    }
}

/// Whether any experiment behind a scenario's marks is flagged.
pub(crate) fn has_flag(data: &CampaignData, scenario: usize, settings: &PlotSettings) -> bool {
    !data.flags(scenario, settings).is_empty()
}

/// A scenario's warnings of one kind.
struct WarningLine {
    kind: Discriminant<Warning>,
    label: String,
    warning: String,
    blocks: Vec<u32>,
}

/// The warnings of the scenarios on a page, the same warning of several blocks in one line; where
/// they are many, the same warning of several scenarios too.
pub(crate) fn notes(
    data: &CampaignData,
    scenarios: impl IntoIterator<Item = usize>,
    settings: &PlotSettings,
) -> Vec<Note> {
    let scenarios: Vec<usize> = scenarios.into_iter().collect();
    let lines: Vec<WarningLine> = scenarios
        .iter()
        .flat_map(|scenario| lines_of(data, *scenario, settings))
        .collect();
    let discarded_note = discarded_changes::note(data, scenarios, settings).map(|text| Note {
        text,
        is_flag: true,
    });
    let shared_label = data.shared_label().map(Note::plain);
    let flags = notes_of_lines(&lines).into_iter().chain(discarded_note);
    shared_label.into_iter().chain(flags).collect()
}

fn notes_of_lines(lines: &[WarningLine]) -> Vec<Note> {
    if lines.len() <= MAX_SPELLED_OUT {
        return lines.iter().map(|line| flag_note(line, &[])).collect();
    }
    let mut kinds: Vec<Vec<&WarningLine>> = Vec::new();
    for line in lines {
        match kinds.iter_mut().find(|group| group[0].kind == line.kind) {
            Some(group) => group.push(line),
            None => kinds.push(vec![line]),
        }
    }
    let note = |identical: &Vec<&WarningLine>| flag_note(identical[0], &identical[1..]);
    kinds.iter().map(note).collect()
}

fn lines_of(data: &CampaignData, scenario: usize, settings: &PlotSettings) -> Vec<WarningLine> {
    let mut lines: Vec<WarningLine> = Vec::new();
    for (block, warning) in data.flags(scenario, settings) {
        let kind = discriminant(warning);
        match lines.iter_mut().find(|line| line.kind == kind) {
            Some(line) => line.blocks.push(block),
            None => lines.push(WarningLine {
                kind,
                label: data.label(scenario),
                warning: with_micro_signs(&warning.to_string()),
                blocks: vec![block],
            }),
        }
    }
    lines
}

/// One line, with the other scenarios that have the same warning.
fn flag_note(line: &WarningLine, others: &[&WarningLine]) -> Note {
    let numbers: Vec<String> = line.blocks.iter().map(u32::to_string).collect();
    let blocks = match line.blocks.as_slice() {
        [] => String::new(),
        [block] => format!(" (block {block})"),
        [first, ..] => format!(" (block {first}; likewise in {})", numbers[1..].join(", ")),
    };
    let mut text = format!("{}: {}{blocks}", line.label, line.warning);
    if !others.is_empty() {
        let labels: Vec<&str> = others.iter().map(|other| other.label.as_str()).collect();
        text.push_str(&format!("; likewise {}", first_few(&labels)));
    }
    // Non-breaking spaces leave room for the marker.
    Note {
        text: format!("\u{a0}\u{a0}\u{a0}\u{a0}\u{a0}{text}"),
        is_flag: true,
    }
}
