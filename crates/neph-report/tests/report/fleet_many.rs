//! Fleets of many blocks, seasons and pairs: what stands out is shown, and as little as that takes.

use neph_analysis::{CampaignData, PlotSettings, findings};
use neph_model::Span;
use neph_report::{Figure, Mark, draw};

use crate::synthetic::fleet::{FleetModel, PathStability, seasons};
use crate::text_layout::{assert_no_overlap, texts};

/// The macro study of the third source: 120 pairs, of which most have one path.
const MACRO: FleetModel = FleetModel {
    flows: 1200,
    pairs: 120,
    seconds: 300,
    stability: PathStability::Unstable,
};

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("few"))
}

fn draw_figures(data: &CampaignData) -> Vec<Figure> {
    draw(data, &PlotSettings::default())
}

fn figures_of_kind<'f>(figures: &'f [Figure], kind: &str) -> Vec<&'f Figure> {
    figures
        .iter()
        .filter(|figure| figure.kind == kind)
        .collect()
}

fn figure_texts(figure: &Figure) -> Vec<String> {
    let texts = texts(&figure.scene).into_iter();
    texts.map(|(_, text)| text.text).collect()
}

/// The areas and the dark lines inside the panels of a figure.
fn count_areas_and_lines(figure: &Figure) -> (usize, usize) {
    let panels = figure.scene.marks.iter().filter_map(|mark| match mark {
        Mark::Clip { marks, .. } => Some(marks),
        _ => None,
    });
    let panel_marks: Vec<&Mark> = panels.flatten().collect();
    let is_area = |mark: &&&Mark| matches!(mark, Mark::Area { .. });
    let is_line = |mark: &&&Mark| matches!(mark, Mark::Line { .. });
    (
        panel_marks.iter().filter(is_area).count(),
        panel_marks.iter().filter(is_line).count(),
    )
}

#[test]
fn a_season_is_one_line_with_one_band_whatever_the_number_of_its_blocks() {
    let figures = draw_figures(&seasons(8, 1));
    assert_no_overlap(&figures);
    let changes = figures_of_kind(&figures, "flow-change-counts");
    let [changes] = changes[..] else {
        panic!("one figure of path changes per bin")
    };
    // A band and a line for each season.
    assert_eq!(count_areas_and_lines(changes), (2, 2));
    let actual = figure_texts(changes);
    for season in ["season low: median 0", "season high: median"] {
        let season_texts = actual.iter().filter(|text| text.starts_with(season));
        assert_eq!(season_texts.count(), 1, "{season} in {actual:#?}");
    }
    assert!(
        changes.caption.contains("median over blocks"),
        "{}",
        changes.caption
    );
    let change_figures = figures_of_kind(&figures, "flow-changes");
    // The low season has too few moves for a line of its own, or has one; never one for each block.
    let (areas, lines) = count_areas_and_lines(change_figures[0]);
    assert!((1..=2).contains(&areas) && lines <= 3, "{areas} {lines}");
}

#[test]
fn twelve_pairs_in_two_seasons_are_two_lines() {
    let figures = draw_figures(&seasons(2, 12));
    let changes = figures_of_kind(&figures, "flow-change-counts");
    assert_eq!(count_areas_and_lines(changes[0]), (2, 2));
    assert!(
        figure_texts(changes[0])
            .iter()
            .any(|text| text.contains("in 12 pairs"))
    );
    assert!(changes[0].caption.contains("median over pairs"));
}

#[test]
fn path_changes_in_a_bin_are_counted_as_they_happened() {
    // One block of one pair: the quantiles of the legend are those of the bins.
    let data = FleetModel {
        flows: 64,
        pairs: 1,
        ..MACRO
    }
    .campaign();
    let view = data.experiments[0].fleet.as_ref().unwrap();
    let mut counts: Vec<u32> = view.latency_bins[0]
        .iter()
        .filter_map(|bin| bin.changes)
        .collect();
    counts.sort_unstable();
    let at = |share: f64| {
        let has_enough = |max: &&u32| {
            let within = counts.iter().filter(|count| count <= max).count();
            f64::from(u32::try_from(within).unwrap())
                >= share * f64::from(u32::try_from(counts.len()).unwrap()) - 1e-6
        };
        counts.iter().find(has_enough).copied().unwrap()
    };
    let actual = format!(
        "oregon-virginia: median {}, p95 {}, at most {} (n {} bins)",
        at(0.5),
        at(0.95),
        counts.last().unwrap(),
        counts.len()
    );
    let figures = draw_figures(&data);
    let figure = figures_of_kind(&figures, "flow-change-counts")[0];
    assert!(
        figure_texts(figure).contains(&actual),
        "{actual} in {:#?}",
        figure_texts(figure)
    );
}

