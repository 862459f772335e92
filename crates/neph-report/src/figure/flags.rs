//! Flags: warnings, visible in every figure that is made from a flagged experiment.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

use neph_model::Warning;

use super::sheet::Note;
use crate::scene::{Colour, Fill, Mark, Point};
use crate::{CampaignData, PlotSettings};

/// At most this many warnings are spelled out below a figure; the report's text has all.
const SPELLED_OUT: usize = 6;

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
pub(crate) fn flagged(data: &CampaignData, scenario: usize, settings: &PlotSettings) -> bool {
    !data.flags(scenario, settings).is_empty()
}

/// The warnings of the scenarios on a page, the same warning of several blocks in one line.
pub(crate) fn notes(
    data: &CampaignData,
    scenarios: impl IntoIterator<Item = usize>,
    settings: &PlotSettings,
) -> Vec<Note> {
    let mut lines: Vec<(String, Vec<u32>)> = Vec::new();
    for scenario in scenarios {
        let label = data.scenarios[scenario].label();
        let mut kinds: HashMap<Discriminant<Warning>, usize> = HashMap::new();
        for (block, warning) in data.flags(scenario, settings) {
            let line = *kinds.entry(discriminant(warning)).or_insert_with(|| {
                lines.push((format!("{label}: {warning}"), Vec::new()));
                lines.len() - 1
            });
            lines[line].1.push(block);
        }
    }
    let more = lines.len().saturating_sub(SPELLED_OUT);
    let mut notes: Vec<Note> = lines
        .into_iter()
        .take(SPELLED_OUT)
        .map(|(text, blocks)| flag_note(&text, &blocks))
        .collect();
    if more > 0 {
        notes.push(flag_note(
            &format!("and {more} more warnings, see the report"),
            &[],
        ));
    }
    notes
}

fn flag_note(text: &str, blocks: &[u32]) -> Note {
    let numbers: Vec<String> = blocks.iter().map(u32::to_string).collect();
    let blocks = match blocks {
        [] => String::new(),
        [one] => format!(" (block {one})"),
        [first, ..] => format!(" (block {first}; likewise in {})", numbers[1..].join(", ")),
    };
    // Non-breaking spaces leave room for the marker.
    Note {
        text: format!("\u{a0}\u{a0}\u{a0}\u{a0}\u{a0}{text}{blocks}"),
        flagged: true,
    }
}
