//! How long it is from a flow's path change to its next.

use super::clock::exact_text;
use super::curves::{
    ShownShare, any_ended, band_text, colours_text, draw as draw_curves, legend, lines,
    missing_lines_text, scale,
};
use super::percent_axis::LEFT;
use crate::axis::Style;
use crate::figure::sheet::{Note, Sheet};
use crate::figure::{Figure, flags};
use crate::scene::Rect;
use neph_analysis::fleet::{pairs, scenarios};
use neph_analysis::{CampaignData, PlotSettings};

const HEIGHT: f64 = 260.0;

/// One figure over all pairs; nothing where no flow moved twice.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let pairs = pairs(data, settings);
    let lines = lines(&pairs, |pair| pair.pair_view.between.as_ref());
    let Some(first) = pairs.first().filter(|_| any_ended(&lines)) else {
        return Vec::new();
    };
    let soon = first.view.settings.soon;
    let subtitle =
        "Share of path changes after which the same flow changes again within the time on the axis";
    let mut sheet = Sheet::new("Time between path changes".to_owned(), subtitle);
    sheet.legend(&legend(&lines, soon, "moved again"));
    let frame = sheet.take(HEIGHT + 24.0 + Style::X_AXIS_HEIGHT);
    let width = frame.width - LEFT - 10.0;
    let area = Rect::new(frame.x + LEFT, frame.y + 18.0, width, HEIGHT);
    let x = scale(&lines, soon);
    sheet.draw(draw_curves(&lines, ShownShare::Ended, area, x, soon));
    let text = format!(
        "A line that rises early is a pair whose flows move again soon; the study Path Persistence in the Cloud (2020) found 40 % within 10 s. n counts path changes. Flows that had not moved again at the end are censored (Kaplan-Meier), so a line may end below 100 %. Dashed vertical line: {}.{}{}{}",
        exact_text(soon),
        band_text(&lines),
        colours_text(&lines),
        missing_lines_text(&pairs, &lines, "path changes")
    );
    let mut notes = vec![Note::plain(text)];
    notes.extend(flags::notes(data, scenarios(&pairs), settings));
    vec![sheet.finish("flow-changes", "flow-changes".to_owned(), &notes)]
}
