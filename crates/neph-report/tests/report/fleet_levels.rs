//! Fleets of two seasons, whose difference is known.

use std::num::NonZeroU32;
use std::ops::Range;

use neph_analysis::{
    CampaignData, Cell, Finding, PlotSettings, Table, blocks_to_compare, comparisons, findings,
    tables,
};
use neph_flows::{FleetView, Latency, Measure, NoValue};
use neph_model::{Parameter, ParameterName, Span};
use neph_stats::Level;

use crate::synthetic::fleet::{FleetModel, PathStability, with_season};

const FLEET_MODEL: FleetModel = FleetModel {
    flows: 64,
    pairs: 1,
    seconds: 300,
    stability: PathStability::Stable,
};

/// A fleet with so many path changes per flow and hour.
fn view(changes: u64) -> FleetView {
    let mut view = FLEET_MODEL.view();
    let pair = &mut view.pairs[0];
    pair.changes = changes;
    pair.watched = Span::from_secs(3600);
    view
}

/// Two seasons of which each block has an experiment: the second with six more changes, and nothing
/// else different.
fn seasons(blocks: u32) -> CampaignData {
    let mut data = FLEET_MODEL.campaign();
    let (scenario, experiment) = (data.scenarios.remove(0), data.experiments.remove(0));
    for (index, season) in [(0, "night"), (1, "evening")] {
        let seasonal = with_season(&scenario, index, season);
        for block in 0..blocks {
            let mut measured = experiment.clone();
            measured.scenario = index as usize;
            measured.experiment.block = block;
            let additional = if season == "evening" { 6 } else { 0 };
            measured.fleet = Some(view(10 + u64::from(block) % 3 + additional));
            data.experiments.push(measured);
        }
        data.scenarios.push(seasonal);
    }
    data
}

fn only_finding(data: &CampaignData) -> Finding {
    let findings = findings(data, &PlotSettings::default());
    let is_about_season = |finding: &Finding| finding.about.contains(&"season evening".to_owned());
    let mut findings = findings.into_iter().filter(is_about_season);
    let finding = findings.next().expect("a sentence about the evening");
    assert_eq!(findings.next(), None, "one sentence");
    finding
}

/// What is compared, where anything is.
fn find_comparison_table(data: &CampaignData) -> Option<Table> {
    let tables = tables(data, &PlotSettings::default());
    tables
        .into_iter()
        .find(|table| table.name == "fleets-compared")
}

fn comparison_table(data: &CampaignData) -> Table {
    find_comparison_table(data).expect("a table")
}

fn cell(table: &Table, row: usize, name: &str) -> Cell {
    let mut columns = table.columns.iter();
    let index = columns.position(|column| column.0 == name).expect(name);
    table.rows[row][index].clone()
}

#[test]
fn a_restless_season_is_worse_in_changes_and_equivalent_in_the_rest() {
    assert_eq!(Measure::Changes.of(&view(6), 0), Ok(Level::At(6.0)));
    let finding = only_finding(&seasons(10));
    assert_eq!(
        finding.text,
        "overseas · every 100 ms · 1 KiB: season evening against season night: path changes per \
         flow and hour 6.00 higher (95 % confidence interval 6.00 to 6.00): worse; latency inflation no \
         different (95 % confidence interval 0.0 to 0.0): equivalent within a margin of 5.0 percentage points; \
         unfairness (p95 over p50) no different (95 % confidence interval 0.0 to 0.0): equivalent within a margin of 5.0 \
         percentage points. An experiment of each in 10 blocks."
    );
    assert!((finding.evidence["changes_per_flow_hour_shift"] - 6.0).abs() < 1e-9);
    // Ten differences of one sign: twice 2 to the power of -10, with ties approximated.
    assert!(finding.evidence["changes_per_flow_hour_p"] < 0.01);
}

