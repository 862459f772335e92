//! What figures of fleets say and show where there is little to show.

use neph_model::{Parameter, ParameterName};
use std::collections::BTreeSet;

use neph_analysis::{CampaignData, PlotSettings};
use neph_report::{Figure, Mark, draw};

use crate::synthetic::fleet::{FleetModel, PathStability};
use crate::text_layout::texts;

const SMALL: FleetModel = FleetModel {
    flows: 8,
    pairs: 1,
    seconds: 300,
    stability: PathStability::Unstable,
};

fn draw_figures(data: &CampaignData) -> Vec<Figure> {
    draw(data, &PlotSettings::default())
}

#[test]
fn four_flows_have_no_quantile_and_yet_no_empty_panel() {
    let fleet_model = FleetModel { flows: 4, ..SMALL };
    let figures = draw_figures(&fleet_model.campaign());
    let latency_bins = figures.iter().find(|figure| figure.kind == "flow-fairness");
    let latency_bins = latency_bins.unwrap();
    let panels = latency_bins.scene.marks.iter();
    let panels: Vec<&Vec<Mark>> = panels
        .filter_map(|mark| match mark {
            Mark::Clip { marks, .. } => Some(marks),
            _ => None,
        })
        .collect();
    assert_eq!(panels.len(), 2, "over time, and over bins");
    assert!(panels.iter().all(|marks| !marks.is_empty()));
    assert!(figure_texts(&figures, "flow-fairness").contains("above the fastest"));
}

#[test]
fn captions_describe_only_elements_that_are_drawn() {
    let data = SMALL.campaign();
    let bare = |data: &CampaignData| {
        let mut data = data.clone();
        let fleet = data.experiments[0].fleet.as_mut().unwrap();
        for pair in &mut fleet.pairs {
            (pair.persistence_forward, pair.persistence_reverse) = (None, None);
            pair.congested.clear();
        }
        fleet.changes.clear();
        for flow in &mut fleet.dissected {
            flow.samples.truncate(2);
        }
        for route in &mut data.experiments[0].traces[0].routes {
            // From the hop before the paths part to the one behind.
            route.hops.truncate(8);
            route.hops.drain(..3);
            for (hop, ttl) in route.hops.iter_mut().zip(1..) {
                hop.ttl = ttl;
                hop.address.get_or_insert_with(|| [10, 6, 1, 1].into());
            }
        }
        data
    };
    for (kind, only_there) in [
        ("flow-persistence", "lower panels"),
        ("flow-spectrum", "orange bar"),
        ("flow-dissected", "Shaded"),
        ("flow-dissected", "dashed line"),
        ("flow-paths", "omitted"),
        ("flow-paths", "without an answer"),
    ] {
        let caption = |data: &CampaignData| {
            let figures = draw_figures(data);
            let of_kind = figures.into_iter().find(|figure| figure.kind == kind);
            of_kind.unwrap().caption
        };
        assert!(caption(&data).contains(only_there), "{kind}");
        assert!(!caption(&bare(&data)).contains(only_there), "{kind}");
    }
    let larger = FleetModel {
        flows: 160,
        pairs: 16,
        ..SMALL
    };
    for (fleet_model, actual) in [(SMALL, false), (larger, true)] {
        let figures = draw_figures(&fleet_model.campaign());
        let changes = figures.iter().find(|figure| figure.kind == "flow-changes");
        assert_eq!(changes.unwrap().caption.contains("In colour"), actual);
    }
}

/// The same fleet in two seasons.
fn campaign_with_two_seasons(fleet_model: FleetModel) -> CampaignData {
    let mut data = fleet_model.campaign();
    let (scenario, experiment) = (data.scenarios.remove(0), data.experiments.remove(0));
    for (index, season) in [(0, "low"), (1, "high")] {
        let mut seasonal = scenario.clone();
        seasonal.id.0 += u64::from(index == 1);
        seasonal
            .parameters
            .insert(Parameter::Season(season.to_owned()));
        seasonal.varied.push(ParameterName::Season);
        let mut measured = experiment.clone();
        measured.scenario = index;
        data.scenarios.push(seasonal);
        data.experiments.push(measured);
    }
    data
}

