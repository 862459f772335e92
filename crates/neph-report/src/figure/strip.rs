//! A strip of time: a scenario's blocks side by side, each with its own time from its start, and
//! the panel titles that figures over time share.

use super::flags;
use super::sheet::WIDTH;
use crate::axis::{Scale, Style, ticks};
use crate::scene::{
    Anchor, Colour, Mark, Point, Rect, Stroke, Text, Weight, fit_among, text_width,
};
use neph_analysis::clock_time::{ClockTimes, clock_ticks};
use neph_analysis::data::ExperimentData;
use neph_analysis::text::to_f64;
use neph_analysis::view::Group;
use neph_analysis::{CampaignData, PlotSettings};

/// Pixels between two blocks.
const BLOCK_GAP: f64 = 5.0;

/// One block's part of the strip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) experiment: &'a ExperimentData,
    /// Left edge and width in pixels.
    pub(crate) x: f64,
    pub(crate) width: f64,
    /// How long the experiment took, in seconds.
    pub(crate) seconds: f64,
}

impl Segment<'_> {
    /// Where a moment, in nanoseconds since the experiment's start, lies.
    pub(crate) fn x_px(&self, nanos: i64) -> f64 {
        self.x + (seconds(nanos) / self.seconds).clamp(0.0, 1.0) * self.width
    }
    /// How many buckets a line over this segment is worth: one every three pixels.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width in pixels"
    )]
    pub(crate) fn buckets(&self) -> usize {
        (self.width / 3.0).ceil().max(4.0) as usize
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(nanos: i64) -> f64 {
    neph_model::Span::from_nanos(nanos).secs_f64()
}

/// The blocks of a scenario in an area, as wide as they took long.
pub(crate) fn segments<'a>(
    experiments: impl Iterator<Item = &'a ExperimentData>,
    area: Rect,
) -> Vec<Segment<'a>> {
    let durations: Vec<(&ExperimentData, f64)> = experiments
        .map(|experiment| (experiment, duration_seconds(experiment)))
        .collect();
    let total_seconds: f64 = durations.iter().map(|(_, seconds)| seconds).sum();
    #[expect(clippy::cast_precision_loss, reason = "a campaign has few blocks")]
    let gaps = durations.len().saturating_sub(1) as f64 * BLOCK_GAP;
    let total_width = (area.width - gaps).max(1.0);
    let mut x = area.x;
    durations
        .into_iter()
        .map(|(experiment, seconds)| {
            let width = total_width * seconds / total_seconds;
            let segment = Segment {
                experiment,
                x,
                width,
                seconds,
            };
            x += width + BLOCK_GAP;
            segment
        })
        .collect()
}

/// In seconds from the experiment's start, connecting included, until the message after the last one
/// of any flow would have been due.
fn duration_seconds(experiment: &ExperimentData) -> f64 {
    let ends = experiment.flows.iter().filter_map(|flow| {
        let first = seconds(flow.exchanges.first()?.intended.nanos());
        let last = seconds(flow.exchanges.last()?.intended.nanos());
        let intervals = flow.exchanges.len() - 1;
        Some(last + (last - first) / to_f64(intervals.max(1)))
    });
    ends.fold(1e-3, f64::max)
}

/// A block's length, for short ones as exact as plans write it: `0.25 s`, `2.4 s`, `3 s`, `12 s`.
fn duration_text(seconds: f64) -> String {
    let digits = match seconds {
        seconds if seconds < 1.0 => 2,
        seconds if seconds < 10.0 => 1,
        _ => 0,
    };
    let text = format!("{seconds:.digits$}");
    let text = if digits > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} s")
}

/// From so many seconds on, an axis of one block shows the time of day.
const MIN_CLOCK_AXIS_SECONDS: f64 = 600.0;

