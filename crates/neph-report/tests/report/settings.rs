//! Plot settings: what each of them changes, without measuring again.

use std::collections::{BTreeMap, BTreeSet};

use neph_analysis::{Basis, CampaignData, Equalization, PlotSettings, Tail};
use neph_model::{Event, EventKind, FlowIndex, Span, Warning};
use neph_report::{Anchor, FIGURES, Figure, Mark, Scene, draw};

use crate::synthetic::{self, CONTINENT, METRO};

fn figure_texts(scene: &Scene) -> Vec<String> {
    fn collect(marks: &[Mark], texts: &mut Vec<String>) {
        for mark in marks {
            match mark {
                Mark::Text(text) => texts.push(text.text.clone()),
                Mark::Clip { marks, .. } => collect(marks, texts),
                _ => {}
            }
        }
    }
    let mut texts = Vec::new();
    collect(&scene.marks, &mut texts);
    texts
}

fn draw_figures(name: &str, settings: PlotSettings) -> Vec<Figure> {
    let settings = PlotSettings {
        figures: Some([name.to_owned()].into()),
        ..settings
    };
    draw(&synthetic::twelve_scenarios(), &settings)
}

fn all_figure_texts(figures: &[Figure]) -> String {
    figures
        .iter()
        .flat_map(|figure| figure_texts(&figure.scene))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_kind_is_drawn_and_named() {
    let figures = draw(&synthetic::twelve_scenarios(), &PlotSettings::default());
    let kinds: BTreeSet<&str> = figures.iter().map(|figure| figure.kind).collect();
    let of_messages = FIGURES.iter().filter(|kind| {
        !kind.name.starts_with("flow-")
            && !matches!(
                kind.name,
                "circuits" | "transfers" | "media-clients" | "timetable"
            )
    });
    assert_eq!(
        kinds.len(),
        of_messages.count(),
        "fleets, circuits and transfers have figures of their own"
    );
    let names: BTreeSet<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names.len(), figures.len(), "names of files are unique");
    for view in ["endpoint", "interval", "size"] {
        assert!(names.contains(format!("boxes-by-{view}").as_str()));
        assert!(names.contains(format!("cdf-by-{view}").as_str()));
    }
}

#[test]
fn retransmissions_that_only_a_capture_saw_are_drawn_too() {
    let mut data = synthetic::one_experiment();
    for flow in data.experiments.iter_mut().flat_map(|e| &mut e.flows) {
        for exchange in &mut flow.exchanges {
            exchange.retransmissions = None;
        }
    }
    let findings_of = |data: &CampaignData| {
        let settings = PlotSettings {
            figures: Some(["timeline".to_owned()].into()),
            ..PlotSettings::default()
        };
        all_figure_texts(&draw(data, &settings)).contains("retransmission (at the bottom)")
    };
    assert!(!findings_of(&data), "there are none");
    data.experiments[0].events.push(Event {
        flow: FlowIndex(0),
        at: 1_000_000,
        kind: EventKind::Retransmitted,
        text: "a segment was sent again".into(),
    });
    assert!(findings_of(&data));
}

fn draw_figure(data: &CampaignData, figure: &str) -> Vec<Figure> {
    let settings = PlotSettings {
        figures: Some([figure.to_owned()].into()),
        ..PlotSettings::default()
    };
    draw(data, &settings)
}

fn count_discs(figures: &[Figure]) -> usize {
    fn within(marks: &[Mark]) -> usize {
        let discs = marks.iter().map(|mark| match mark {
            Mark::Disc { .. } => 1,
            Mark::Clip { marks, .. } => within(marks),
            _ => 0,
        });
        discs.sum()
    }
    figures
        .iter()
        .map(|figure| within(&figure.scene.marks))
        .sum()
}

#[test]
fn a_timeline_of_few_messages_marks_each() {
    let mut data = synthetic::campaign_over(&[CONTINENT], 1);
    assert_eq!(
        count_discs(&draw_figure(&data, "timeline")),
        0,
        "300 make a line"
    );
    let exchanges = &mut data.experiments[0].flows[0].exchanges;
    exchanges.retain(|exchange| exchange.seq.0 % 15 == 0 && exchange.response.is_some());
    assert!(count_discs(&draw_figure(&data, "timeline")) >= 2 * exchange_count(&data));
}

