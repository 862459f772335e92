//! Fleets of two seasons, whose difference is known.

use neph_flows::{FleetView, Measure};
use neph_model::Span;
use neph_report::{CampaignData, Finding, PlotSettings, findings};

use crate::synthetic::fleet::{Mood, World};

const WORLD: World = World {
    flows: 8,
    pairs: 1,
    seconds: 300,
    mood: Mood::Quiet,
};

/// A fleet with so many path changes per flow and hour.
fn view(changes: u64) -> FleetView {
    let mut view = WORLD.view();
    let pair = &mut view.pairs[0];
    pair.changes = changes;
    pair.watched = Span::from_secs(3600);
    view
}

/// Two seasons of which each block has an experiment: the second with six more changes, and nothing
/// else different.
fn seasons(blocks: u32) -> CampaignData {
    let mut data = WORLD.campaign();
    let (scenario, experiment) = (data.scenarios.remove(0), data.experiments.remove(0));
    for (index, season) in [(0, "night"), (1, "evening")] {
        let mut one = scenario.clone();
        one.index = index;
        one.id.0 += u64::from(index);
        one.parameters.insert("season".into(), season.into());
        one.varied.push("season".into());
        for block in 0..blocks {
            let mut measured = experiment.clone();
            measured.scenario = index as usize;
            measured.experiment.block = block;
            let more = if season == "evening" { 6 } else { 0 };
            measured.fleet = Some(view(10 + u64::from(block) % 3 + more));
            data.experiments.push(measured);
        }
        data.scenarios.push(one);
    }
    data
}

fn told(data: &CampaignData) -> Finding {
    let found = findings(data, &PlotSettings::default());
    let about = |one: &Finding| one.about.contains(&"season evening".to_owned());
    let mut found = found.into_iter().filter(about);
    let one = found.next().expect("a sentence about the evening");
    assert_eq!(found.next(), None, "one sentence");
    one
}

#[test]
fn a_restless_season_is_worse_in_changes_and_equivalent_in_the_rest() {
    assert_eq!(Measure::Changes.of(&view(6), 0), Some(6.0));
    let found = told(&seasons(10));
    assert_eq!(
        found.text,
        "overseas · every 100 ms · 1 KiB: season evening against season night: path changes per \
         flow and hour 6.00 higher (95 % interval 6.00 to 6.00): worse; latency inflation no \
         different (95 % interval 0.0 to 0.0): equivalent, as 5.0 percentage points would matter; \
         unfairness (p95 over p50) no different (95 % interval 0.0 to 0.0): equivalent, as 5.0 \
         percentage points would matter. An experiment of each in 10 blocks."
    );
    assert!((found.evidence["changes_per_flow_hour_shift"] - 6.0).abs() < 1e-9);
    // Ten differences of one sign: twice 2 to the power of -10, with ties approximated.
    assert!(found.evidence["changes_per_flow_hour_p"] < 0.01);
}

#[test]
fn four_blocks_are_told_to_be_too_few() {
    let text = told(&seasons(4)).text;
    assert!(text.contains("6.00 higher: undecided"), "{text}");
    assert!(
        text.ends_with(
            "An experiment of each in 4 blocks, too few to tell this from chance; it takes 7."
        ),
        "{text}"
    );
}

#[test]
fn seasons_without_a_common_block_are_compared_as_a_whole() {
    let mut data = seasons(10);
    for measured in &mut data.experiments {
        if measured.scenario == 1 {
            measured.experiment.block += 10;
        }
    }
    let text = told(&data).text;
    assert!(text.contains("): worse; "), "{text}");
    assert!(
        text.ends_with("10 experiments against 10, of different blocks."),
        "{text}"
    );
}
