//! What the sentences say of two or more scenarios, and when they say nothing.

use neph_model::{Outcome, Span};
use neph_report::{CampaignData, PlotSettings, findings};

use crate::findings::sentences;
use crate::synthetic::{self, CONTINENT, Link, METRO};
use crate::unanswered::ending;

#[test]
fn an_endpoint_that_answers_fast_but_seldom_is_not_the_fastest() {
    // metro replies ten times faster than continent, to fewer than half of its messages.
    let mut data = synthetic::over(&[METRO, CONTINENT], 6);
    ending(&mut data, 0, 180, Outcome::Lost);
    let found = findings(&data, &PlotSettings::default());
    let endpoint = found.iter().find(|f| f.topic == "endpoint").unwrap();
    assert_eq!(
        endpoint.text,
        "metro is immeasurably slower than continent at the median; significant over 6 blocks (p 0.031). Half or more of the slower one's messages went unanswered, so that there is no median to subtract."
    );
    assert!(endpoint.evidence["shift_least_ms"].is_infinite());
    // As long as most are answered, the loss moves the median and no more.
    let mut data = synthetic::over(&[METRO, CONTINENT], 6);
    ending(&mut data, 0, 100, Outcome::Failed);
    let said = sentences(&data);
    assert!(said.contains("continent is 35.98 ms"), "{said}");
}

#[test]
fn slower_is_said_only_of_what_is_significant_and_matters() {
    // Twins differ by their jitter alone: significant or not, 5 % of 4 ms it is not.
    let twin = Link {
        name: "twin",
        ..METRO
    };
    let said = sentences(&synthetic::over(&[METRO, twin], 6));
    assert!(
        said.contains("less than the 211 µs that matter, at the median"),
        "{said}"
    );
    assert!(
        !said.contains("slower") && !said.contains("faster"),
        "{said}"
    );
    // Three blocks can tell nothing, however far apart the medians lie.
    let said = sentences(&synthetic::over(&[METRO, CONTINENT], 3));
    assert!(
        said.contains("continent lies 36.0")
            && said.contains("above metro at the median; 3 blocks are too few"),
        "{said}"
    );
}

#[test]
fn throughput_is_compared_with_checks_from_the_same_site_only() {
    let mut data = synthetic::twelve();
    for check in &mut data.throughputs {
        check.site = Some("elsewhere".to_owned());
    }
    let compared = |data: &CampaignData| {
        let found = findings(data, &PlotSettings::default());
        found.iter().any(|f| f.topic == "throughput")
    };
    assert!(!compared(&data));
    for experiment in &mut data.experiments {
        let provenance = experiment.provenance.as_mut().expect("it is kept");
        provenance.site = Some("elsewhere".to_owned());
    }
    assert!(compared(&data));
}

#[test]
fn of_several_endpoints_two_differ_only_if_any_do() {
    let link = |name| Link { name, ..METRO };
    let mut data = synthetic::over(&[link("a"), link("b"), link("c")], 6);
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
    // Alone the pair is significant (p 0.031). Among the ranks 1 to 3 of each block a has 8 of 36,
    // b 16 and c 12: 12 / (6 * 3 * 4) * (64 + 256 + 144) - 3 * 6 * 4 = 5.33, p = exp(-2.67) = 0.069.
    let said = sentences(&data);
    assert!(
        said.contains("b lies 1.00 ms (95 % interval 1.00 ms to 1.00 ms) above a at the median; not significant"),
        "{said}"
    );
    data.experiments
        .retain(|experiment| experiment.scenario < 2);
    let said = sentences(&data);
    assert!(
        said.contains("b is 1.00 ms")
            && said.contains("slower than a at the median; significant over 6 blocks (p 0.031)"),
        "{said}"
    );
}
