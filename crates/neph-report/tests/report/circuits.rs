//! Circuits over two networks, of which what each carries is put in: sentences, tables and figures hold it.

use std::collections::BTreeMap;

use neph_analysis::{
    CampaignData, ExperimentData, PlotSettings, QuantityCourse, circuits, findings, table,
};
use neph_model::{
    Experiment, ExperimentStatus, Measure, MediaMeasure, Parameter, Quantities, Quantity, Scenario,
    ScenarioId, Span, Wall,
};
use neph_report::{draw, svg, text};
use neph_stats::Level;

use crate::synthetic::{self, CONTINENT, METRO};

/// Mbit/s over the underlay, and over the overlay.
const GOODPUT_MBIT: [(&str, f64, f64); 2] = [("ams-lju", 90.0, 54.0), ("mil-bra", 80.0, 72.0)];
const BLOCKS: u32 = 12;

fn scenario(template: &Scenario, index: u32, circuit: &str, network: &str) -> Scenario {
    let mut scenario = template.clone();
    let measure: Measure = "tcp throughput".parse().expect("a measure");
    (scenario.id, scenario.index) = (ScenarioId(1000 + u64::from(index)), index);
    scenario.endpoint = format!("{circuit} {network}");
    (scenario.interval, scenario.messages) = (Span::from_secs(1), 10);
    let parameters = [
        Parameter::Measure(measure),
        Parameter::Circuit(circuit.to_owned()),
        Parameter::Network(network.to_owned()),
        Parameter::Site(circuit[..3].to_owned()),
    ];
    for parameter in parameters {
        scenario.parameters.insert(parameter);
    }
    scenario
}

/// Adds a transfer of a scenario that is about to be added.
fn add_transfer(data: &mut CampaignData, scenario: &Scenario, block: u32, quantities: Quantities) {
    let experiment = Experiment {
        block,
        status: ExperimentStatus::Complete,
        ended: Some(Wall::from_unix_nanos(10_000_000_000)),
        quantities: Some(quantities),
        ..Experiment::new(data.campaign.id, scenario.id, Wall::from_unix_nanos(0))
    };
    let index = data.scenarios.len();
    data.experiments
        .push(ExperimentData::new(experiment, index, &[]));
}

/// Transfers with so much goodput, which differs by 1 % from block to block.
fn with_transfers() -> CampaignData {
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], BLOCKS);
    let first = data.scenarios[0].clone();
    for (circuit, underlay, overlay) in GOODPUT_MBIT {
        for (network, goodput) in [("underlay", underlay), ("docker", overlay)] {
            let index = data.scenarios.len();
            let index = u32::try_from(index).expect("a few");
            let scenario = scenario(&first, index, circuit, network);
            for block in 0..BLOCKS {
                let factor = 1.0 + 0.01 * (f64::from(block % 3) - 1.0);
                let quantities = Quantities {
                    peer: ([192, 0, 2, 1], 7420).into(),
                    values: BTreeMap::from([(Quantity::UpGoodput, goodput * 1e6 * factor)]),
                    limits: vec!["The path is the limit: it carries no more.".to_owned()],
                };
                add_transfer(&mut data, &scenario, block, quantities);
            }
            data.scenarios.push(scenario);
        }
    }
    data
}