/// The strip's x axis: of one block seconds, or the time of day where it is long; of more the blocks' numbers
/// with the time at which they started.
pub(crate) fn time_axis(
    marks: &mut Vec<Mark>,
    segments: &[Segment<'_>],
    area: Rect,
    settings: &PlotSettings,
) {
    let base = area.bottom();
    for segment in segments {
        let ends = (
            Point::new(segment.x, base),
            Point::new(segment.x + segment.width, base),
        );
        marks.push(Mark::line(ends.0, ends.1, Stroke::solid(Colour::AXIS, 1.0)));
    }
    match segments {
        [only] if only.seconds < MIN_CLOCK_AXIS_SECONDS => seconds_axis(marks, only, base),
        [only] => clock_axis(marks, only, base, settings),
        several => blocks_axis(marks, several, base, settings),
    }
}

/// How times of day on strips are to be read, for a caption.
pub(crate) fn time_note(settings: &PlotSettings) -> String {
    format!(
        " Each block is labelled with its number and when the experiment started ({}); axes of one block that took {} min or more show the time of day.",
        settings.utc_offset,
        MIN_CLOCK_AXIS_SECONDS / 60.0
    )
}

fn draw_tick(marks: &mut Vec<Mark>, x: f64, base: f64, label: String) {
    let stroke = Stroke::solid(Colour::AXIS, 1.0);
    let ends = (Point::new(x, base), Point::new(x, base + 4.0));
    marks.push(Mark::line(ends.0, ends.1, stroke));
    // The last one may stand at the edge of the page.
    let half_width = text_width(&label, Style::TICK, Weight::Regular) / 2.0;
    let x = x.min(WIDTH - 2.0 - half_width);
    marks.push(Mark::Text(tick_label(x, base, label)));
}

fn seconds_axis(marks: &mut Vec<Mark>, only: &Segment<'_>, base: f64) {
    let scale = Scale::linear(0.0, only.seconds);
    let label_width = |label: &str| text_width(label, Style::TICK, Weight::Regular) + 12.0;
    for axis_tick in ticks(&scale, only.width, &label_width) {
        let x = only.x + scale.share(axis_tick.value) * only.width;
        draw_tick(marks, x, base, format!("{} s", axis_tick.label));
    }
}

/// Each tick has room for its label.
const CLOCK_TICK_WIDTH: f64 = 70.0;

fn clock_axis(marks: &mut Vec<Mark>, only: &Segment<'_>, base: f64, settings: &PlotSettings) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width in pixels"
    )]
    let max_ticks = (only.width / CLOCK_TICK_WIDTH).max(2.0) as usize;
    let started = only.experiment.experiment.started;
    for axis_tick in clock_ticks(started, only.seconds, settings.utc_offset, max_ticks) {
        let x = only.x + axis_tick.at / only.seconds * only.width;
        draw_tick(marks, x, base, axis_tick.label);
    }
}

fn blocks_axis(
    marks: &mut Vec<Mark>,
    segments: &[Segment<'_>],
    base: f64,
    settings: &PlotSettings,
) {
    let experiments = segments.iter().map(|segment| segment.experiment);
    let times = ClockTimes::of(experiments, settings.utc_offset);
    let labels = |segment: &Segment<'_>| {
        let (number, start_time) = (
            segment.experiment.block(),
            times.label(segment.experiment.experiment.started),
        );
        [
            format!(
                "block {number}, {start_time}, {}",
                duration_text(segment.seconds)
            ),
            format!("block {number}, {start_time}"),
            format!("{number}, {start_time}"),
        ]
    };
    let fits = |text: &str, segment: &Segment<'_>| {
        text_width(text, Style::TICK, Weight::Regular) <= segment.width - 4.0
    };
    let has_room_for = |form: &usize| {
        segments
            .iter()
            .all(|segment| fits(&labels(segment)[*form], segment))
    };
    // The shortest one stands under as many blocks as have room.
    let form = (0..2).find(has_room_for).unwrap_or(2);
    let mut free_from = f64::NEG_INFINITY;
    for segment in segments {
        let text = labels(segment)[form].clone();
        let half_width = text_width(&text, Style::TICK, Weight::Regular) / 2.0;
        let middle = segment.x + segment.width / 2.0;
        let middle = middle.min(WIDTH - 2.0 - half_width);
        if middle - half_width > free_from {
            free_from = middle + half_width + 8.0;
            marks.push(Mark::Text(tick_label(middle, base, text)));
        }
    }
}

