//! Labels that are too long for their place: what stands together stays distinct.

use neph_model::{Parameter, ParameterName};
use std::collections::BTreeSet;

use neph_analysis::{CampaignData, PlotSettings};
use neph_report::{Figure, draw};

use crate::findings::terminal_report;
use crate::synthetic::{self, Link, METRO};
use crate::text_layout::{assert_no_overlap, texts};

const LOADS: [&str; 4] = [
    "none",
    "host flow 10.90.1.1:8080 max",
    "host flow 10.90.1.2:8080 max",
    "host flow 10.90.1.1:8080 max, host flow 10.90.1.2:8080 max",
];

/// Two endpoints, each under four loads of which three begin and end alike.
fn campaign_with_loads() -> CampaignData {
    let names = ["limited", "free"];
    let links_named = |name| LOADS.map(|_| Link { name, ..METRO });
    let mut data = synthetic::campaign_over(&names.map(links_named).concat(), 1);
    for (index, scenario) in data.scenarios.iter_mut().enumerate() {
        let load = LOADS[index % 4].parse().expect("a load");
        scenario.parameters.insert(Parameter::Stress(load));
        scenario.varied = vec![ParameterName::Stress];
    }
    data
}

fn labels(figure: &Figure) -> Vec<String> {
    let figure_text = texts(&figure.scene).into_iter().map(|(_, text)| text.text);
    figure_text
        .filter(|figure_text| figure_text.contains('…'))
        .collect()
}

#[test]
fn labels_of_similar_loads_differ_in_figures() {
    let drawn = draw(&campaign_with_loads(), &PlotSettings::default());
    assert_no_overlap(&drawn);
    let several = ["ledger-bars", "boxes-by-stress", "send-skew", "server-skew"];
    for name in several {
        let figure = drawn.iter().find(|figure| figure.name == name);
        let cut = labels(figure.expect(name));
        let kinds: BTreeSet<&String> = cut.iter().collect();
        // In boxes every level stands once below each endpoint.
        let expected_count = if name == "boxes-by-stress" { 2 } else { 1 };
        assert!(cut.len() > 1, "{name}: {cut:#?}");
        assert_eq!(kinds.len() * expected_count, cut.len(), "{name}: {cut:#?}");
    }
}

#[test]
fn labels_of_similar_loads_differ_in_a_terminal() {
    for width in [40, 60, 80] {
        let printed = terminal_report(&campaign_with_loads(), width);
        let table = printed.lines().filter(|line| line.contains('…'));
        let cut: Vec<&str> = table.filter_map(|line| line.split("  ").next()).collect();
        let kinds: BTreeSet<&&str> = cut.iter().collect();
        assert!(cut.len() > 1, "{width}: {printed}");
        assert_eq!(kinds.len(), cut.len(), "{width}: {printed}");
    }
}

#[test]
fn panel_titles_omit_shared_parameters_and_state_them_once() {
    let data = campaign_with_loads();
    let drawn = draw(&data, &PlotSettings::default());
    for figure in drawn.iter().filter(|figure| figure.kind == "timeline") {
        let figure_text = texts(&figure.scene).into_iter().map(|(_, text)| text.text);
        let printed: Vec<String> = figure_text
            .filter(|figure_text| figure_text.contains("every 100 ms"))
            .collect();
        assert_eq!(
            printed,
            ["Common to all scenarios: every 100 ms · 1 KiB."],
            "{}",
            figure.name
        );
    }
    let printed = terminal_report(&data, 200);
    assert!(printed.contains("\nlimited · stress none"), "{printed}");
}

#[test]
fn a_load_with_a_name_is_called_by_it_in_figures() {
    let mut data = campaign_with_loads();
    for scenario in &mut data.scenarios {
        let load = scenario.parameters.stress().expect("a load").clone();
        let index = LOADS.iter().position(|other| *other == load.unnamed());
        if let Some(index) = index.filter(|index| *index > 0) {
            let named = load.with_name(&format!("busy {index}")).expect("a name");
            scenario.parameters.insert(Parameter::Stress(named));
        }
    }
    let drawn = draw(&data, &PlotSettings::default());
    assert_no_overlap(&drawn);
    for name in ["ledger-bars", "boxes-by-stress"] {
        let figure = drawn.iter().find(|figure| figure.name == name).expect(name);
        let figure_text: Vec<String> = texts(&figure.scene)
            .into_iter()
            .map(|(_, text)| text.text)
            .collect();
        assert!(
            figure_text
                .iter()
                .any(|figure_text| figure_text.ends_with("busy 3")),
            "{name}: {figure_text:#?}"
        );
        let outside = figure_text
            .iter()
            .filter(|figure_text| figure_text.contains("10.90.1.1"));
        assert_eq!(outside.count(), 0, "{name}: {figure_text:#?}");
    }
}