fn exchange_count(data: &CampaignData) -> usize {
    data.experiments[0].flows[0].exchanges.len()
}

#[test]
fn a_logarithmic_timeline_is_labelled_at_its_axis() {
    let mut data = synthetic::campaign_over(&[CONTINENT], 1);
    assert!(!all_figure_texts(&draw_figure(&data, "timeline")).contains("ms, log"));
    for exchange in &mut data.experiments[0].flows[0].exchanges {
        exchange.response = exchange.response.map(|time| time + Span::from_millis(900));
    }
    let figure_text = all_figure_texts(&draw_figure(&data, "timeline"));
    assert!(figure_text.contains(", log"), "{figure_text}");
}

#[test]
fn a_window_that_a_shared_scale_would_flatten_has_its_own() {
    let mut data = synthetic::campaign_over(&[CONTINENT, METRO], 1);
    let of_kind =
        |data: &CampaignData| all_figure_texts(&draw_figure(data, "cwnd")).contains("own scale");
    assert!(!of_kind(&data), "windows alike share one");
    for exchange in &mut data.experiments[0].flows[0].exchanges {
        exchange.cwnd = exchange.cwnd.map(|window| window * 100);
    }
    assert!(of_kind(&data));
}

#[test]
fn the_noise_of_a_clock_is_not_blown_up_to_a_panels_height() {
    let mut data = synthetic::campaign_over(&[METRO], 1);
    for exchange in &mut data.experiments[0].flows[0].exchanges {
        exchange.send_started = Some(exchange.intended);
    }
    let figure_text = all_figure_texts(&draw_figure(&data, "send-skew"));
    assert!(
        figure_text.contains("\n1.0\n") || figure_text.contains("\n1\n"),
        "{figure_text}"
    );
}

#[test]
fn of_many_warnings_every_kind_is_spelled_out() {
    let mut data = synthetic::twelve_scenarios();
    for experiment in &mut data.experiments {
        experiment.experiment.warnings = vec![Warning::Reconnected { times: 1 }];
    }
    let last = data.experiments.last_mut().expect("there are 72");
    last.experiment.warnings.push(Warning::LinkLate {
        packets: 3,
        worst: Span::from_micros(200),
    });
    let figure_text = all_figure_texts(&draw_figure(&data, "ledger-bars")).replace('\n', " ");
    assert!(
        figure_text.contains("and 8 more scenarios")
            && figure_text.contains("delivered 3 packets too late"),
        "{figure_text}"
    );
}

#[test]
fn no_text_leaves_its_page() {
    for data in [
        synthetic::one_experiment(),
        synthetic::twelve_scenarios(),
        synthetic::sixty_scenarios(),
    ] {
        for figure in draw(&data, &PlotSettings::default()) {
            for mark in &figure.scene.marks {
                let Mark::Text(text) = mark else { continue };
                if text.direction == neph_report::TextDirection::Vertical {
                    continue;
                }
                let left = match text.anchor {
                    neph_report::Anchor::Start => text.position.x,
                    neph_report::Anchor::Middle => text.position.x - text.width() / 2.0,
                    neph_report::Anchor::End => text.position.x - text.width(),
                };
                let inside = left >= 0.0
                    && left + text.width() <= figure.scene.width
                    && text.position.y < figure.scene.height;
                assert!(inside, "{}: {:?}", figure.name, text);
            }
        }
    }
}

#[test]
fn blocks_to_plot_leaves_the_others_out() {
    let settings = PlotSettings {
        blocks_to_plot: Some([2, 5].into()),
        ..PlotSettings::default()
    };
    let figure_text = all_figure_texts(&draw_figures("timeline", settings));
    assert!(figure_text.contains("block 2") && figure_text.contains("block 5"));
    assert!(!figure_text.contains("block 1,") && !figure_text.contains("block 3"));
}

#[test]
fn percentiles_to_remove_takes_the_outlier_away() {
    let complete = all_figure_texts(&draw_figures("boxes", PlotSettings::default()));
    assert!(complete.contains("1 above, max 1.76 s"));
    let settings = PlotSettings {
        percentiles_to_remove: 1.0,
        ..PlotSettings::default()
    };
    let cut = all_figure_texts(&draw_figures("boxes", settings));
    assert!(
        !cut.contains("above") && cut.contains("highest 1 %"),
        "{cut}"
    );
}

