//! What a fleet's figures and tables say where something is missing: flows that got nothing back, and
//! the oldest changes, which were too many to keep.

use neph_analysis::{CampaignData, Cell, PlotSettings, findings, tables};
use neph_flows::{Curve, CurvePoint, Latency};
use neph_model::Span;
use neph_report::{Figure, Mark, Point, Rect};

use crate::fleets::{SMALL, draw_figures, figure_texts};
use crate::synthetic::fleet::{FleetModel, PathStability};

#[test]
fn figures_and_tables_without_discarded_data_have_a_note() {
    let mut data = SMALL.campaign();
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    fleet.pairs[0].forgotten = Some(fleet.from + Span::from_secs(100));
    for bin in fleet.latency_bins[0].iter_mut().take(5) {
        (bin.changes, bin.base) = (None, None);
    }
    let settings = PlotSettings::default();
    let figures = draw_figures(&data);
    for kind in ["flow-spectrum", "flow-changes", "flow-moved"] {
        let figure_text = figure_texts(&figures, kind).replace('\n', " ");
        assert!(
            figure_text.contains("the beginning is missing"),
            "{kind}: {figure_text}"
        );
        assert!(
            figure_text.contains("block 1: 100.000 s"),
            "{kind}: {figure_text}"
        );
    }
    for table in tables(&data, &settings) {
        let wording = table
            .notes
            .iter()
            .any(|note| note.contains("missing, which does not mean"));
        let lacks = table.name.starts_with("flow-") && table.name != "flow-loss";
        assert_eq!(wording, lacks, "{}", table.name);
    }
    let actual = findings(&data, &settings);
    assert!(
        actual
            .iter()
            .any(|finding| finding.text.contains("older ones were discarded"))
    );
}

/// 128 flows, nine of which are lost in every bin: so are p95, p99 and the slowest.
fn campaign_with_nine_lost_flows() -> CampaignData {
    let fleet_model = FleetModel {
        flows: 128,
        ..SMALL
    };
    let mut data = fleet_model.campaign();
    let fleet = data.experiments[0].fleet.as_mut().expect("a fleet");
    for bin in &mut fleet.latency_bins[0] {
        bin.lost = 9;
        bin.latency[2..].fill(Latency::Lost);
    }
    data
}

/// A panel of the unfairness figure.
struct Panel {
    right: f64,
    top: f64,
    bottom: f64,
    /// The corners of the grey.
    grey: Vec<Point>,
    lines: Vec<Vec<Point>>,
}

impl Panel {
    /// Over time, then over bins.
    fn all(figures: &[Figure]) -> Vec<Self> {
        let figure = figures.iter().find(|figure| figure.kind == "flow-fairness");
        let marks = figure.expect("it is drawn").scene.marks.iter();
        let panel = |mark: &Mark| match mark {
            Mark::Clip { within, marks } => Some(Self::of(within, marks)),
            _ => None,
        };
        marks.filter_map(panel).collect()
    }

    fn of(within: &[Point], marks: &[Mark]) -> Self {
        let ends = |of: fn(&Point) -> f64| {
            let values = || within.iter().map(of);
            let low = values().fold(f64::INFINITY, f64::min);
            (low, values().fold(f64::NEG_INFINITY, f64::max))
        };
        let ((_, right), (top, bottom)) = (ends(|point| point.x), ends(|point| point.y));
        let mut panel = Self {
            right,
            top,
            bottom,
            grey: Vec::new(),
            lines: Vec::new(),
        };
        for mark in marks {
            match mark {
                Mark::Area { points, .. } => panel.grey.extend(points),
                Mark::Line { points, .. } => panel.lines.push(points.clone()),
                _ => {}
            }
        }
        panel
    }
}

