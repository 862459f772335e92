//! Traffic that a plan generates, whose rates are put in: tables, the terminal and sentences hold them.

use neph_analysis::{CampaignData, ExperimentData, PlotSettings, comparisons, findings, table};
use neph_model::{
    Experiment, ExperimentStatus, LoadEnd, LoadSpec, Parameter, ParameterName, Sample, ScenarioId,
    SeriesName, SiteLoad, Stress, Wall,
};
use neph_report::text;

use crate::synthetic::{self, METRO};

const BLOCKS: u32 = 12;

fn flow(site: &str) -> SiteLoad {
    SiteLoad {
        site: site.to_owned(),
        load: LoadSpec::Flow {
            to: "h:1".to_owned(),
            rate: None,
        },
    }
}

/// The first load alone has 90 Mbit/s, beside a second one 45: 1 % more or less from block to block.
fn with_loads() -> CampaignData {
    let mut data = synthetic::campaign_over(&[METRO], BLOCKS);
    let first = data.scenarios[0].clone();
    for (loads, rate) in [(vec![flow("a")], 90.0), (vec![flow("b"), flow("a")], 45.0)] {
        let index = data.scenarios.len();
        // What is compared is the load of the first site, whichever place it has in the list.
        let number = u16::try_from(loads.len()).expect("a few");
        let mut scenario = first.clone();
        scenario.id = ScenarioId(2000 + index as u64);
        scenario.index = u32::try_from(index).expect("a few");
        scenario
            .parameters
            .insert(Parameter::Stress(Stress::of(loads)));
        scenario.varied = vec![ParameterName::Stress];
        for block in 0..BLOCKS {
            let factor = 1.0 + 0.01 * (f64::from(block % 3) - 1.0);
            let experiment = Experiment {
                block,
                status: ExperimentStatus::Complete,
                ended: Some(Wall::from_unix_nanos(10_000_000_000)),
                ..Experiment::new(data.campaign.id, scenario.id, Wall::from_unix_nanos(0))
            };
            let mut experiment_data = ExperimentData::new(experiment, index, &[]);
            for second in 1..=4 {
                // The mean over seconds counts.
                let sway = if second % 2 == 0 { 5e6 } else { -5e6 };
                for (end, extra_rate) in [(LoadEnd::Sent, 1e6), (LoadEnd::Received, 0.0)] {
                    experiment_data.samples.push(Sample {
                        series: SeriesName::Load(number, end),
                        at: second * 1_000_000_000,
                        value: rate * 1e6 * factor + sway + extra_rate,
                    });
                }
            }
            data.experiments.push(experiment_data);
        }
        data.scenarios.push(scenario);
    }
    data
}

#[test]
fn a_table_has_the_rate_of_each_load_at_both_ends() {
    let (data, settings) = (with_loads(), PlotSettings::default());
    let tables = table::tables(&data, &settings);
    let loads = tables.iter().find(|table| table.name == "loads");
    let csv = loads.expect("a table").csv();
    for line in [
        "a flow h:1 max,sent,12,91,",
        "a flow h:1 max,received,12,90,",
        "a flow h:1 max,sent,12,46,",
        "a flow h:1 max,received,12,45,",
    ] {
        assert!(csv.contains(line), "{line}\n{csv}");
    }
    let actual = neph_analysis::diagnose(&data, &settings);
    let text = text(&data, &settings, &actual, 200);
    assert!(text.contains("91.00 Mbit/s    90.00 Mbit/s"), "{text}");
    // The second load has no series: no row stands for it.
    assert!(!csv.contains("b flow h:1 max,sent"), "{csv}");
}

#[test]
fn a_load_is_compared_alone_and_with_a_second_load() {
    let (data, settings) = (with_loads(), PlotSettings::default());
    let findings = findings(&data, &settings);
    let of_loads: Vec<_> = findings
        .iter()
        .filter(|finding| finding.topic == "load")
        .collect();
    let [finding] = of_loads.as_slice() else {
        panic!("{of_loads:#?}")
    };
    assert!(
        (finding.evidence["share_least"] + 0.5).abs() < 1e-9,
        "{finding:?}"
    );
    assert!(finding.text.contains("a flow h:1 max"), "{}", finding.text);
    assert!(
        finding.text.contains("significant over 12 blocks"),
        "{}",
        finding.text
    );
    // What is said of a plan before it runs counts this comparison too.
    let loaded = comparisons(&data.scenarios, 0);
    let without = comparisons(&data.scenarios[..data.scenarios.len() - 1], 0);
    assert!(loaded > without);
}