#[test]
fn the_matrix_has_the_median_of_each_circuit_over_each_network() {
    let circuits = circuits::of(&with_transfers(), &PlotSettings::default());
    assert_eq!(circuits.networks, ["underlay", "docker"]);
    assert_eq!(circuits.rows.len(), 2);
    for (row, (circuit, underlay, overlay)) in circuits.rows.iter().zip(GOODPUT_MBIT) {
        assert_eq!(
            (row.circuit.as_str(), row.measurement.as_str()),
            (circuit, "tcp throughput")
        );
        let medians = row.cells.iter().map(|cell| {
            let summary = cell.as_ref().and_then(QuantityCourse::summary);
            summary.expect("it was measured").median
        });
        let expected = [underlay, overlay].map(|goodput| Level::At(goodput * 1e6));
        assert_eq!(medians.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_sentence_holds_the_network_against_the_first_with_a_verdict() {
    let findings = findings(&with_transfers(), &PlotSettings::default());
    let of_network: Vec<_> = findings
        .iter()
        .filter(|finding| finding.topic == "network")
        .collect();
    let [network_finding] = of_network.as_slice() else {
        panic!("{of_network:#?}")
    };
    assert_eq!(network_finding.about, ["docker", "underlay"]);
    // 90 to 54 and 80 to 72 Mbit/s.
    assert!(
        (network_finding.evidence["share_least"] + 0.4).abs() < 1e-9,
        "{network_finding:?}"
    );
    assert!(
        (network_finding.evidence["share_most"] + 0.1).abs() < 1e-9,
        "{network_finding:?}"
    );
    assert!(
        network_finding
            .text
            .contains("worse in 2 of 2 combinations"),
        "{}",
        network_finding.text
    );
    assert!(
        network_finding
            .text
            .contains("significant over 12 blocks in each"),
        "{}",
        network_finding.text
    );
    // Places are not compared with each other, and transfers are no messages.
    assert!(
        findings.iter().all(|finding| finding.topic != "endpoint"),
        "{findings:#?}"
    );
    let counted = |topic: &str| {
        let finding = findings.iter().find(|finding| finding.topic == topic);
        finding.expect(topic).text.clone()
    };
    assert!(counted("transfers").contains("48 transfers"));
    assert!(counted("campaign").contains("24 experiments"));
}

#[test]
fn tables_and_figures_have_the_circuits() {
    let data = with_transfers();
    let settings = PlotSettings::default();
    let tables = table::tables(&data, &settings);
    let circuits = tables.iter().find(|table| table.name == "circuits");
    let csv = circuits.expect("a table").csv();
    let docker = "tcp throughput,goodput up,Mbit/s,ams-lju,docker,12,54,";
    assert!(csv.contains(docker), "{csv}");
    assert!(csv.contains(",60\r\n"), "54 of 90 Mbit/s are 60 %: {csv}");
    let figures = draw(&data, &settings);
    for kind in ["circuits", "transfers", "timetable"] {
        assert!(figures.iter().any(|figure| figure.kind == kind), "{kind}");
    }
    let actual = neph_analysis::diagnose(&data, &settings);
    let text = text(&data, &settings, &actual, 200);
    assert!(text.contains("54.00 Mbit/s") && text.contains("The path is the limit"));
}

/// Streams of 1, 3 and 9 clients over two networks, whose bit rates fall as 1000 kbit/s over the clients.
fn with_media() -> CampaignData {
    let mut data = with_transfers();
    data.scenarios.truncate(2);
    data.experiments
        .retain(|experiment| experiment.scenario < 2);
    let first = data.scenarios[0].clone();
    for clients in [1_u16, 3, 9] {
        for network in ["underlay", "docker"] {
            let index = data.scenarios.len();
            let index = u32::try_from(index).expect("a few");
            let mut scenario = scenario(&first, index, "bra-ams", network);
            let measure = Measure::Media(MediaMeasure { clients });
            scenario.parameters.insert(Parameter::Measure(measure));
            for block in 0..BLOCKS {
                let rate = 1e6 / f64::from(clients);
                let quantities = Quantities {
                    peer: ([192, 0, 2, 1], 554).into(),
                    values: BTreeMap::from([(Quantity::MediaRate, rate)]),
                    limits: Vec::new(),
                };
                add_transfer(&mut data, &scenario, block, quantities);
            }
            data.scenarios.push(scenario);
        }
    }
    data
}

#[test]
fn media_streams_have_a_figure_by_clients() {
    let data = with_media();
    let settings = PlotSettings::default();
    let figures = draw(&data, &settings);
    let figure = figures.iter().find(|figure| figure.kind == "media-clients");
    let figure = figure.expect("it is drawn");
    let svg = svg(&figure.scene, &figure.name, &figure.title);
    for part in [
        "clients at each site",
        "underlay",
        "docker",
        ">1</text>",
        ">3</text>",
        ">9</text>",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    let findings = findings(&data, &settings);
    let no_difference = "of docker against underlay: no difference anywhere";
    let of_media = findings
        .iter()
        .filter(|finding| finding.text.contains("media"));
    for finding in of_media {
        assert!(
            finding.text.contains(no_difference) || finding.text.contains("differ by 0 bit/s"),
            "{}",
            finding.text
        );
    }
}
