//! Reads `[[reroute]]` tables: scheduled route changes.

use std::ops::Range;

use neph_text::{Fault, Fields, FromNode, Node, Problems, Spanned, did_you_mean};

use super::link::LinkEnds;
use super::schedule::{Effect, RecurrenceSpec};
use super::service;
use crate::plan::routes;
use crate::topology::{Link, Reroute, RerouteAction, Routing, Topology};

/// The maximum weight of a next hop in the kernel.
const MAX_WEIGHT: u32 = 256;
/// Maximum number of entries, limited by the truth record.
const MAX_ENTRIES: usize = 1_000;

/// All changes of routes of a topology, in the order of the file.
pub(super) fn reroutes(
    fields: &mut Fields<'_>,
    ends: LinkEnds<'_>,
    links: &[Link],
    routing: Routing,
) -> Vec<Reroute> {
    let tables = fields.tables("reroute");
    if let Some(table) = tables.first().filter(|_| routing != Routing::Ecmp) {
        let message = "each site has only one path, so nothing can be rerouted";
        table.fault(table.span(), message, "write routing = \"ecmp\" at the top");
    }
    if tables.len() > MAX_ENTRIES {
        let message = format!("there are more than {MAX_ENTRIES} changes of routes");
        fields.fault(fields.span(), message, "use 'every' for what comes again");
    }
    let tables = tables.into_iter();
    let reroutes = tables.filter_map(|table| read_reroute(table, ends, links));
    reroutes.collect()
}

fn read_reroute(mut table: Fields<'_>, ends: LinkEnds<'_>, links: &[Link]) -> Option<Reroute> {
    let site = service::site_index(&mut table, "site", ends);
    let recurrence_spec = RecurrenceSpec::read(&mut table);
    let action = read_action(&mut table, site, ends, links);
    let effect = match action? {
        RerouteAction::Reshuffle => Effect::Permanent("a reshuffle"),
        RerouteAction::Weight { .. } => Effect::Temporary,
    };
    recurrence_spec.check(&table, effect);
    table.finish();
    let recurrence = recurrence_spec.recurrence();
    Some(Reroute {
        site: site?,
        at: recurrence.at,
        until: recurrence.until,
        every: recurrence.every,
        action: action?,
    })
}

fn read_action(
    table: &mut Fields<'_>,
    site: Option<usize>,
    ends: LinkEnds<'_>,
    links: &[Link],
) -> Option<RerouteAction> {
    let reshuffle = table.optional::<bool>("reshuffle");
    let link = table.optional::<String>("link");
    let has_weight = table.entry("weight").is_some();
    let weight = table.optional_with("weight", weight);
    if has_weight && weight.is_none() {
        // Its fault is reported already.
        return None;
    }
    match (reshuffle, link, weight) {
        (Some(Spanned { value: true, .. }), None, None) => Some(RerouteAction::Reshuffle),
        (None, Some(link_name), Some(weight)) => {
            let index = links.iter().position(|link| link.name == link_name.value);
            let own_link = index.filter(|index| {
                let Link { a, b, .. } = links[*index];
                site.is_none_or(|site| a == site || b == site)
            });
            if own_link.is_none() && ends.is_complete {
                let own_links = links
                    .iter()
                    .filter(|link| site.is_none_or(|site| link.a == site || link.b == site));
                let known_links: Vec<&str> = own_links.map(|link| link.name.as_str()).collect();
                let message = format!("this router has no link '{}'", link_name.value);
                table.fault(
                    link_name.span,
                    message,
                    did_you_mean(&link_name.value, &known_links),
                );
            }
            Some(RerouteAction::Weight {
                link: own_link?,
                weight: weight.value,
            })
        }
        _ => {
            let message = "this does not say what changes";
            let remedy = "write reshuffle = true, or a 'link' and its 'weight'";
            table.fault(table.span(), message, remedy);
            None
        }
    }
}

fn weight(node: &Node) -> Result<u32, Fault> {
    let weight = u32::from_node(node)?;
    if weight <= MAX_WEIGHT {
        return Ok(weight);
    }
    let remedy = format!("write a whole number from 0 to {MAX_WEIGHT}");
    Err(Fault::new(format!("{weight} is out of range"), remedy))
}

