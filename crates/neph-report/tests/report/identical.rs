//! What is said of endpoints beside being slower: that they are equivalent, that each is somewhere
//! the faster one, that the nearer one is the slower one.

use neph_analysis::{CampaignData, Finding, Layer, Margin, PlotSettings, findings};
use neph_model::{Parameter, ParameterName, Span};

use crate::synthetic::{self, CONTINENT, Link, METRO};

/// Gives every message of a scenario a response time, by block, in microseconds.
fn set_response_times(data: &mut CampaignData, scenario: usize, micros: impl Fn(u32) -> i64) {
    for experiment in &mut data.experiments {
        if experiment.scenario == scenario {
            let time = Span::from_micros(micros(experiment.experiment.block));
            for exchange in &mut experiment.flows[0].exchanges {
                exchange.response = Some(time);
            }
        }
    }
}

fn findings_about(data: &CampaignData, settings: &PlotSettings, topic: &str) -> Vec<Finding> {
    let findings = findings(data, settings).into_iter();
    findings.filter(|finding| finding.topic == topic).collect()
}

fn settings_with_margin(millis: i64) -> PlotSettings {
    PlotSettings {
        margins: vec![Margin {
            endpoints: Vec::new(),
            layer: Layer::Response,
            width: Span::from_millis(millis),
        }],
        ..PlotSettings::default()
    }
}

/// Three endpoints that differ by up to 0.2 ms, now this way and now that.
fn campaign_of_similar_endpoints(blocks: u32) -> CampaignData {
    let link = |name| Link { name, ..METRO };
    let mut data = synthetic::campaign_over(&[link("a"), link("b"), link("c")], blocks);
    set_response_times(&mut data, 0, |_| 4000);
    set_response_times(&mut data, 1, |block| 3900 + 100 * i64::from(block % 3));
    set_response_times(&mut data, 2, |block| 4100 - 100 * i64::from(block % 3));
    data
}

#[test]
fn equivalence_is_reported_only_within_the_margin() {
    let found = findings_about(
        &campaign_of_similar_endpoints(8),
        &settings_with_margin(1),
        "equivalence",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].about, ["a", "b", "c"]);
    assert!(
        found[0].text.starts_with(
            "a, b, c are equivalent: no median differs from another one's by 1.00 ms or more."
        ),
        "{}",
        found[0].text
    );
    assert!(found[0].evidence["reach_ms"] <= 0.2, "{:?}", found[0]);
    // Too few blocks allow no interval, however alike the endpoints are.
    let few_blocks = findings_about(
        &campaign_of_similar_endpoints(5),
        &settings_with_margin(1),
        "no_equivalence",
    );
    assert!(
        few_blocks[0].text.contains("needs 7 blocks"),
        "{}",
        few_blocks[0].text
    );
    // Without a margin nothing is said of it.
    let unasked = findings_about(
        &campaign_of_similar_endpoints(8),
        &PlotSettings::default(),
        "equivalence",
    );
    assert!(unasked.is_empty());
}

#[test]
fn one_endpoint_beyond_the_margin_is_enough_against_equivalence() {
    let mut data = campaign_of_similar_endpoints(8);
    set_response_times(&mut data, 2, |_| 5500);
    assert!(findings_about(&data, &settings_with_margin(1), "equivalence").is_empty());
    let found = findings_about(&data, &settings_with_margin(1), "no_equivalence");
    let actual = &found[0].text;
    assert!(
        actual.contains("not shown to be equivalent within 1.00 ms"),
        "{actual}"
    );
    let pairs = found[0].evidence["equivalent_pairs"];
    assert!((0.9..1.1).contains(&pairs), "{actual}");
    let mut settings = settings_with_margin(1);
    settings.margins[0].endpoints = vec!["a".to_owned(), "b".to_owned()];
    let found = findings_about(&data, &settings, "equivalence");
    assert_eq!(found[0].about, ["a", "b"], "the third one is not asked for");
}

