//! The ledger's means as bars: where the time goes in each scenario, at a glance, with whiskers
//! over the whole distribution of the time that the stages add up to.

use neph_analysis::means::{Means, order};
use neph_model::StageSet;
use neph_stats::Level;

use super::Figure;
use super::boxes::in_unit;
use super::flags;
use super::legend::Swatch;
use super::sheet::{Note, Sheet, page_name, page_title};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{
    Anchor, Colour, Mark, Point, Rect, Stroke, Text, Weight, fit_among, text_width,
};
use neph_analysis::latencies::Latencies;
use neph_analysis::numbers::{TimeUnit, millis};
use neph_analysis::{CampaignData, PlotSettings};

const ROW_HEIGHT: f64 = 24.0;
const MAX_LABEL_WIDTH: f64 = 290.0;
const SHARES_WIDTH: f64 = 170.0;
const NUMBERS_WIDTH: f64 = 62.0;
const PER_PAGE: usize = 30;

/// One scenario's row.
struct Row {
    scenario: usize,
    means: Means,
    responses: Latencies,
}

pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let rows: Vec<Row> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| row(data, settings, scenario))
        .collect();
    let max_mean = rows.iter().map(|row| row.means.total).fold(0.0, f64::max);
    let max_whisker = rows
        .iter()
        .filter_map(|row| whisker(&row.responses))
        .map(|(_, high)| high)
        .fold(0.0, f64::max);
    // Whiskers may be cut off (and then say so), bars never are.
    let scale = Scale::linear(0.0, max_whisker.min(max_mean * 1.6).max(max_mean * 1.04));
    let max_label_width = rows
        .iter()
        .map(|row| text_width(&data.label(row.scenario), Style::TICK, Weight::Regular))
        .fold(0.0, f64::max);
    let labels = (max_label_width + 26.0).min(MAX_LABEL_WIDTH);
    let total = rows.len().div_ceil(PER_PAGE);
    rows.chunks(PER_PAGE)
        .enumerate()
        .map(|(page, rows)| {
            let title = page_title("Stages of the response time", page, total);
            let subtitle = "Mean time of each stage over all replies, from the scheduled send time. Left: times. Right: shares";
            let mut sheet = Sheet::new(title, subtitle);
            sheet.legend(&legend(rows.iter().map(|row| &row.means)));
            #[expect(clippy::cast_precision_loss, reason = "a few rows")]
            let frame = sheet.take(rows.len() as f64 * ROW_HEIGHT + 4.0);
            sheet.take(Style::X_AXIS_HEIGHT);
            let painter = Painter { data, settings, frame, scale, labels };
            sheet.draw(painter.axes());
            for (index, row) in rows.iter().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "a few rows")]
                let middle = frame.y + (index as f64 + 0.5) * ROW_HEIGHT + 2.0;
                sheet.draw(painter.row(row, middle));
            }
            let mut notes = vec![Note::plain("Number: mean response time. Thin line below a bar: 5th to 95th percentile of the response time, with a tick at the median. Arrow: the percentile is beyond the axis, or unknown because of messages without an answer. Hatched: merged stages, because a timestamp between them is missing.")];
            notes.extend(flags::notes(data, rows.iter().map(|row| row.scenario), settings));
            sheet.finish("ledger-bars", page_name("ledger-bars", page, total), &notes)
        })
        .collect()
}

fn row(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Option<Row> {
    let means = Means::of(data.main_flows(scenario, settings))?;
    let flows = data.main_flows(scenario, settings);
    Some(Row {
        scenario,
        means,
        responses: Latencies::of(flows, neph_analysis::Basis::Response),
    })
}

/// The entries that occur, in order of time.
pub(crate) fn legend<'a>(means: impl Iterator<Item = &'a Means>) -> Vec<(Swatch, String)> {
    let mut sets: Vec<StageSet> = means
        .flat_map(|means| means.entries.iter().map(|(set, _)| *set))
        .collect();
    sets.sort_by_key(|set| order(*set));
    sets.dedup();
    sets.into_iter()
        .map(|set| (Swatch::Entry(set), set.to_string()))
        .collect()
}

