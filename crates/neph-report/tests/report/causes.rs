//! Causes in a report: they stand first, and a finding that says less gives way.

use neph_analysis::{PlotSettings, diagnose};
use neph_report::{text, write_report};

use crate::synthetic::{self, HOME, Link, METRO, Shape};

/// Two sizes over a link of 3 Mbit/s.
fn campaign_over_slow_link() -> neph_analysis::CampaignData {
    synthetic::campaign(&Shape {
        links: vec![HOME],
        intervals_ms: vec![100],
        sizes: vec![1024, 10_240],
        blocks: 3,
        messages: 200,
    })
}

#[test]
fn the_report_begins_with_causes_and_omits_weaker_findings() {
    let data = campaign_over_slow_link();
    let folder = tempfile::tempdir().unwrap();
    let settings = PlotSettings::default();
    let actual = diagnose(&data, &settings);
    let written = write_report(&data, &settings, &actual, folder.path()).unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    let at = |sentence: &str| page.find(sentence).unwrap_or_else(|| panic!("{sentence}"));
    assert!(at("What causes it") < at("Serialisation on a slow link"));
    assert!(at("Serialisation on a slow link") < at("What was measured"));
    assert!(at("Remedy: send fewer bytes") < at("What was measured"));
    // Findings alone would say the same with less in it.
    let alone = neph_analysis::findings(&data, &PlotSettings::default());
    let weaker = alone.iter().find(|finding| finding.topic == "transmission");
    let weaker = &weaker.expect("findings know it too").text;
    assert!(
        !page.contains("are transmission and queueing of"),
        "{weaker}"
    );
    let file = std::fs::read_to_string(folder.path().join("findings.json")).unwrap();
    assert!(!file.contains("are transmission and queueing of"));
    let file = std::fs::read_to_string(folder.path().join("diagnosis.json")).unwrap();
    assert!(file.contains("\"rule\": \"serialisation\""), "{file}");
}

#[test]
fn findings_include_the_part_that_a_root_cause_leaves() {
    // 100 kB take three times the path on it.
    let office = Link {
        name: "office",
        up_mbit: 100.0,
        ..METRO
    };
    let data = synthetic::campaign(&Shape {
        links: vec![HOME, office],
        intervals_ms: vec![400],
        sizes: vec![1024, 102_400],
        blocks: 3,
        messages: 100,
    });
    let settings = PlotSettings::default();
    let mut actual = diagnose(&data, &settings);
    actual
        .causes
        .retain(|diagnosis| diagnosis.cause.starts_with("home"));
    assert_eq!(actual.causes.len(), 1, "{:#?}", actual.causes);
    let transmission = |data: &_, actual: &_| {
        let folder = tempfile::tempdir().unwrap();
        write_report(data, &settings, actual, folder.path()).unwrap();
        let file = std::fs::read_to_string(folder.path().join("findings.json")).unwrap();
        let lines = file.lines();
        let line = lines.filter(|line| line.contains("are transmission and queueing of"));
        line.map(str::to_owned).collect::<String>()
    };
    let text = transmission(&data, &actual);
    assert!(text.contains("office") && !text.contains("home"), "{text}");
    // A cause that explains a part of it leaves the rest to be told.
    for explained in actual.causes[0].scenarios.values_mut() {
        *explained /= 10.0;
    }
    let text = transmission(&data, &actual);
    assert!(text.contains("home"), "{text}");
}

#[test]
fn a_report_without_a_root_cause_states_it() {
    let data = synthetic::campaign_over(&[METRO], 2);
    let folder = tempfile::tempdir().unwrap();
    let settings = PlotSettings::default();
    let actual = diagnose(&data, &settings);
    let written = write_report(&data, &settings, &actual, folder.path()).unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    assert!(page.contains("No root cause found by the"));
}

#[test]
fn causes_are_ordered_by_cost_and_limited_to_plotted_blocks() {
    let mut data = synthetic::campaign(&Shape {
        links: vec![Link {
            work_ms: 60.0,
            loss: 0.0,
            ..HOME
        }],
        intervals_ms: vec![100],
        sizes: vec![1024, 10_240],
        blocks: 3,
        messages: 200,
    });
    let settings = PlotSettings::default();
    let rules = |data: &_, settings: &_| -> Vec<&'static str> {
        let actual = diagnose(data, settings).causes.into_iter();
        actual.map(|diagnosis| diagnosis.rule).collect()
    };
    assert_eq!(rules(&data, &settings), ["slow-server", "serialisation"]);
    let no_blocks = PlotSettings {
        blocks_to_plot: Some([9].into()),
        ..PlotSettings::default()
    };
    assert!(rules(&data, &no_blocks).is_empty());
    data.experiments.clear();
    assert!(rules(&data, &settings).is_empty());
}

#[test]
fn every_line_of_causes_fits_the_terminal() {
    let actual = diagnose(&campaign_over_slow_link(), &PlotSettings::default());
    for width in [50, 80, 120] {
        let printed = neph_report::diagnoses_in_brief(&actual, width)
            + &neph_report::diagnoses_in_full(&actual, width);
        let widest = printed.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= width), "{printed}");
    }
    assert!(
        !text(
            &campaign_over_slow_link(),
            &PlotSettings::default(),
            &actual,
            100
        )
        .contains("are transmission and queueing of")
    );
}