#[test]
fn quantiles_lost_in_every_bin_are_drawn_above_the_plot() {
    let figures = draw_figures(&campaign_with_nine_lost_flows());
    let [over_time, over_bins] = &Panel::all(&figures)[..] else {
        panic!("two panels");
    };
    let is_above = |points: &[Point]| points.iter().all(|point| point.y < over_time.top);
    let is_inside = |point: &Point| (over_time.top..=over_time.bottom).contains(&point.y);
    let [lost, median] = &over_time.lines[..] else {
        panic!("p95 below p50");
    };
    assert!(is_above(lost), "{lost:?} against {}", over_time.top);
    assert!(median.iter().all(is_inside), "{median:?}");
    let (highest, lowest) = over_time.grey.split_at(over_time.grey.len() / 2);
    assert!(is_above(highest) && lowest.iter().all(is_inside));

    // Over bins no value holds any share of the lost: the grey reaches from the lowest to the right.
    let mut corners = over_bins.grey.iter();
    let corner = Point::new(over_bins.right, over_bins.bottom);
    assert!(
        corners.any(|point| *point == corner),
        "{:?}",
        over_bins.grey
    );
    let full = Point::new(over_bins.right, over_bins.top);
    assert!(over_bins.grey.contains(&full), "{:?}", over_bins.grey);
}

#[test]
fn bins_with_too_few_flows_for_a_quantile_are_in_neither_its_number_nor_its_line() {
    let fleet_model = FleetModel {
        flows: 128,
        ..SMALL
    };
    let mut data = fleet_model.campaign();
    let words_of_all = figure_texts(&draw_figures(&data), "flow-fairness");
    assert!(
        words_of_all.contains("128 flows, 15 bins"),
        "{words_of_all}"
    );
    // Flows that end one after the other: ten bins lack flows for p95, three of these for p50.
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    for (index, bin) in fleet.latency_bins[0].iter_mut().skip(5).enumerate() {
        bin.flows = if index < 7 { 58 } else { 5 };
        bin.latency[2..].fill(Latency::Took(Span::from_secs(1)));
    }
    for bin in fleet.latency_bins[0].iter_mut().take(5) {
        bin.latency[1] = Latency::Took(Span::from_millis(100));
        bin.latency[2] = Latency::Took(Span::from_millis(112));
    }
    let figures = draw_figures(&data);
    let figure_text = figure_texts(&figures, "flow-fairness");
    assert!(
        figure_text.contains("p95 12 % above p50; 128 flows, 5 bins"),
        "{figure_text}"
    );
    let panels = Panel::all(&figures);
    let [p95, p50] = &panels[0].lines[..] else {
        panic!("p95 below p50");
    };
    assert_eq!(
        (p95.len(), p50.len()),
        (2 * 5, 2 * 12),
        "two ends of each bin"
    );
}

#[test]
fn a_quantile_that_falls_on_lost_flows_is_lost_and_no_number() {
    let data = campaign_with_nine_lost_flows();
    let tables = tables(&data, &PlotSettings::default());
    let pairs = tables
        .iter()
        .find(|table| table.name == "flow-pairs")
        .unwrap();
    let actual = ["p95_ms", "most_lost_flows"].map(|name| {
        let index = pairs.columns.iter().position(|column| column.0 == name);
        pairs.rows[0][index.unwrap()].clone()
    });
    assert_eq!(actual, [Cell::Censored("lost"), Cell::Integer(9)]);
    let figure_text = figure_texts(&draw_figures(&data), "flow-fairness");
    assert!(
        figure_text.contains("p95 lost; 128 flows, 15 bins"),
        "{figure_text}"
    );
}

/// A pair's curve of stays of which none ended.
fn curve_without_leaves(n: u64) -> Curve {
    let point_after_gap = CurvePoint {
        at: Span::from_secs(200),
        surviving: 1.0,
        low: 0.4,
        high: 1.0,
        at_risk: 1,
    };
    Curve {
        n,
        ended: 0,
        points: vec![point_after_gap],
    }
}

