//! Fleets: their figures, tables and sentences, over flows whose truth is known.

use neph_analysis::{CampaignData, Diagnoses, PlotSettings, findings, tables};
use neph_report::{Figure, draw, svg, write_report};

use crate::synthetic::fleet::{FleetModel, PathStability};
use crate::text_layout::{all_texts, assert_no_overlap, texts};

pub(crate) const SMALL: FleetModel = FleetModel {
    flows: 8,
    pairs: 1,
    seconds: 300,
    stability: PathStability::Unstable,
};
const FOUR: FleetModel = FleetModel {
    flows: 512,
    pairs: 4,
    seconds: 1800,
    stability: PathStability::Unstable,
};
const SIXTEEN: FleetModel = FleetModel {
    flows: 512,
    pairs: 16,
    seconds: 7200,
    stability: PathStability::Stable,
};

const KINDS: [&str; 10] = [
    "flow-dissected",
    "flow-spectrum",
    "flow-spectra",
    "flow-inflation",
    "flow-change-counts",
    "flow-changes",
    "flow-persistence",
    "flow-fairness",
    "flow-moved",
    "flow-paths",
];

pub(crate) fn draw_figures(data: &CampaignData) -> Vec<Figure> {
    draw(data, &PlotSettings::default())
}

fn kinds(figures: &[Figure]) -> Vec<&str> {
    let mut kinds: Vec<&str> = figures.iter().map(|figure| figure.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_fleet_has_ten_figures_and_no_empty_ones() {
    assert_eq!(kinds(&draw_figures(&FOUR.campaign())), KINDS);
}

#[test]
fn figures_without_data_are_not_drawn() {
    // One pair has no distribution of inflation and nobody to stand beside.
    let of_one_pair = draw_figures(&SMALL.campaign());
    assert!(
        !kinds(&of_one_pair).contains(&"flow-inflation")
            && !kinds(&of_one_pair).contains(&"flow-spectra")
    );
    let mut data = SMALL.campaign();
    for experiment in &mut data.experiments {
        experiment.traces.clear();
        let fleet = experiment.fleet.as_mut().unwrap();
        fleet.dissected.clear();
        fleet.changes.clear();
        for pair in &mut fleet.pairs {
            (pair.between, pair.persistence) = (None, None);
            pair.moved.clear();
        }
        for bin in fleet.latency_bins.iter_mut().flatten() {
            bin.changes = Some(0);
        }
    }
    assert_eq!(
        kinds(&draw_figures(&data)),
        ["flow-spectrum", "flow-fairness"]
    );
    // A fleet of which nothing was answered.
    for experiment in &mut data.experiments {
        let fleet = experiment.fleet.as_mut().unwrap();
        fleet.spectra[0].bins.clear();
        fleet.classes[0].clear();
        fleet.latency_bins[0].clear();
        fleet.flows.clear();
        (fleet.pairs[0].inflation, fleet.pairs[0].flows) = (None, 0);
    }
    assert!(draw_figures(&data).is_empty());
}

#[test]
fn no_text_touches_another_or_leaves_the_page() {
    for fleet_model in [SMALL, FOUR, SIXTEEN] {
        assert_no_overlap(&draw_figures(&fleet_model.campaign()));
    }
}

#[test]
fn fifty_thousand_flows_stay_small() {
    let fleet_model = FleetModel {
        flows: 50_000,
        pairs: 1,
        seconds: 600,
        stability: PathStability::Unstable,
    };
    for figure in draw_figures(&fleet_model.campaign()) {
        let bytes = svg(&figure.scene, &figure.name, &figure.title).len();
        assert!(bytes < 2_000_000, "{}: {bytes} bytes", figure.name);
    }
}

#[test]
fn the_figures_of_eight_flows_in_words() {
    insta::assert_snapshot!(all_texts(&draw_figures(&SMALL.campaign())));
}

#[test]
fn the_tables_and_sentences_of_a_fleet() {
    let data = SMALL.campaign();
    let settings = PlotSettings::default();
    let mut actual: Vec<String> = findings(&data, &settings)
        .into_iter()
        .map(|finding| finding.text)
        .collect();
    let of_kind = tables(&data, &settings).into_iter();
    let of_kind = of_kind.filter(|table| table.name.starts_with("flow-"));
    actual.extend(
        of_kind.map(|table| format!("{}\n{}", table.name, table.csv().replace("\r\n", "\n"))),
    );
    insta::assert_snapshot!(actual.join("\n"));
}

#[test]
fn a_fleet_report_has_each_section_and_no_broken_link() {
    let folder = tempfile::tempdir().unwrap();
    let data = FOUR.campaign();
    let settings = PlotSettings::default();
    let actual = Diagnoses::default();
    let written = write_report(&data, &settings, &actual, folder.path()).unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    for expected in [
        "Flows and paths in numbers",
        "Latency classes",
        "sydney-tokyo",
        "tables/flow-classes.csv",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    let links = page.split("href=\"").skip(1);
    for link in links.filter_map(|rest| rest.split('"').next()) {
        let target_exists = link.strip_prefix('#').map_or_else(
            || folder.path().join(link).exists(),
            |id| page.contains(&format!("id=\"{id}\"")),
        );
        assert!(target_exists, "{link} leads nowhere");
    }
}

/// No synthetic view: the messages themselves, through the digest.
#[test]
fn messages_become_the_same_figures() {
    let fleet_model = FleetModel {
        flows: 64,
        pairs: 2,
        seconds: 240,
        stability: PathStability::Unstable,
    };
    let mut data = fleet_model.campaign();
    let experiment = &mut data.experiments[0];
    let read = fleet_model.view_from_messages();
    assert_eq!((read.dissected.len(), read.advice.len()), (3, 2));
    let classes: Vec<usize> = read.classes.iter().map(Vec::len).collect();
    assert_eq!(classes, [4, 2], "the paths of both pairs");
    experiment.fleet = Some(read);
    let figures = draw_figures(&data);
    assert!(kinds(&figures).iter().all(|kind| KINDS.contains(kind)));
    for kind in [
        "flow-dissected",
        "flow-spectrum",
        "flow-changes",
        "flow-moved",
    ] {
        assert!(kinds(&figures).contains(&kind), "{kind}");
    }
}

#[test]
fn reordering_of_unknown_direction_is_reported() {
    let mut data = SMALL.campaign();
    // A SYN ping's peer counts nothing.
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    fleet.pairs[0].tally.reordered = 7;
    let all_tables = tables(&data, &PlotSettings::default());
    let loss = all_tables
        .iter()
        .find(|table| table.name == "flow-loss")
        .unwrap();
    let actual = ["reordered", "reordered_there", "reordered_back"].map(|name| {
        let index = loss.columns.iter().position(|column| column.0 == name);
        loss.rows[0][index.unwrap()].clone()
    });
    assert_eq!(actual, [7, 0, 0].map(neph_analysis::Cell::Integer));
}

/// Every text of a figure of that kind.
pub(crate) fn figure_texts(figures: &[Figure], kind: &str) -> String {
    let of_kind = figures.iter().filter(|figure| figure.kind == kind);
    let texts = of_kind.flat_map(|figure| texts(&figure.scene));
    texts.map(|(_, text)| text.text + "\n").collect()
}

#[test]
fn a_quantile_that_needs_more_flows_is_not_reported() {
    let fleet_model = |flows| FleetModel { flows, ..SMALL };
    for (flows, expected_cells) in [
        (8, [false, false]),
        (128, [true, false]),
        (512, [true, true]),
    ] {
        let data = fleet_model(flows).campaign();
        let figure_text = figure_texts(&draw_figures(&data), "flow-fairness");
        let lines: Vec<&str> = figure_text.lines().collect();
        assert_eq!(
            ["p95", "p99"].map(|name| lines.contains(&name)),
            expected_cells
        );
        let all_tables = tables(&data, &PlotSettings::default());
        let pairs = all_tables
            .iter()
            .find(|table| table.name == "flow-pairs")
            .unwrap();
        let actual = ["p95_ms", "p99_ms"].map(|name| {
            let index = pairs.columns.iter().position(|column| column.0 == name);
            pairs.rows[0][index.unwrap()] != neph_analysis::Cell::Absent
        });
        assert_eq!(actual, expected_cells, "{flows} flows");
    }
}

/// One pair, measured in two blocks.
fn in_two_blocks() -> CampaignData {
    let mut data = SMALL.campaign();
    let mut second = data.experiments[0].clone();
    second.experiment.block = 1;
    data.experiments.push(second);
    data
}

#[test]
fn a_pair_in_two_blocks_is_one_pair() {
    let data = in_two_blocks();
    let settings = PlotSettings::default();
    let figures = draw_figures(&data);
    // Its curve is one over both blocks; panels over time show each block.
    let curves = figure_texts(&figures, "flow-persistence");
    assert!(
        curves.contains("oregon-virginia: ") && curves.contains("in 2 blocks"),
        "{curves}"
    );
    assert!(!curves.contains("block 1"), "{curves}");
    let panels = figure_texts(&figures, "flow-spectra");
    for label in ["oregon-virginia · block 1, ", "oregon-virginia · block 2, "] {
        assert!(panels.contains(label), "{label} in {panels}");
    }
    // A distribution over pairs has one pair.
    assert!(!kinds(&figures).contains(&"flow-inflation"));
    let actual: Vec<String> = findings(&data, &settings)
        .into_iter()
        .filter(|finding| finding.topic == "flows")
        .map(|finding| finding.text)
        .collect();
    assert_eq!(actual.len(), 1, "{actual:?}");
    assert!(
        actual[0].starts_with("oregon-virginia: 8 flows"),
        "{actual:?}"
    );
    assert!(
        actual[0].contains("median over 2 blocks") && actual[0].contains("8 path changes in total")
    );
    let advised = "Source ports with the lowest latency at the end of the last block: 10006, ";
    assert!(actual[0].contains(advised), "{actual:?}");
}

#[test]
fn a_campaign_of_fleets_has_no_message_figures() {
    let mut data = FOUR.campaign();
    let echo = crate::synthetic::one_experiment().experiments[0].flows[0].clone();
    // ICMP echoes go on beside the fleet.
    let mut echo = echo;
    echo.flow.role = neph_model::FlowRole::Companion;
    data.experiments[0].flows = vec![echo];
    let settings = PlotSettings::default();
    let figures = draw_figures(&data);
    for kind in ["boxes", "cdf", "per-block"] {
        assert!(!kinds(&figures).contains(&kind), "{kind}");
    }
    let actual = neph_analysis::diagnose(&data, &settings);
    let report_text = neph_report::text(&data, &settings, &actual, 120);
    assert!(!report_text.contains("response time"), "{report_text}");
    let line = report_text
        .lines()
        .find(|line| line.starts_with("sydney-tokyo"));
    assert!(
        line.is_some_and(|line| line.contains("128")),
        "{report_text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let written = write_report(&data, &settings, &actual, folder.path()).unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    let index = |id: &str| page.find(&format!("<h2 id=\"{id}\"")).unwrap();
    assert!(index("flow-spectrum") < index("timeline"));
    let causes = neph_report::diagnoses_in_brief(&actual, 200);
    assert!(causes.contains("only fleets were measured"), "{causes}");
}
