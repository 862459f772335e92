//! Labels that are too long for their place: what stands together stays distinct.

use std::collections::BTreeSet;

use neph_report::{CampaignData, Figure, PlotSettings, draw};

use crate::findings::shown;
use crate::legible::{no_text_touches, texts};
use crate::synthetic::{self, Link, METRO};

const LOADS: [&str; 4] = [
    "none",
    "host flow 10.90.1.1:8080 max",
    "host flow 10.90.1.2:8080 max",
    "host flow 10.90.1.1:8080 max, host flow 10.90.1.2:8080 max",
];

/// Two endpoints, each under four loads of which three begin and end alike.
fn under_loads() -> CampaignData {
    let names = ["limited", "free"];
    let of = |name| LOADS.map(|_| Link { name, ..METRO });
    let mut data = synthetic::over(&names.map(of).concat(), 1);
    for (index, scenario) in data.scenarios.iter_mut().enumerate() {
        let load = ("stress".to_owned(), LOADS[index % 4].to_owned());
        scenario.parameters.extend([load]);
        scenario.varied = vec!["stress".to_owned()];
    }
    data
}

fn labels(figure: &Figure) -> Vec<String> {
    let words = texts(&figure.scene).into_iter().map(|(_, text)| text.text);
    words.filter(|words| words.contains('…')).collect()
}

#[test]
fn loads_that_begin_and_end_alike_are_told_apart_in_figures() {
    let drawn = draw(&under_loads(), &PlotSettings::default());
    no_text_touches(&drawn);
    let several = ["ledger-bars", "boxes-by-stress", "send-skew", "server-skew"];
    for name in several {
        let figure = drawn.iter().find(|figure| figure.name == name);
        let cut = labels(figure.expect(name));
        let kinds: BTreeSet<&String> = cut.iter().collect();
        // In boxes every level stands once below each endpoint.
        let once = if name == "boxes-by-stress" { 2 } else { 1 };
        assert!(cut.len() > 1, "{name}: {cut:#?}");
        assert_eq!(kinds.len() * once, cut.len(), "{name}: {cut:#?}");
    }
}

#[test]
fn loads_that_begin_and_end_alike_are_told_apart_in_a_terminal() {
    for width in [40, 60, 80, 100, 120] {
        let shown = shown(&under_loads(), width);
        let table = shown.lines().filter(|line| line.contains('…'));
        let cut: Vec<&str> = table.filter_map(|line| line.split("  ").next()).collect();
        let kinds: BTreeSet<&&str> = cut.iter().collect();
        assert!(cut.len() > 1, "{width}: {shown}");
        assert_eq!(kinds.len(), cut.len(), "{width}: {shown}");
    }
}