#[test]
fn the_comparison_comes_before_the_seasons_and_has_a_table() {
    let data = seasons(10);
    let findings = findings(&data, &PlotSettings::default());
    let texts = findings.iter().map(|finding| &finding.text);
    let index = |with: &str| texts.clone().position(|text| text.contains(with));
    let [both, night] = [
        "season evening against",
        "oregon-virginia · season night: 64 flows",
    ]
    .map(index);
    assert!(both.is_some() && both < night, "{both:?} {night:?}");
    let table = comparison_table(&data);
    let cell = |row: usize, name: &str| cell(&table, row, name);
    let text = |printed_text: &str| Cell::Text(printed_text.to_owned());
    assert_eq!(table.rows.len(), 3);
    assert_eq!(cell(0, "level"), text("season evening"));
    assert_eq!(cell(0, "n"), Cell::Integer(10));
    assert_eq!(cell(0, "shift"), Cell::Real(6.0));
    // 10, 11 and 12 changes in turn at night.
    assert_eq!(cell(0, "median_against"), Cell::Real(11.0));
    assert_eq!(cell(0, "median"), Cell::Real(17.0));
    assert_eq!(cell(0, "verdict"), text("worse"));
    assert_eq!(cell(1, "verdict"), text("equivalent"));
    // Holm: the smallest of three p values counts three times.
    let (Cell::Real(p), Cell::Real(holm)) = (cell(0, "p"), cell(0, "p_holm")) else {
        panic!("p values are numbers");
    };
    assert!((holm - 3.0 * p).abs() < 1e-12, "{p} {holm}");
    // A single season is held against nothing.
    let mut alone = data.clone();
    let experiments = &mut alone.experiments;
    experiments.retain(|experiment| experiment.scenario == 0);
    assert!(find_comparison_table(&alone).is_none());
}

#[test]
fn a_difference_that_rounds_to_nothing_has_no_direction() {
    let mut data = seasons(10);
    change_fleets(&mut data, 1, |view| {
        let inflation = view.pairs[0].inflation.as_mut().expect("several classes");
        inflation.ratio -= 0.0001;
    });
    let text = only_finding(&data).text;
    assert!(
        text.contains(
            "latency inflation no different (95 % confidence interval 0.0 to 0.0): equivalent"
        ),
        "{text}"
    );
}

#[test]
fn a_plan_knows_how_many_blocks_its_comparison_needs() {
    let flows = |count| Parameter::Flows(NonZeroU32::new(count).expect("some"));
    let mut scenarios = seasons(1).scenarios;
    for scenario in &mut scenarios {
        scenario.parameters.insert(flows(64));
    }
    // Three measures: 3 x 2 / 2^7 is below 0.05.
    assert_eq!(blocks_to_compare(&scenarios, 0), Some(7));
    assert_eq!(blocks_to_compare(&scenarios[..1], 0), None);
    let mut third = scenarios[0].clone();
    third.index = 2;
    let noon = Parameter::Season("noon".to_owned());
    third.parameters.insert(noon);
    scenarios.push(third);
    // Six comparisons, and four where too few flows have a p95.
    assert_eq!(blocks_to_compare(&scenarios, 0), Some(8));
    for scenario in &mut scenarios {
        scenario.parameters.insert(flows(58));
    }
    assert_eq!(blocks_to_compare(&scenarios[..2], 0), Some(7));
    // Without flows they are no fleets: two seasons are held against the first, and a margin is one more.
    for scenario in &mut scenarios {
        scenario.parameters.remove(ParameterName::Flows);
    }
    assert_eq!(
        (comparisons(&scenarios, 0), comparisons(&scenarios, 1)),
        (2, 3)
    );
}

#[test]
fn four_blocks_are_reported_as_too_few() {
    let text = only_finding(&seasons(4)).text;
    assert!(text.contains("6.00 higher: inconclusive"), "{text}");
    assert!(
        text.ends_with("An experiment of each in 4 blocks: not significant (7 blocks needed)."),
        "{text}"
    );
}

