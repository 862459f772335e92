//! Equivalence where the true difference is the margin itself: it must not be said.

use neph_analysis::{Layer, Margin, PlotSettings, findings};
use neph_model::Span;

use crate::outcome::{Row, Section, Target};
use crate::world::World;

/// Reports that call two endpoints equivalent.
fn count_equivalent_reports(world: &World, margin_ms: f64, reports: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
    let width = Span::from_nanos((margin_ms * 1e6) as i64);
    let settings = PlotSettings {
        margins: vec![Margin {
            endpoints: Vec::new(),
            layer: Layer::Response,
            width,
        }],
        ..PlotSettings::default()
    };
    let is_reported = |seed: &u64| {
        let findings = findings(&world.campaign(*seed), &settings);
        findings
            .iter()
            .any(|finding| finding.topic == "equivalence")
    };
    (0..reports).filter(is_reported).count()
}

pub(crate) fn equivalence_section(reports: u64) -> Section {
    let mut rows = Vec::new();
    for blocks in [6, 8, 12, 20] {
        let mut world = World::with_equal_endpoints(2);
        world.blocks = blocks;
        world.between_blocks = 0.0;
        world.between_experiments = 0.02;
        let cases = usize::try_from(reports).unwrap_or(usize::MAX);
        let mut row = |quantity: &str, hits: usize, target: Target| {
            rows.push(Row {
                world: format!("2 endpoints, {blocks} blocks, margin 2 ms"),
                quantity: quantity.to_owned(),
                hits,
                cases,
                target,
            });
        };
        let hits = count_equivalent_reports(&world, 2.0, reports);
        row("equal ones are called equivalent", hits, Target::Shown);
        world.endpoints[1].median_ms += 2.0;
        let hits = count_equivalent_reports(&world, 2.0, reports);
        row(
            "2 ms apart and called equivalent",
            hits,
            Target::AtMost(3.5),
        );
    }
    Section {
        about: "Reports that call two endpoints equivalent within 2 ms (10 %). At the margin at most 2.5 % may, \
                which 1,000 reports settle to 1.0.",
        rows,
    }
}
