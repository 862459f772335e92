//! What the sentences say of two or more scenarios, and when they say nothing.

use neph_analysis::{CampaignData, PlotSettings, findings};
use neph_model::{Outcome, Span};

use crate::findings::sentences;
use crate::synthetic::{self, CONTINENT, Link, METRO};
use crate::unanswered::set_outcomes;

#[test]
fn an_endpoint_that_answers_fast_but_seldom_is_not_the_fastest() {
    // metro replies ten times faster than continent, to fewer than half of its messages.
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], 6);
    set_outcomes(&mut data, 0, 180, Outcome::Lost);
    let findings = findings(&data, &PlotSettings::default());
    let endpoint = findings.iter().find(|f| f.topic == "endpoint").unwrap();
    assert_eq!(
        endpoint.text,
        "continent is an unknown amount faster than metro at the median; significant over 6 blocks (p 0.031). At least half of the messages of the slower side have no reply, so its median is unknown."
    );
    assert!(endpoint.evidence["shift_least_ms"].is_infinite());
    // As long as most are answered, the loss moves the median and no more.
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], 6);
    set_outcomes(&mut data, 0, 100, Outcome::Failed);
    let text = sentences(&data);
    assert!(text.contains("continent is 35.98 ms"), "{text}");
}

#[test]
fn slower_is_reported_only_if_significant_and_relevant() {
    // Twins differ by their jitter alone: significant or not, 5 % of 4 ms it is not.
    let twin = Link {
        name: "twin",
        ..METRO
    };
    let text = sentences(&synthetic::campaign_over(&[METRO, twin], 6));
    assert!(
        text.contains("less than the margin of 211 µs, at the median"),
        "{text}"
    );
    assert!(
        !text.contains("slower") && !text.contains("faster"),
        "{text}"
    );
    // Three blocks can tell nothing, however far apart the medians lie.
    let text = sentences(&synthetic::campaign_over(&[METRO, CONTINENT], 3));
    assert!(
        text.contains("continent took 36.0")
            && text.contains(
                "more than metro at the median; no verdict yet: 3 blocks measured, 6 needed"
            ),
        "{text}"
    );
}

#[test]
fn throughput_is_compared_with_checks_from_the_same_site_only() {
    let mut data = synthetic::twelve_scenarios();
    for check in &mut data.throughputs {
        check.site = Some("elsewhere".to_owned());
    }
    let compared = |data: &CampaignData| {
        let findings = findings(data, &PlotSettings::default());
        findings.iter().any(|f| f.topic == "throughput")
    };
    assert!(!compared(&data));
    for experiment in &mut data.experiments {
        let provenance = experiment.provenance.as_mut().expect("it is kept");
        provenance.site = Some("elsewhere".to_owned());
    }
    assert!(compared(&data));
}

#[test]
fn verdicts_on_several_endpoints_are_one_family() {
    let link = |name| Link { name, ..METRO };
    let sentences_of = |blocks: u32| {
        let mut data = synthetic::campaign_over(&[link("a"), link("b"), link("c")], blocks);
        for experiment in &mut data.experiments {
            let block = experiment.experiment.block;
            let micros = match (experiment.scenario, block % 3) {
                (0, _) => 4000,
                (1, _) => 5000,
                (_, 0) => 3000,
                (_, 1) => 4500,
                _ => 6000,
            };
            for exchange in &mut experiment.flows[0].exchanges {
                exchange.response = Some(Span::from_micros(micros));
            }
        }
        sentences(&data)
    };
    // One of 256 arrangements, both directions, two comparisons: 4 / 256.
    let text = sentences_of(8);
    assert!(
        text.contains("b is 1.00 ms (95 % confidence interval 1.00 ms to 1.00 ms) slower than a at the median; significant over 8 blocks (p 0.016, corrected for 2 comparisons)"),
        "{text}"
    );
    assert!(
        text.contains("c took") && text.contains("undecided over 8 blocks"),
        "{text}"
    );
    let text = sentences_of(6);
    assert!(
        text.contains("b took 1.00 ms more than a at the median; no verdict yet: 6 blocks measured, 7 needed for the 2 comparisons of this report"),
        "{text}"
    );
}

/// The fastest of equals looks faster than it is: the data must not choose what others are held against.
#[test]
fn the_baseline_is_the_plans_first_or_the_one_that_it_names() {
    let data = synthetic::campaign_over(&[CONTINENT, METRO], 6);
    let finding_texts = |settings: &PlotSettings| {
        let findings = findings(&data, settings);
        let endpoint = findings.into_iter().find(|f| f.topic == "endpoint");
        endpoint.expect("a sentence").about
    };
    assert_eq!(
        finding_texts(&PlotSettings::default()),
        ["metro", "continent"]
    );
    let with_baseline = PlotSettings {
        baseline: Some("metro".to_owned()),
        ..PlotSettings::default()
    };
    assert_eq!(finding_texts(&with_baseline), ["continent", "metro"]);
}
