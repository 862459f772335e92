//! False verdicts, and verdicts that are due: whether a report calls something slower or faster.

use neph_analysis::{Finding, PlotSettings, findings};

use crate::outcome::{Row, Section, Target};
use crate::world::World;

/// A report's share of false verdicts may be 5 %, and 1,000 reports settle it to 1.4.
const ALLOWED: Target = Target::AtMost(6.4);

/// Whether the sentence says that one of two is slower or faster.
fn is_verdict(finding: &Finding) -> bool {
    ["slower than", "faster than"]
        .iter()
        .any(|words| finding.text.contains(words))
}

/// The verdicts of one report on pairs that are equal (or not) in truth.
fn verdicts(world: &World, seed: u64, are_equal: bool) -> usize {
    let data = world.campaign(seed);
    let findings = findings(&data, &PlotSettings::default());
    let of_kind = |finding: &&Finding| match finding.about.as_slice() {
        [one, other, ..] => world.are_equal(one, other) == are_equal,
        _ => false,
    };
    findings
        .iter()
        .filter(|finding| is_verdict(finding))
        .filter(of_kind)
        .count()
}

/// How many of the reports have such a verdict.
fn reports_with(world: &World, reports: u64, are_equal: bool) -> usize {
    (0..reports)
        .filter(|seed| verdicts(world, *seed, are_equal) > 0)
        .count()
}

/// Reports of equal endpoints that call one of two slower.
pub(crate) fn false_verdict_section(reports: u64) -> Section {
    let mut rows = Vec::new();
    for count in [1, 3, 8, 12] {
        for is_one_slow in [false, true] {
            if is_one_slow && count == 1 {
                continue;
            }
            let mut world = World::with_equal_endpoints(count);
            if is_one_slow {
                world.endpoints[count / 2].median_ms *= 2.0;
            }
            rows.push(false_verdicts_row(
                &world,
                reports,
                endpoints_text(count, is_one_slow),
            ));
            world.intervals_ms = vec![100, 400];
            let title = format!("{}, two intervals", endpoints_text(count, is_one_slow));
            rows.push(false_verdicts_row(&world, reports, title));
        }
    }
    for count in [3, 12] {
        let mut world = World::with_equal_endpoints(count);
        world.has_distances = true;
        let title = format!("{}, with distances", endpoints_text(count, false));
        rows.push(false_verdicts_row(&world, reports, title));
    }
    Section {
        about: "Reports in which one of two equal endpoints or intervals is called slower or faster. \
                12 blocks; levels spread by 10 % between blocks and 8 % between experiments.",
        rows,
    }
}

fn endpoints_text(count: usize, is_one_slow: bool) -> String {
    let slow = if is_one_slow {
        ", one of them twice as slow"
    } else {
        ""
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} endpoint{plural}{slow}")
}

fn false_verdicts_row(world: &World, reports: u64, title: String) -> Row {
    Row {
        world: title,
        quantity: "reports with a false verdict".to_owned(),
        hits: reports_with(world, reports, true),
        cases: usize::try_from(reports).unwrap_or(usize::MAX),
        target: ALLOWED,
    }
}

/// How often a real difference is called one.
pub(crate) fn power_section(reports: u64) -> Section {
    let mut rows = Vec::new();
    for count in [2, 8] {
        for share in [0.05, 0.1, 0.2] {
            for blocks in [6, 8, 12, 20] {
                let mut world = World::with_equal_endpoints(count);
                world.blocks = blocks;
                world.between_experiments = 0.03;
                world.endpoints[1].median_ms *= 1.0 + share;
                rows.push(Row {
                    world: format!("{count} endpoints, {blocks} blocks"),
                    quantity: format!("the one that is {:.0} % slower is found", 100.0 * share),
                    hits: reports_with(&world, reports, false),
                    cases: usize::try_from(reports).unwrap_or(usize::MAX),
                    target: Target::Shown,
                });
            }
        }
    }
    Section {
        about: "Reports that call a slower endpoint slower. Levels spread by 3 % between experiments of a \
                block; 5 % is the least difference that matters.",
        rows,
    }
}