#[test]
fn a_pair_without_path_changes_is_drawn_with_the_others() {
    let fleet_model = FleetModel {
        flows: 64,
        pairs: 2,
        ..SMALL
    };
    let mut data = fleet_model.campaign();
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    fleet.pairs[1].persistence = Some(curve_without_leaves(7));
    fleet.pairs[1].between = Some(curve_without_leaves(7));
    for pair in &mut fleet.pairs {
        pair.persistence_forward = Some(curve_without_leaves(3));
        pair.persistence_reverse = None;
    }
    let figures = draw_figures(&data);
    let actual = figure_texts(&figures, "flow-persistence");
    for line in [
        "sydney-tokyo: 0 % left within 10 s (0 % to 60 %), n 7",
        "n 6, none moved again",
        "no change of this direction is known",
    ] {
        assert!(actual.contains(line), "{line} in {actual}");
    }
    let actual = figure_texts(&figures, "flow-changes");
    assert!(
        actual.contains("sydney-tokyo: 0 % moved again within 10 s (0 % to 60 %), n 7"),
        "{actual}"
    );
    // Where nobody left any pair there is nothing to say of how long flows stay.
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    fleet.pairs[0].persistence = Some(curve_without_leaves(7));
    fleet.pairs[0].between = Some(curve_without_leaves(7));
    let figures = draw_figures(&data);
    assert_eq!(figure_texts(&figures, "flow-persistence"), "");
    assert_eq!(figure_texts(&figures, "flow-changes"), "");
}

/// The rectangles of cells outside of the panels of a kind of figure.
fn cell_rects(figures: &[Figure], kind: &str) -> Vec<Rect> {
    let of_kind = figures.iter().filter(|figure| figure.kind == kind);
    let marks = of_kind.flat_map(|figure| &figure.scene.marks);
    let rects = marks.filter_map(|mark| match mark {
        Mark::Cells { rects, .. } => Some(rects.clone()),
        _ => None,
    });
    rects.flatten().collect()
}

#[test]
fn bins_that_fall_on_lost_flows_are_marked_above_the_panel() {
    let mut data = campaign_with_nine_lost_flows();
    let complete = draw_figures(&data);
    let lost_cells = cell_rects(&complete, "flow-fairness");
    // The grey of the highest flow, and p95; p99 is not drawn of 128 flows, and p50 is not lost.
    assert_eq!(lost_cells.len(), 2, "{lost_cells:?}");
    let panel = &Panel::all(&complete)[0];
    assert!(lost_cells.iter().all(|rect| rect.bottom() <= panel.top));
    assert!(figure_texts(&complete, "flow-fairness").contains("lost"));
    // A stretch of its own for each time that it falls on lost flows.
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    for bin in &mut fleet.latency_bins[0][4..7] {
        bin.latency[2..].fill(Latency::Took(Span::from_millis(90)));
    }
    let figures_with_gaps = draw_figures(&data);
    let cells_with_gap = cell_rects(&figures_with_gaps, "flow-fairness");
    assert_eq!(cells_with_gap.len(), 4);
    assert!(
        cells_with_gap
            .iter()
            .all(|part| part.width < lost_cells[0].width)
    );
    // Where none is lost nothing is said of it.
    let figures = draw_figures(&SMALL.campaign());
    assert_eq!(cell_rects(&figures, "flow-fairness"), []);
    assert!(!figure_texts(&figures, "flow-fairness").contains("lost"));
}

#[test]
fn a_week_of_short_queues_is_no_more_bars_than_pixels() {
    let fleet_model = FleetModel {
        seconds: 604_800,
        stability: PathStability::Stable,
        ..SMALL
    };
    let mut data = fleet_model.campaign();
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    let queue = |number: i64| {
        let from = fleet.from + Span::from_millis(number * 9_228);
        (from, from + Span::from_secs(2))
    };
    let queues: Vec<_> = (0..65_536).map(queue).collect();
    fleet.pairs[0].congested.clear();
    let without = draw_figures(&data);
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    fleet.pairs[0].congested = queues;
    let with = draw_figures(&data);
    let bars =
        cell_rects(&with, "flow-spectrum").len() - cell_rects(&without, "flow-spectrum").len();
    assert!((1..=760).contains(&bars), "{bars} bars");
}