#[test]
fn networks_may_be_equivalent_where_responses_are_not() {
    let mut data = campaign_of_similar_endpoints(8);
    set_response_times(&mut data, 2, |_| 5500);
    let mut settings = settings_with_margin(1);
    settings.margins[0].layer = Layer::Network;
    let found = findings_about(&data, &settings, "equivalence");
    let actual = &found[0].text;
    assert!(
        actual.starts_with(
            "a, b, c are equivalent: no median of the network round trip (kernel timestamps) differs"
        ),
        "{actual}"
    );
    // Where nobody has that layer there is nothing to compare, which is said and is no equivalence.
    settings.margins[0].layer = Layer::Ping("nobody".to_owned());
    let found = findings_about(&data, &settings, "no_equivalence");
    assert!(found[0].text.contains("was not evaluated"), "{found:?}");
}

/// Two endpoints from two sites: scenarios a-east, a-west, b-east, b-west.
fn from_two_sites(blocks: u32) -> CampaignData {
    let link = |name| Link { name, ..METRO };
    let mut data =
        synthetic::campaign_over(&[link("a"), link("a2"), link("b"), link("b2")], blocks);
    for (index, scenario) in data.scenarios.iter_mut().enumerate() {
        ["a", "b"][index / 2].clone_into(&mut scenario.endpoint);
        let site = ["east", "west"][index % 2].to_owned();
        scenario.parameters.insert(Parameter::Site(site));
        scenario.varied = vec![ParameterName::Site];
    }
    for (scenario, micros) in [8000, 20_000, 18_000, 9000].into_iter().enumerate() {
        set_response_times(&mut data, scenario, |block| micros + i64::from(block));
    }
    data
}

#[test]
fn that_each_of_two_endpoints_is_somewhere_slower_is_one_sentence() {
    let settings = PlotSettings::default();
    let found = findings_about(&from_two_sites(8), &settings, "crossover");
    assert_eq!(
        found[0].text,
        "Whether b or a is faster depends on the other parameters: b is 10.00 ms (95 % confidence interval 10.00 ms to 10.00 ms) slower than a (from east), and a is 11.00 ms (95 % confidence interval 11.00 ms to 11.00 ms) slower than b (from west); significant over 8 blocks in each, corrected for 4 comparisons."
    );
    let slower = found[0].evidence["second_slower_ms"];
    assert!((10.9..11.1).contains(&slower), "{slower}");
    // Seven blocks are too few for four comparisons, and one that is slower everywhere crosses nothing.
    assert!(findings_about(&from_two_sites(7), &settings, "crossover").is_empty());
    let mut data = from_two_sites(8);
    set_response_times(&mut data, 1, |_| 5000);
    assert!(findings_about(&data, &settings, "crossover").is_empty());
}

#[test]
fn the_values_of_a_parameter_are_compared_as_endpoints_are() {
    let found = findings_about(&from_two_sites(8), &PlotSettings::default(), "parameter");
    assert_eq!(found[0].about, ["from west", "from east"]);
    assert!(
        found[0].text.starts_with("from west is slower than from east in 1 of 2 combinations, faster than from east in 1 of 2 combinations: its median is from 9.00 ms lower (b) to 12.00 ms higher (a); "),
        "{}",
        found[0].text
    );
}

#[test]
fn a_nearer_but_slower_endpoint_is_reported_with_its_path() {
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], 6);
    let place_clients = |data: &mut CampaignData, kilometres: [&str; 2]| {
        for (scenario, km) in data.scenarios.iter_mut().zip(kilometres) {
            let distance = km.parse().expect("a distance");
            scenario.parameters.insert(Parameter::Distance(distance));
        }
    };
    let settings = PlotSettings::default();
    assert!(
        findings_about(&data, &settings, "position").is_empty(),
        "no map"
    );
    place_clients(&mut data, ["3", "220"]);
    assert!(
        findings_about(&data, &settings, "position").is_empty(),
        "as on the map"
    );
    place_clients(&mut data, ["220", "3.5"]);
    let found = findings_about(&data, &settings, "position");
    let actual = &found[0].text;
    assert!(
        actual
            .starts_with("continent is nearer than metro (3.5 km, metro: 220 km), but it is 36.0"),
        "{actual}"
    );
    // 40 ms there and back.
    let path = found[0].evidence["path_km"];
    assert!((3990.0..4100.0).contains(&path), "{actual}");
}
