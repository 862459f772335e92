//! Reads `[[overlay]]`, `[[balancer]]` and `[[guest]]` tables; each kind reads its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use neph_text::{Fields, choice};

use super::link::LinkEnds;
use super::service;
use crate::links::{BALANCER_KINDS, GUEST_KINDS, OVERLAY_KINDS};
use crate::topology::fixture::{Fixture, FixtureKind, Nodes};
use crate::topology::{Link, Service};

/// All fixtures: overlays, then balancers, then guests.
pub(super) fn fixtures(
    fields: &mut Fields<'_>,
    ends: LinkEnds<'_>,
    links: &[Link],
    services: &[Service],
) -> Vec<Fixture> {
    let nodes = Nodes {
        sites: ends.sites,
        links,
        is_complete: ends.is_complete,
    };
    let mut fixtures: Vec<Fixture> = Vec::new();
    let mut names = BTreeSet::new();
    let tables = [
        ("overlay", OVERLAY_KINDS),
        ("balancer", BALANCER_KINDS),
        ("guest", GUEST_KINDS),
    ];
    for (key, kinds) in tables {
        for table in fields.tables(key) {
            let span = table.span();
            let Some(fixture) = read_fixture(table, kinds, nodes) else {
                continue;
            };
            if !names.insert(fixture.name.clone()) {
                let message = format!(
                    "two overlays, balancers or guests are called '{}'",
                    fixture.name
                );
                fields.fault(span.clone(), message, "give each its own name");
            }
            // Its programs use the fixture's name in status and logs.
            if services.iter().any(|service| service.name == fixture.name) {
                let message = format!("a service is called '{}' too", fixture.name);
                fields.fault(span, message, "give each its own name");
            }
            fixtures.push(fixture);
        }
    }
    fixtures
}

fn read_fixture(
    mut table: Fields<'_>,
    kinds: &[&'static dyn FixtureKind],
    nodes: Nodes<'_>,
) -> Option<Fixture> {
    let name = table.required_with("name", service::program_name);
    let choices: Vec<(&str, &'static dyn FixtureKind)> =
        kinds.iter().map(|kind| (kind.name(), *kind)).collect();
    // Without its kind the other keys are unknown.
    let kind = table.required_with("kind", |node| choice(node, &choices))?;
    let build = kind.value.read(&mut table, nodes);
    table.finish();
    Some(Fixture {
        name: name?.value,
        kind: kind.value.name(),
        build: Arc::from(build?),
    })
}