#[test]
fn values_outside_of_fixed_limits_are_counted() {
    let settings = PlotSettings {
        rtt_min: Some(Span::from_millis(4)),
        rtt_max: Some(Span::from_millis(20)),
        ..PlotSettings::default()
    };
    let figure_text = all_figure_texts(&draw_figures("boxes", settings));
    assert!(
        figure_text.contains("1920 above, max") || figure_text.contains("1919 above, max"),
        "{figure_text}"
    );
}

#[test]
fn whiskers_scales_tail_and_basis_show_in_the_figures() {
    let settings = PlotSettings {
        whisker_min: Some(10.0),
        whisker_max: Some(90.0),
        basis: Basis::Service,
        ..PlotSettings::default()
    };
    let figure_text = all_figure_texts(&draw_figures("boxes", settings));
    assert!(
        figure_text.contains("from the 10 to the 90 percentile")
            && figure_text.contains("service time, ms")
    );
    let tail = PlotSettings {
        tail: Tail::Logarithmic,
        ..PlotSettings::default()
    };
    let figure_text = all_figure_texts(&draw_figures("cdf", tail));
    assert!(figure_text.contains("share that took longer") && figure_text.contains("0.001"));
    let axes = |settings| {
        all_figure_texts(&draw_figures("boxes", settings))
            .matches("response time, ms")
            .count()
    };
    let separate = PlotSettings {
        equalization: Equalization::Separate,
        ..PlotSettings::default()
    };
    assert!(axes(separate) > axes(PlotSettings::default()));
}

#[test]
fn blocks_are_labelled_with_their_duration() {
    let data = synthetic::campaign(&synthetic::Shape {
        links: vec![synthetic::CONTINENT],
        intervals_ms: vec![25],
        sizes: vec![1024],
        blocks: 2,
        messages: 96,
    });
    let figures = draw(&data, &PlotSettings::default());
    for kind in ["timeline", "cwnd"] {
        let of_kind = figures.iter().find(|figure| figure.kind == kind);
        let figure_text = figure_texts(&of_kind.expect("drawn").scene);
        for block in ["block 1, 11:06, 2.4 s", "block 2, 11:07, 2.4 s"] {
            assert!(
                figure_text.iter().any(|word| word == block),
                "{kind}: {figure_text:?}"
            );
        }
    }
}

/// The labels of vertical axes of a page, with how many panels have each.
fn vertical_labels(figure: &Figure) -> BTreeMap<String, usize> {
    let mut labels = BTreeMap::new();
    for (_, text) in crate::text_layout::texts(&figure.scene) {
        let is_label = text.anchor == Anchor::End && text.text.parse::<f64>().is_ok();
        *labels.entry(text.text).or_default() += usize::from(is_label);
    }
    labels.retain(|_, panels| *panels > 0);
    labels
}

#[test]
fn panels_of_blocks_and_timelines_share_their_scale_unless_they_are_not_to() {
    let separate = PlotSettings {
        equalization: Equalization::Separate,
        ..PlotSettings::default()
    };
    for (name, panels) in [("per-block", 10), ("timeline", 7)] {
        let shared = vertical_labels(&draw_figures(name, PlotSettings::default())[0]);
        let is_everywhere = shared.values().all(|count| *count == panels);
        assert!(is_everywhere && shared.len() > 1, "{name}: {shared:?}");
        let of_kind = vertical_labels(&draw_figures(name, separate.clone())[0]);
        assert!(
            of_kind.values().any(|count| *count < panels),
            "{name}: {of_kind:?}"
        );
    }
}

#[test]
fn the_acknowledgement_hides_no_end_to_end() {
    let figures = draw_figures("timeline", PlotSettings::default());
    let panels = figures[0].scene.marks.iter().filter_map(|mark| match mark {
        Mark::Clip { marks, .. } => Some(marks),
        _ => None,
    });
    for marks in panels {
        let widths: Vec<f64> = marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Line { stroke, points } if points.len() > 2 => Some(stroke.width),
                _ => None,
            })
            .collect();
        // End to end is drawn first, and at least twice as wide as what lies on it.
        let narrower = widths.iter().skip_while(|width| **width > 3.0);
        assert!(widths[0] > 3.0, "{widths:?}");
        assert!(
            narrower.into_iter().any(|width| *width < widths[0] / 2.0),
            "{widths:?}"
        );
    }
}