#[test]
fn a_pair_in_two_seasons_is_no_distribution_over_pairs() {
    let figures = draw_figures(&campaign_with_two_seasons(SMALL));
    assert!(figures.iter().all(|figure| figure.kind != "flow-inflation"));
    assert!(figure_texts(&figures, "flow-spectra").contains("8 flows, 1 pair, measured in 2 ways"));
    let four = FleetModel {
        flows: 64,
        pairs: 4,
        ..SMALL
    };
    let actual = figure_texts(
        &draw_figures(&campaign_with_two_seasons(four)),
        "flow-inflation",
    );
    for line in ["season low: 4 pairs", "season high: 4 pairs"] {
        assert!(actual.contains(line), "{line} in {actual}");
    }
}

/// The same fleet from two sites, in each season that it was measured in.
fn campaign_from_two_sites(mut data: CampaignData) -> CampaignData {
    let (scenarios, experiments) = (data.scenarios.len(), data.experiments.len());
    for index in 0..scenarios {
        let mut west = data.scenarios[index].clone();
        west.id.0 += 2;
        for (scenario, site) in [(&mut data.scenarios[index], "east"), (&mut west, "west")] {
            scenario.parameters.insert(Parameter::Site(site.to_owned()));
            scenario.varied.push(ParameterName::Site);
        }
        data.scenarios.push(west);
    }
    for index in 0..experiments {
        let mut measured = data.experiments[index].clone();
        measured.scenario += scenarios;
        data.experiments.push(measured);
    }
    data
}

#[test]
fn an_endpoint_from_two_sites_is_two_pairs() {
    let figures = draw_figures(&campaign_from_two_sites(SMALL.campaign()));
    let actual = figure_texts(&figures, "flow-spectra");
    assert!(actual.contains("16 flows, 2 pairs;"), "{actual}");
    let actual = figure_texts(&figures, "flow-inflation");
    for word in ["2 pairs: highest base latency", "from east", "from west"] {
        assert!(actual.contains(word), "{word} in {actual}");
    }

    let figures = draw_figures(&campaign_from_two_sites(campaign_with_two_seasons(SMALL)));
    let actual = figure_texts(&figures, "flow-spectra");
    assert!(
        actual.contains("16 flows, 2 pairs, measured in 2 ways"),
        "{actual}"
    );
    let actual = figure_texts(&figures, "flow-inflation");
    for line in ["season low: 2 pairs", "season high: 2 pairs"] {
        assert!(actual.contains(line), "{line} in {actual}");
    }
}

/// Every text of a figure of that kind that stands outside of its panels.
fn figure_texts(figures: &[Figure], kind: &str) -> String {
    let of_kind = figures.iter().filter(|figure| figure.kind == kind);
    let marks = of_kind.flat_map(|figure| &figure.scene.marks);
    marks
        .filter_map(|mark| match mark {
            Mark::Text(text) => Some(format!("{}\n", text.text)),
            _ => None,
        })
        .collect()
}

#[test]
fn pairs_whose_names_are_too_long_stay_apart() {
    let fleet_model = FleetModel {
        flows: 96,
        pairs: 3,
        ..SMALL
    };
    let mut data = fleet_model.campaign();
    let long = |nth: &str| {
        let larger = "of a rack with a name that nobody would give it ".repeat(3);
        format!("a host {larger} {nth} {larger} interface ens192")
    };
    let nths = ["one", "two", "three"].map(long);
    for (scenario, endpoint) in data.scenarios.iter_mut().zip(&nths) {
        scenario.endpoint.clone_from(endpoint);
    }
    for experiment in &mut data.experiments {
        let pairs = &mut experiment.fleet.as_mut().unwrap().pairs;
        for (pair, endpoint) in pairs.iter_mut().zip(&nths) {
            pair.endpoint.clone_from(endpoint);
        }
    }
    let figures = draw_figures(&data);
    for kind in [
        "flow-spectra",
        "flow-fairness",
        "flow-moved",
        "flow-inflation",
    ] {
        let of_kind = figures.iter().find(|figure| figure.kind == kind);
        let texts = texts(&of_kind.expect(kind).scene).into_iter();
        let texts = texts.map(|(_, text)| text.text);
        let cut: Vec<String> = texts.filter(|text| text.contains('…')).collect();
        let distinct: BTreeSet<&String> = cut.iter().collect();
        assert_eq!((cut.len(), distinct.len()), (3, 3), "{kind}: {cut:?}");
    }
}