/// 5th and 95th percentile, infinite where unanswered messages decide; the ends where there are too
/// few messages for percentiles.
fn whisker(responses: &Latencies) -> Option<(f64, f64)> {
    let values = responses.sorted().values();
    let (first, last) = (*values.first()?, *values.last()?);
    let at = |p: f64, end: f64| {
        let quantile = responses.quantile(p);
        quantile.map_or(end, |level| level.number().unwrap_or(f64::INFINITY))
    };
    let end = match responses.unanswered() {
        0 => last,
        _ => f64::INFINITY,
    };
    Some((at(0.05, first), at(0.95, end)))
}

struct Painter<'a> {
    data: &'a CampaignData,
    settings: &'a PlotSettings,
    frame: Rect,
    scale: Scale,
    /// How wide the column of labels is.
    labels: f64,
}

impl Painter<'_> {
    fn bars(&self) -> Plot {
        let unit = TimeUnit::up_to(self.scale.high);
        let width = self.frame.width - self.labels - NUMBERS_WIDTH - SHARES_WIDTH;
        Plot {
            area: Rect::new(
                self.frame.x + self.labels,
                self.frame.y,
                width,
                self.frame.height,
            ),
            x: in_unit(self.scale, unit),
            y: Scale::linear(0.0, 1.0),
        }
    }

    fn shares(&self) -> Plot {
        let x = self.frame.right() - SHARES_WIDTH;
        Plot {
            area: Rect::new(x, self.frame.y, SHARES_WIDTH - 8.0, self.frame.height),
            x: Scale::linear(0.0, 100.0),
            y: Scale::linear(0.0, 1.0),
        }
    }

    fn axes(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        let unit = TimeUnit::up_to(self.scale.high);
        self.bars()
            .x_axis(&mut marks, &format!("mean time, {}", unit.name()));
        self.shares().x_axis(&mut marks, "share, %");
        marks
    }

    fn row(&self, row: &Row, middle: f64) -> Vec<Mark> {
        let mut marks = self.label(row, middle);
        let unit = TimeUnit::up_to(self.scale.high);
        let (bars, shares) = (self.bars(), self.shares());
        let (mut time, mut share) = (0.0, 0.0);
        for ((set, mean), part) in row.means.entries.iter().zip(row.means.percents()) {
            // A wrong clock can make an entry negative; a bar cannot be.
            let mean = mean.max(0.0);
            let from_to = |plot: &Plot, from: f64, to: f64| {
                let (left, right) = (plot.x_px(from), plot.x_px(to));
                Rect::new(left, middle - 8.0, right - left, 11.0)
            };
            let wide = from_to(
                &bars,
                time * unit.per_milli(),
                (time + mean) * unit.per_milli(),
            );
            marks.extend(palette::entry_area(*set, wide.corners()));
            let wide = from_to(&shares, share, share + part);
            marks.extend(palette::entry_area(*set, wide.corners()));
            time += mean;
            share += part;
        }
        marks.extend(self.whiskers(row, middle + 7.0));
        let end = bars.x_px(time * unit.per_milli());
        let at = Point::new(end + 5.0, middle + 1.5);
        let number = Text::new(at, Anchor::Start, Style::TICK, millis(row.means.total));
        marks.push(Mark::Text(number));
        marks
    }

    fn label(&self, row: &Row, middle: f64) -> Vec<Mark> {
        let right = self.frame.x + self.labels - 10.0;
        let name = fit_among(
            &self.data.label(row.scenario),
            &self.data.labels(),
            Style::TICK,
            self.labels - 24.0,
        );
        let at = Point::new(right, middle + 1.5);
        let label = Text::new(at, Anchor::End, Style::TICK, name);
        let mut marks = Vec::new();
        if flags::has_flag(self.data, row.scenario, self.settings) {
            let foot = Point::new(right - label.width() - 12.0, middle + 1.5);
            marks.push(flags::marker(foot));
        }
        marks.push(Mark::Text(label));
        marks
    }

    fn whiskers(&self, row: &Row, y: f64) -> Vec<Mark> {
        let Some((low, high)) = whisker(&row.responses) else {
            return Vec::new();
        };
        let plot = self.bars();
        let x_px = |value: f64| plot.area.x + self.scale.clamped_share(value) * plot.area.width;
        let stroke = Stroke::solid(Colour::INK, 1.0);
        let mut marks = vec![Mark::line(
            Point::new(x_px(low), y),
            Point::new(x_px(high), y),
            stroke,
        )];
        let mut tick = |value: f64, half: f64| {
            let x = x_px(value);
            marks.push(Mark::line(
                Point::new(x, y - half),
                Point::new(x, y + half),
                stroke,
            ));
        };
        if self.scale.share(low) <= 1.0 {
            tick(low, 2.0);
        }
        if let Some(Level::At(middle)) = row.responses.median() {
            tick(middle, 3.0);
        }
        if self.scale.share(high) <= 1.0 {
            tick(high, 2.0);
        } else {
            let end = plot.area.right();
            for half in [-2.5, 2.5] {
                let from = Point::new(end - 4.0, y + half);
                marks.push(Mark::line(from, Point::new(end, y), stroke));
            }
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use neph_analysis::data::FlowData;
    use std::net::SocketAddr;

    use neph_model::{
        Flow, FlowIndex, FlowRole, Instant, Marks, Message, Outcome, ProbeKind, Seq, Stage,
    };

    use super::*;

    /// Every tenth message opens a connection, which takes 900 of its 1000 us. Every third has no timestamp
    /// of the peer's kernel.
    fn flow() -> FlowData {
        let messages = (0..90_u64).map(|seq| {
            let at = |micros: i64| Some(Instant::from_nanos(micros * 1000));
            let mut marks = Marks::intended_at(Instant::from_nanos(0));
            let from = if seq % 10 == 0 { 900 } else { 0 };
            if from > 0 {
                (marks.dialled, marks.connected, marks.opened) = (at(0), at(100), at(from));
            }
            (marks.app_send, marks.queued, marks.nic_tx) = (at(from), at(from + 1), at(from + 2));
            let peer = |micros: i64| Some(Instant::from_nanos(micros * 1000));
            marks.peer.rx = peer(50).filter(|_| seq % 3 > 0);
            (marks.peer.app_rx, marks.peer.app_tx) = (peer(60), peer(80));
            (marks.nic_rx, marks.app_recv) = (at(from + 95), at(from + 100));
            let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
            message.outcome = Outcome::Reply;
            message
        });
        let mut flow = FlowData::new(Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Http,
            name: "metro".into(),
            source: None,
            target: SocketAddr::new([192, 0, 2, 7].into(), 8080),
            reflector: true,
            same_clock: true,
        });
        flow.add(&messages.collect::<Vec<_>>());
        flow
    }

    #[test]
    fn shares_add_up_if_only_some_messages_have_an_entry() {
        let flow = flow();
        let means = Means::of([&flow]).expect("replies");
        let sum: f64 = means.entries.iter().map(|(_, mean)| mean).sum();
        assert!((sum - means.total).abs() < 1e-12, "{means:?}");
        let percents = means.percents();
        assert!(
            (percents.iter().sum::<f64>() - 100.0).abs() < 1e-9,
            "{percents:?}"
        );
        // 9 handshakes of 800 us in 9 times 1000 and 81 times 100 us.
        let handshake = StageSet::only(Stage::Handshake);
        let index = means.entries.iter().position(|(set, _)| *set == handshake);
        let share = percents[index.expect("an entry")];
        assert!((share - 7200.0 / 171.0).abs() < 1e-9, "{share}");
        let invalid = Means {
            entries: vec![(handshake, -1.0), (StageSet::only(Stage::Network), 3.0)],
            total: 2.0,
        };
        assert_eq!(invalid.percents(), [0.0, 100.0]);
    }

    #[test]
    fn a_whisker_among_lost_messages_is_infinite() {
        let ends = |lost: usize| whisker(&Latencies::answered(1..=100, lost)).unwrap();
        assert!(ends(0).1 < 96.0);
        assert!(ends(10).1.is_infinite());
        assert!(ends(10).0 < 7.0);
    }
}