fn tick_label(x: f64, base: f64, text: String) -> Text {
    let position = Point::new(x, base + 14.0);
    Text::new(position, Anchor::Middle, Style::TICK, text).coloured(Colour::FAINT_INK)
}

/// A scenario's label above its panel, a flag if it is flagged, and at the right end what lies
/// outside the panel.
pub(crate) fn panel_title(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    frame: Rect,
    notes: &TitleNotes,
) -> Vec<Mark> {
    let state = PanelState::of(data, settings, &[scenario]);
    let label = data.label(scenario);
    title_marks(&label, &data.labels(), state, frame, notes)
}

/// The notes at the right end of a panel's title.
#[derive(Clone, Debug, Default)]
pub(crate) struct TitleNotes {
    /// A number about what is shown.
    pub(crate) plain: String,
    /// What lies outside of the panel.
    pub(crate) outside: String,
}

impl TitleNotes {
    /// Only what lies outside.
    pub(crate) fn outside(outside: String) -> Self {
        let plain = String::new();
        Self { plain, outside }
    }
}

/// `2 above, max 605 µs` as `2↑ 605 µs`, for a title that would be cut otherwise.
fn with_arrows(outside: &str) -> String {
    outside
        .replace(" above, max ", "↑ ")
        .replace(" below, min ", "↓ ")
}

/// Whether a panel rests on a flagged experiment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanelState {
    Unflagged,
    Flagged,
}

impl PanelState {
    fn of(data: &CampaignData, settings: &PlotSettings, scenarios: &[usize]) -> Self {
        if scenarios
            .iter()
            .any(|index| flags::has_flag(data, *index, settings))
        {
            Self::Flagged
        } else {
            Self::Unflagged
        }
    }

    /// Of all scenarios of a group.
    pub(crate) fn of_group(data: &CampaignData, settings: &PlotSettings, group: &Group) -> Self {
        let members: Vec<usize> = group.members.iter().map(|(index, _)| *index).collect();
        Self::of(data, settings, &members)
    }
}

/// The title of a panel; `titles`: those of all panels of the figure.
pub(crate) fn title_marks(
    text: &str,
    titles: &[String],
    state: PanelState,
    frame: Rect,
    notes: &TitleNotes,
) -> Vec<Mark> {
    let y = frame.y + 13.0;
    let note_text = |right: f64, text: &str, colour: Colour| {
        Text::new(Point::new(right, y), Anchor::End, Style::NOTE, text).coloured(colour)
    };
    let plain = note_text(frame.right(), &notes.plain, Colour::FAINT_INK);
    let gap = if notes.plain.is_empty() { 0.0 } else { 8.0 };
    let end = frame.right() - plain.width() - gap;
    let mut outside = note_text(end, &notes.outside, Colour::ALARM);
    let full_width = text_width(text, 10.0, Weight::SemiBold) + 28.0;
    if full_width > frame.width - plain.width() - outside.width() {
        outside = note_text(end, &with_arrows(&notes.outside), Colour::ALARM);
    }
    let max_width = frame.width - plain.width() - outside.width() - 28.0;
    // A long label is set smaller before it is cut.
    let size = if text_width(text, Style::TITLE, Weight::SemiBold) > max_width {
        10.0
    } else {
        Style::TITLE
    };
    let text = fit_among(text, titles, size, max_width / 1.04);
    let name = Text::new(Point::new(frame.x, y), Anchor::Start, size, text).semibold();
    let mut marks = Vec::new();
    if state == PanelState::Flagged {
        marks.push(flags::marker(Point::new(frame.x + name.width() + 6.0, y)));
    }
    marks.push(Mark::Text(name));
    let note_texts = [plain, outside]
        .into_iter()
        .filter(|note| !note.text.is_empty());
    marks.extend(note_texts.map(Mark::Text));
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_of_a_block_is_as_exact_as_a_plan_writes_it() {
        let lengths = [0.25, 0.5, 2.4, 2.999, 12.4, 600.0].map(duration_text);
        assert_eq!(
            lengths,
            ["0.25 s", "0.5 s", "2.4 s", "3 s", "12 s", "600 s"]
        );
    }
}