#[test]
fn seasons_without_a_common_block_get_no_verdict() {
    let mut data = seasons(10);
    for measured in &mut data.experiments {
        if measured.scenario == 1 {
            measured.experiment.block += 10;
        }
    }
    let text = only_finding(&data).text;
    assert!(text.contains("higher: no verdict; "), "{text}");
    assert!(
        text.contains("10 experiments against 10, of different blocks. No block has both, so that no verdict is given"),
        "{text}"
    );
}

/// The fleets of one season, changed.
fn change_fleets(data: &mut CampaignData, season: usize, with: impl Fn(&mut FleetView)) {
    let experiments = data.experiments.iter_mut();
    experiments
        .filter(|experiment| experiment.scenario == season)
        .filter_map(|experiment| experiment.fleet.as_mut())
        .for_each(with);
}

#[test]
fn unfairness_of_few_flows_is_not_compared_and_states_why() {
    let mut data = seasons(10);
    for season in [0, 1] {
        change_fleets(&mut data, season, |view| {
            for bin in &mut view.latency_bins[0] {
                bin.flows = 58;
            }
        });
    }
    let few_flows = data.experiments[0].fleet.as_ref().expect("a fleet");
    let why = Err(NoValue::TooFewFlows { needs: 59 });
    assert_eq!(Measure::Unfairness.of(few_flows, 0), why);
    let text = only_finding(&data).text;
    assert!(!text.contains("p95 over p50"), "{text}");
    assert!(
        text.ends_with("10 blocks. Unfairness is not compared: p95 takes 59 flows."),
        "{text}"
    );
}

/// Two blocks of the evening had too few flows for a p95.
#[test]
fn a_measure_based_on_fewer_blocks_states_their_number() {
    let mut data = seasons(10);
    let experiments = data.experiments.iter_mut();
    let evening = experiments.filter(|experiment| experiment.scenario == 1);
    let views = evening.filter_map(|experiment| experiment.fleet.as_mut());
    for view in views.take(2) {
        for bin in &mut view.latency_bins[0] {
            bin.flows = 58;
        }
    }
    let finding = only_finding(&data);
    assert!(
        finding
            .text
            .contains("percentage points (only 8 blocks). An experiment of each in 10 blocks."),
        "{}",
        finding.text
    );
    assert!((finding.evidence["unfairness_n_first"] - 8.0).abs() < 1e-9);
}

/// Two sites are two networks, as two endpoints are.
#[test]
fn one_site_is_not_better_than_another() {
    let mut data = seasons(10);
    for scenario in &mut data.scenarios {
        let season = scenario.season().expect("a season").to_owned();
        scenario.parameters.remove(ParameterName::Season);
        scenario.parameters.insert(Parameter::Site(season));
        scenario.varied = vec![ParameterName::Site];
    }
    for finding in findings(&data, &PlotSettings::default()) {
        assert!(!finding.text.contains(" against "), "{finding:?}");
    }
}

#[test]
fn time_hidden_by_queues_is_excluded_from_rates_and_reported() {
    let mut data = seasons(10);
    // Half of the evening is hidden, and four of its changes were told when that was over.
    change_fleets(&mut data, 1, |view| {
        let hidden = &mut view.pairs[0].hidden;
        let values = (Span::ZERO, Span::from_secs(1800), 4);
        (hidden.learning, hidden.time, hidden.changes) = values;
    });
    let mut findings = findings(&data, &PlotSettings::default()).into_iter();
    assert!(findings.any(|finding| finding.text.contains("hour (without 40 that were detected")));
    let finding = only_finding(&data);
    // 16 to 18 changes less 4, in half an hour, against 10 to 12 in an hour.
    let shift = finding.evidence["changes_per_flow_hour_shift"];
    assert!((14.0..=16.0).contains(&shift), "{shift}");
    assert!(
        finding.text.ends_with(
            "Queues that all flows shared hid path changes for 50 % of the time in season \
             evening and 0 % in season night; the rates are of the rest."
        ),
        "{}",
        finding.text
    );
}