/// Checks that each router with scheduled changes has several next hops.
pub(super) fn check(topology: &Topology, span: &Range<usize>, problems: &Problems<'_>) {
    for (number, reroute) in topology.reroutes.iter().enumerate() {
        let routes = routes::routes(topology, reroute.site);
        let mut split = routes.iter().filter(|route| route.is_split());
        let has_choice = match reroute.action {
            RerouteAction::Reshuffle => split.next().is_some(),
            RerouteAction::Weight { link, .. } => split.any(|route| route.may_use(link)),
        };
        if !has_choice {
            let site = &topology.sites[reroute.site].name;
            let message = format!(
                "[[reroute]] {} changes nothing: '{site}' has no equal-cost paths there",
                number + 1
            );
            let remedy =
                "paths are equal when they have as many links; name a router that they part at";
            problems.add(span.clone(), Fault::new(message, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Span;
    use neph_text::{Problem, Source};

    use super::*;

    fn diamond_topology(extra_toml: &str) -> Result<Topology, Vec<Problem>> {
        let text = format!(
            "version = 1\nrouting = \"ecmp\"\nsite = [{{name = \"a\"}}, {{name = \"b\"}}]\n\
             router = [{{name = \"m\"}}, {{name = \"n\"}}]\n\
             link = [{{a = \"a\", b = \"m\"}}, {{a = \"m\", b = \"b\"}}, \
             {{a = \"a\", b = \"n\"}}, {{a = \"n\", b = \"b\"}}]\n[[reroute]]\n{extra_toml}\n"
        );
        Topology::parse(&Source::new("lab.toml", text))
    }

    #[test]
    fn a_reroute_reshuffles_or_changes_the_weight_of_a_next_hop() {
        let rest = "site = \"a\"\nat = \"5s\"\nevery = \"10s\"\nreshuffle = true\n\
                    [[reroute]]\nsite = \"b\"\nlink = \"n-b\"\nweight = 0\nuntil = \"3s\"";
        let topology = diamond_topology(rest).expect("fine");
        let secs = Span::from_secs;
        let requested = [
            Reroute {
                site: 0,
                at: secs(5),
                until: None,
                every: Some(secs(10)),
                action: RerouteAction::Reshuffle,
            },
            Reroute {
                site: 1,
                at: secs(0),
                until: Some(secs(3)),
                every: None,
                action: RerouteAction::Weight { link: 3, weight: 0 },
            },
        ];
        assert_eq!(topology.reroutes, requested);
    }

    #[test]
    fn invalid_reroutes_are_refused_with_a_remedy() {
        for (rest, part) in [
            ("site = \"a\"", "reshuffle = true"),
            ("site = \"a\"\nlink = \"a-m\"", "its 'weight'"),
            (
                "site = \"a\"\nlink = \"a-m\"\nweight = 257",
                "from 0 to 256",
            ),
            ("site = \"a\"\nlink = \"a-x\"\nweight = 2", "a-m"),
            ("site = \"a\"\nlink = \"m-b\"\nweight = 2", "a-m"),
            (
                "site = \"a\"\nreshuffle = true\nuntil = \"9s\"",
                "drop 'until'",
            ),
            ("site = \"q\"\nreshuffle = true", "did you mean"),
        ] {
            let mistakes = diamond_topology(rest).expect_err(rest);
            assert!(mistakes[0].remedy.contains(part), "{rest}: {mistakes:?}");
        }
        let single_link = "site = [{name = \"a\"}, {name = \"b\"}]\n\
                     link = [{a = \"a\", b = \"b\"}]\n\
                     [[reroute]]\nsite = \"a\"\nreshuffle = true\n";
        let text = format!("version = 1\nrouting = \"ecmp\"\n{single_link}");
        let mistakes = Topology::parse(&Source::new("lab.toml", text)).expect_err("one way");
        assert!(mistakes[0].remedy.contains("they part at"), "{mistakes:?}");
        let text = format!("version = 1\n{single_link}");
        let mistakes = Topology::parse(&Source::new("lab.toml", text)).expect_err("fastest");
        assert!(mistakes[0].remedy.contains("ecmp"), "{mistakes:?}");
    }
}
