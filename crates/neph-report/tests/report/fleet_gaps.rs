//! What a fleet's figures and tables say where something is missing: flows that got nothing back, and
//! the oldest changes, which were too many to keep.

use neph_flows::Latency;
use neph_model::Span;
use neph_report::{Cell, PlotSettings, findings, tables};

use crate::fleets::{SMALL, drawn, words};
use crate::synthetic::fleet::World;

#[test]
fn what_was_forgotten_is_said_beside_every_figure_and_table_that_lacks_it() {
    let mut data = SMALL.campaign();
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    fleet.pairs[0].forgotten = Some(fleet.from + Span::from_secs(100));
    for bin in fleet.fairness[0].iter_mut().take(5) {
        (bin.changes, bin.base) = (None, None);
    }
    let settings = PlotSettings::default();
    let figures = drawn(&data);
    for kind in ["flow-spectrum", "flow-changes", "flow-moved"] {
        let words = words(&figures, kind).replace('\n', " ");
        assert!(
            words.contains("what flows did at the beginning is left out"),
            "{kind}: {words}"
        );
        assert!(words.contains("block 1: 100.000 s"), "{kind}: {words}");
    }
    for table in tables(&data, &settings) {
        let says = table
            .notes
            .iter()
            .any(|note| note.contains("left out, which does not mean"));
        let lacks = table.name.starts_with("flow-") && table.name != "flow-loss";
        assert_eq!(says, lacks, "{}", table.name);
    }
    let told = findings(&data, &settings);
    assert!(
        told.iter()
            .any(|one| one.text.contains("since the oldest had to be forgotten"))
    );
}

#[test]
fn a_quantile_that_falls_on_lost_flows_is_lost_and_no_number() {
    let world = World {
        flows: 128,
        ..SMALL
    };
    let mut data = world.campaign();
    let fleet = data.experiments[0].fleet.as_mut().unwrap();
    for bin in &mut fleet.fairness[0] {
        bin.lost = 9;
        bin.latency[2..].fill(Latency::Lost);
    }
    let all = tables(&data, &PlotSettings::default());
    let pairs = all.iter().find(|table| table.name == "flow-pairs").unwrap();
    let told = ["p95_ms", "most_lost_flows"].map(|name| {
        let place = pairs.columns.iter().position(|column| column.0 == name);
        pairs.rows[0][place.unwrap()].clone()
    });
    assert_eq!(told, [Cell::Lost, Cell::Integer(9)]);
    let words = words(&drawn(&data), "flow-fairness");
    assert!(words.contains("p95 lost; 128 flows, 15 bins"), "{words}");
}