#[test]
fn a_bin_is_as_long_as_a_shorter_measurement() {
    let mut data = FleetModel {
        flows: 64,
        pairs: 1,
        ..MACRO
    }
    .campaign();
    let title = |data: &CampaignData| {
        figure_texts(figures_of_kind(&draw_figures(data), "flow-change-counts")[0])[0].clone()
    };
    assert_eq!(title(&data), "Path changes in every 20 s");
    for experiment in &mut data.experiments {
        let view = experiment.fleet.as_mut().expect("a fleet");
        view.until = view.from + Span::from_millis(7_950);
    }
    assert_eq!(title(&data), "Path changes in every 8 s");
}

#[test]
fn of_120_pairs_the_ten_with_the_largest_inflation_have_a_sentence() {
    let data = MACRO.campaign();
    let view = data.experiments[0].fleet.as_ref().unwrap();
    let mut ranked: Vec<(f64, &str)> = view
        .pairs
        .iter()
        .map(|pair| {
            (
                pair.inflation.map_or(0.0, |inflation| inflation.ratio),
                pair.endpoint.as_str(),
            )
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let actual: Vec<String> = findings(&data, &PlotSettings::default())
        .into_iter()
        .filter(|finding| finding.topic == "flows")
        .map(|finding| finding.text)
        .collect();
    // The headline, ten pairs, and the rest.
    assert_eq!(actual.len(), 12, "{actual:#?}");
    for ((_, name), text) in ranked.iter().zip(&actual[1..11]) {
        assert!(text.starts_with(&format!("{name}: ")), "{name} in {text}");
    }
    assert!(
        actual[11].starts_with("110 more pairs have an inflation of at most"),
        "{}",
        actual[11]
    );
}

#[test]
fn the_headline_is_the_share_of_pairs_above_an_inflation() {
    let data = MACRO.campaign();
    let view = data.experiments[0].fleet.as_ref().unwrap();
    let ratios = || {
        view.pairs.iter().map(|pair| {
            pair.inflation
                .map_or(0.0, |inflation| inflation.ratio - 1.0)
        })
    };
    let findings = findings(&data, &PlotSettings::default());
    let headline = findings
        .iter()
        .find(|finding| finding.text.starts_with("Latency inflation"))
        .unwrap();
    let level = headline.evidence["inflation_level"];
    let above_count = ratios().filter(|ratio| *ratio > level + 1e-12).count();
    assert!(
        (1..=6).contains(&above_count),
        "5 % of 120 are 6: {above_count}"
    );
    let share = format!(
        "{:.1} % of the pairs ({above_count} of 120)",
        float(above_count) / 1.2
    );
    assert!(
        headline.text.contains(&share),
        "{share} in {}",
        headline.text
    );
    let above_count = ratios().filter(|ratio| *ratio > 0.32).count();
    let actual = headline.evidence["pairs_above_32_percent"];
    assert!(
        (actual - float(above_count)).abs() < 1e-9,
        "{actual} {above_count}"
    );
    let figures = draw_figures(&data);
    let figure = figures_of_kind(&figures, "flow-inflation")[0];
    assert!(
        figure_texts(figure).join(" ").contains(&share),
        "{:#?}",
        figure_texts(figure)
    );
}

#[test]
fn of_120_pairs_no_page_shows_one_in_which_nothing_happens() {
    let data = MACRO.campaign();
    let view = data.experiments[0].fleet.as_ref().unwrap();
    let quiet: Vec<&str> = (0..120)
        .filter(|index| {
            let (pair, classes) = (&view.pairs[*index], &view.classes[*index]);
            classes.len() == 1 && pair.changes == 0
        })
        .map(|index| view.pairs[index].endpoint.as_str())
        .collect();
    assert!(quiet.len() > 60, "{}", quiet.len());
    let figures = draw_figures(&data);
    assert_no_overlap(&figures);
    for (kind, pages) in [
        ("flow-spectrum", 16),
        ("flow-spectra", 3),
        ("flow-fairness", 3),
        ("flow-moved", 2),
        ("flow-dissected", 4),
    ] {
        let drawn = figures_of_kind(&figures, kind);
        assert!(
            (1..=pages).contains(&drawn.len()),
            "{kind}: {}",
            drawn.len()
        );
        for figure in drawn {
            for text in figure_texts(figure) {
                let name = text.split([':', ',']).next().unwrap_or_default();
                assert!(!quiet.contains(&name), "{}: {text}", figure.name);
            }
        }
    }
    let spectrum = figures_of_kind(&figures, "flow-spectrum");
    assert!(
        spectrum[0].caption.contains("are left out"),
        "{}",
        spectrum[0].caption
    );
}