#[test]
fn a_season_that_loses_flows_for_good_is_infinitely_unfair() {
    let mut data = seasons(10);
    change_fleets(&mut data, 1, |view| {
        for bin in &mut view.latency_bins[0] {
            bin.lost = bin.flows / 10;
            bin.latency[2..].fill(Latency::Lost);
        }
    });
    let text = only_finding(&data).text;
    assert!(
        text.contains(
            "unfairness (p95 over p50) an unknown amount higher (95 % confidence interval ∞ to ∞): worse"
        ),
        "{text}"
    );
}

/// A season's fleets lose so many flows for good in these blocks, counted from 0, that there is no p95.
fn lose_flows(data: &mut CampaignData, season: usize, blocks: Range<u32>) {
    let in_season = data.experiments.iter_mut();
    let in_season = in_season.filter(|experiment| experiment.scenario == season);
    for experiment in in_season.filter(|experiment| blocks.contains(&experiment.experiment.block)) {
        for bin in &mut experiment.fleet.as_mut().expect("a fleet").latency_bins[0] {
            bin.lost = bin.flows / 10;
            bin.latency[2..].fill(Latency::Lost);
        }
    }
}

#[test]
fn a_measure_lost_in_both_seasons_is_not_compared() {
    let mut data = seasons(10);
    lose_flows(&mut data, 0, 0..10);
    lose_flows(&mut data, 1, 0..10);
    let lost = "Both lost too much for unfairness (p95 over p50) to be compared.";
    let finding = only_finding(&data);
    assert!(finding.text.ends_with(lost), "{}", finding.text);
    assert!((finding.evidence["comparisons_together"] - 2.0).abs() < 1e-9);
    let notes = comparison_table(&data).notes;
    assert!(notes.iter().any(|note| note.ends_with(lost)), "{notes:?}");
    // Nor are two seasons alike because neither has a number in blocks of its own.
    for measured in &mut data.experiments {
        if measured.scenario == 1 {
            measured.experiment.block += 10;
        }
    }
    let text = only_finding(&data).text;
    assert!(text.contains(lost), "{text}");
}

/// In six of ten blocks neither season has a number, and in one of the others the evening has none.
#[test]
fn medians_are_of_the_blocks_that_count() {
    let mut data = seasons(10);
    lose_flows(&mut data, 0, 0..6);
    lose_flows(&mut data, 1, 0..7);
    let table = comparison_table(&data);
    assert_eq!(cell(&table, 2, "n"), Cell::Integer(4));
    let [evening, night] = ["median", "median_against"].map(|name| cell(&table, 2, name));
    let gap = Measure::Unfairness
        .of(&view(6), 0)
        .expect("it lost nothing");
    let gap = Cell::Real(gap.number().expect("a number"));
    assert_eq!((&evening, &night), (&gap, &gap));
}

/// Seven blocks prove three comparisons, and not as many as two seasons more make of them.
#[test]
fn all_comparisons_of_a_report_are_one_family() {
    let few_blocks = only_finding(&seasons(7)).text;
    let worse = "6.00 higher (95 % confidence interval 6.00 to 6.00): worse";
    assert!(few_blocks.contains(worse), "{few_blocks}");
    let mut data = seasons(7);
    for (index, season) in [(2, "noon"), (3, "dawn")] {
        let mut scenario = data.scenarios[0].clone();
        scenario.index = index;
        scenario.id.0 += 10 + u64::from(index);
        scenario
            .parameters
            .insert(Parameter::Season(season.to_owned()));
        for block in 0..7 {
            let mut measured = data.experiments[0].clone();
            measured.scenario = index as usize;
            measured.experiment.block = block;
            measured.fleet = Some(view(10 + u64::from(block) % 3));
            data.experiments.push(measured);
        }
        data.scenarios.push(scenario);
    }
    let larger = only_finding(&data);
    assert!((larger.evidence["comparisons_together"] - 9.0).abs() < 1e-9);
    assert!(
        larger.text.contains("6.00 higher: inconclusive"),
        "{}",
        larger.text
    );
    assert!(
        larger.text.contains("not significant (9 blocks needed)"),
        "{}",
        larger.text
    );
}
