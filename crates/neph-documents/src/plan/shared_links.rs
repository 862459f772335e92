//! Links that circuits of a plan share, as traceroutes of an earlier campaign show them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use neph_campaign::Plan;
use neph_campaign::timetable::{CircuitRoute, shared_hops};
use neph_model::Traceroute;

/// A circuit as a plan writes it.
struct Circuit {
    site: String,
    endpoint: String,
}

/// Writes which links the circuits of `plan` share by these traceroutes, the latest of each
/// circuit, and how the plan would declare them.
///
/// # Errors
/// It cannot be written.
pub fn write_shared_links(
    out: &mut impl Write,
    plan: &Plan,
    traces: &[Traceroute],
) -> io::Result<()> {
    let only_site = match plan.agents.as_slice() {
        [only_site] => Some(only_site.name.value.as_str()),
        _ => None,
    };
    let mut latest_traces: BTreeMap<(&str, &str), &Traceroute> = BTreeMap::new();
    for trace in traces.iter().filter(|trace| trace.failure.is_none()) {
        if let Some(site) = trace.site.as_deref().or(only_site) {
            latest_traces.insert((site, &trace.endpoint), trace);
        }
    }
    let mut circuits = Vec::new();
    let mut routes = Vec::new();
    for ((site, name), trace) in latest_traces {
        let mut endpoints = plan.endpoints.iter();
        let Some(endpoint) = endpoints.find(|endpoint| endpoint.name == name) else {
            continue;
        };
        let destination = endpoint.site.as_deref().unwrap_or(name);
        routes.push(CircuitRoute::from_traceroute(site, destination, trace));
        circuits.push(Circuit {
            site: site.to_owned(),
            endpoint: name.to_owned(),
        });
    }
    let links = shared_hops(&routes);
    if links.is_empty() {
        return writeln!(
            out,
            "\nshared links: none in the traces of {} circuits",
            circuits.len()
        );
    }
    writeln!(
        out,
        "\nshared links, in the traces of {} circuits:",
        circuits.len()
    )?;
    for link in links {
        let name = link.routers.first().zip(link.routers.last());
        let name = name.map_or_else(String::new, |(from, to)| format!("{from} to {to}"));
        let circuits = link.circuits.iter().map(|index| &circuits[*index]);
        let circuits =
            circuits.map(|circuit| format!("\"{} -> {}\"", circuit.site, circuit.endpoint));
        let circuits: Vec<String> = circuits.collect();
        writeln!(out, "  {link}")?;
        writeln!(out, "    [[shared_link]]")?;
        writeln!(out, "    name = \"{name}\"")?;
        writeln!(out, "    circuits = [{}]", circuits.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use neph_campaign::plan;
    use neph_model::{Hop, Wall};
    use neph_text::Source;

    use super::*;

    const PLAN: &str = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 9\n\
        [[site]]\nname = \"ams\"\nagent = \"a\"\n[[site]]\nname = \"lju\"\nagent = \"l\"\n\
        [[endpoint]]\nname = \"x\"\nurl = \"ws://x\"\nfrom = \"ams\"\n\
        [[endpoint]]\nname = \"y\"\nurl = \"ws://y\"\nfrom = \"lju\"\n";

    fn trace(site: &str, endpoint: &str, routers: &[u8]) -> Traceroute {
        let hops = (1..).zip(routers).map(|(ttl, last)| Hop {
            ttl,
            addresses: vec![[10, 0, 0, *last].into()],
            round_trips: Vec::new(),
        });
        Traceroute {
            block: 0,
            endpoint: endpoint.to_owned(),
            site: Some(site.to_owned()),
            destination: [10, 9, 9, 9].into(),
            started: Wall::from_unix_nanos(0),
            hops: hops.collect(),
            reached: true,
            failure: None,
        }
    }

    fn render(text: &str, traces: &[Traceroute]) -> String {
        let plan = plan::parse(&Source::new("p.toml", text)).expect("a good plan");
        let mut out = Vec::new();
        write_shared_links(&mut out, &plan, traces).expect("it is written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn shared_links_are_printed_as_a_table_that_the_plan_accepts() {
        let traces = [trace("ams", "x", &[1, 7, 8]), trace("lju", "y", &[2, 7, 8])];
        let text = render(PLAN, &traces);
        assert!(
            text.contains("circuits ams-x and lju-y share the link 10.0.0.7 -> 10.0.0.8"),
            "{text}"
        );
        let table: Vec<&str> = text.lines().skip(3).collect();
        let table = table.join("\n");
        let parsed_plan = plan::parse(&Source::new("p.toml", format!("{PLAN}{table}")));
        let shared_links = parsed_plan.expect("a good plan").shared;
        assert!(shared_links[0].is_used_by_circuit(Some("ams"), "x", None));
        assert!(!shared_links[0].is_used_by_circuit(Some("ams"), "y", None));
        // The latest route of a circuit counts.
        let later_traces = [traces.as_slice(), &[trace("ams", "x", &[1, 3, 8])]].concat();
        assert_eq!(
            render(PLAN, &later_traces),
            "\nshared links: none in the traces of 2 circuits\n"
        );
    }
}
