//! `[[site]]`: sites at a distance, and the agent that measures at each.

use std::net::{IpAddr, Ipv4Addr};

use neph_model::{AgentName, ReflectorSpec, Target};
use neph_text::{Fault, Fields, Node, Problems, Spanned};

use super::reflector::parse_reflector_flags;
use super::single_line_text::single_line_text;

/// A site at a distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSite {
    /// Its name, which `from` uses.
    pub name: Spanned<String>,
    /// The agent that is there.
    pub agent: Spanned<AgentName>,
    /// Where other sites reach it: what a target that names the site leads to.
    pub address: Option<String>,
    /// What answers probes there as long as the campaign runs; nothing of the campaign's if absent.
    pub reflector: Option<ReflectorSpec>,
}

fn agent_name(node: &Node) -> Result<AgentName, Fault> {
    let text = single_line_text(node)?;
    text.parse().map_err(|_| {
        Fault::new(
            format!("'{text}' cannot be the name of an agent"),
            "write the name that neph agents shows: lower-case letters, digits and hyphens",
        )
    })
}

/// A name or an address, without a port.
fn address(node: &Node) -> Result<String, Fault> {
    let text = single_line_text(node)?;
    let host = text.trim_start_matches('[').trim_end_matches(']');
    match Target::icmp(host) {
        Ok(target) => Ok(target.host().to_owned()),
        Err(_) => Err(Fault::new(
            format!("'{text}' is no address of a host"),
            "write a name or an address without a port, as \"192.0.2.7\"",
        )),
    }
}

/// The flags of `neph reflect`.
fn read_reflector(table: &mut Fields<'_>) -> Option<ReflectorSpec> {
    let entry = table.entry("reflector")?;
    let span = entry.node.span.clone();
    let flags = table
        .one_or_list_with("reflector", single_line_text)
        .unwrap_or_default();
    match parse_reflector_flags(flags.iter().map(|flag| flag.value.as_str())) {
        Ok(spec) => Some(spec),
        Err(fault) => {
            table.fault(span, fault.message, fault.remedy);
            None
        }
    }
}

/// The ports at which the servers of a site's reflector listen.
fn ports(site: &AgentSite) -> impl Iterator<Item = u16> + '_ {
    site.reflector.iter().flat_map(ReflectorSpec::ports)
}

/// The same text for the same host, without a look-up of names.
fn host_of_address(address: &str) -> String {
    let address = address.to_ascii_lowercase();
    if address == "localhost" {
        return IpAddr::from(Ipv4Addr::LOCALHOST).to_string();
    }
    let ip = address.parse::<IpAddr>();
    ip.map_or(address, |ip| ip.to_string())
}

/// The first site at the same address that uses ports of this one, and these ports. Only one of the
/// servers could start there, and both sites would measure it.
fn port_conflict<'a>(
    site: &AgentSite,
    sites: &'a [AgentSite],
) -> Option<(&'a AgentSite, Vec<u16>)> {
    let host = site.address.as_deref().map(host_of_address)?;
    let has_same_address = |other: &&AgentSite| {
        let other_host = other.address.as_deref().map(host_of_address);
        other_host.as_ref() == Some(&host)
    };
    sites.iter().filter(has_same_address).find_map(|other| {
        let is_used = |port: &u16| ports(other).any(|used| used == *port);
        let shared: Vec<u16> = ports(site).filter(is_used).collect();
        (!shared.is_empty()).then_some((other, shared))
    })
}

pub(super) fn read(fields: &mut Fields<'_>) -> Vec<AgentSite> {
    let mut sites: Vec<AgentSite> = Vec::new();
    for mut table in fields.tables("site") {
        let name = table.required_with("name", single_line_text);
        let agent = table.required_with("agent", agent_name);
        let address = table.optional_with("address", address);
        let reflector = read_reflector(&mut table);
        if let (Some(name), Some(agent)) = (name, agent) {
            if sites.iter().any(|other| other.name.value == name.value) {
                let message = format!("there are two sites '{}'", name.value);
                table.fault(name.span.clone(), message, "give each a name of its own");
            }
            if sites.iter().any(|other| other.agent.value == agent.value) {
                let message = format!("two sites have agent {}", agent.value);
                table.fault(agent.span.clone(), message, "an agent is at one site");
            }
            let site = AgentSite {
                name,
                agent,
                address: address.map(|address| address.value),
                reflector,
            };
            if let Some((other, shared)) = port_conflict(&site, &sites) {
                let names = format!("'{}' and '{}'", other.name.value, site.name.value);
                let noun = if shared.len() == 1 { "port" } else { "ports" };
                let shared: Vec<String> = shared.iter().map(u16::to_string).collect();
                let message = format!(
                    "sites {names} have one address and both use its {noun} {}",
                    shared.join(" and ")
                );
                let remedy =
                    "give one of them other ports: --listen, --throughput=PORT, --media=PORT";
                let entry = table.entry("reflector");
                let span = entry.map_or(&site.name.span, |entry| &entry.node.span);
                table.fault(span.clone(), message, remedy);
            }
            sites.push(site);
        }
        table.finish();
    }
    sites
}

/// What `from` names must be there, and a lab and sites at a distance do not go into one plan.
pub(super) fn check(
    sites: &[AgentSite],
    has_lab: bool,
    site_names: &[Spanned<String>],
    problems: &Problems<'_>,
) {
    let Some(first) = sites.first() else {
        return;
    };
    if has_lab {
        let message = "a plan has a [lab] or a [[site]] with an agent, not both";
        problems.add(
            first.name.span.clone(),
            Fault::new(message, "remove one of them"),
        );
    }
    // Two sites with one name are a fault of their own.
    let mut known_names: Vec<&str> = Vec::new();
    for site in sites {
        if !known_names.contains(&site.name.value.as_str()) {
            known_names.push(&site.name.value);
        }
    }
    for name in site_names {
        if !sites.iter().any(|site| site.name.value == name.value) {
            let message = format!("there is no site '{}'", name.value);
            let remedy = format!("write one of {}, or add a [[site]]", known_names.join(", "));
            problems.add(name.span.clone(), Fault::new(message, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::expand::scenarios;
    use crate::plan::parse;

    /// A mesh: each site measures the two others.
    const MESH: &str = "version = 1\nname = \"mesh\"\ninterval = \"10ms\"\nmessages = 10\n\
        from = [\"ams\", \"lju\", \"mil\"]\n\
        [[site]]\nname = \"ams\"\nagent = \"a\"\naddress = \"10.0.0.1\"\nreflector = [\"--listen\", \"[::]:8600\"]\n\
        [[site]]\nname = \"lju\"\nagent = \"l\"\naddress = \"2001:db8::2\"\nreflector = \"--tls\"\n\
        [[site]]\nname = \"mil\"\nagent = \"m\"\n\
        [[endpoint]]\nname = \"to ams\"\nurl = \"udp://ams:8600\"\n\
        [[endpoint]]\nname = \"to lju\"\nurl = \"ws://lju:8080/x\"\n\
        [[endpoint]]\nname = \"to mil\"\nurl = \"icmp://mil\"\n";

    #[test]
    fn site_targets_resolve_to_addresses_and_exclude_their_own_site() {
        let plan = parse(&Source::new("p.toml", MESH)).expect("a good plan");
        let target_and_site = |index: usize| {
            let endpoint = &plan.endpoints[index];
            (endpoint.target.to_string(), endpoint.site.as_deref())
        };
        assert_eq!(
            target_and_site(0),
            ("udp://10.0.0.1:8600".to_owned(), Some("ams"))
        );
        assert_eq!(
            target_and_site(1),
            ("ws://[2001:db8::2]:8080/x".to_owned(), Some("lju"))
        );
        // Without an address its name is looked up like any other.
        assert_eq!(target_and_site(2), ("icmp://mil".to_owned(), Some("mil")));
        let circuits: Vec<(String, String)> = scenarios(&plan)
            .iter()
            .map(|scenario| {
                (
                    scenario.site().unwrap_or("").to_owned(),
                    scenario.endpoint.clone(),
                )
            })
            .collect();
        assert_eq!(circuits.len(), 6, "{circuits:?}");
        assert!(
            circuits
                .iter()
                .all(|(from, to)| !to.ends_with(from.as_str()))
        );
        let ports: Vec<Option<u16>> = plan
            .agents
            .iter()
            .map(|site| site.reflector.as_ref().map(|spec| spec.address.port()))
            .collect();
        assert_eq!(ports, [Some(8600), Some(8080), None]);
    }

    #[test]
    fn two_reflectors_at_one_address_need_different_ports() {
        let shared = MESH.replace("2001:db8::2", "10.0.0.1").replace(
            "\"--tls\"",
            "[\"--listen\", \"[::]:8601\", \"--throughput\"]",
        );
        assert!(parse(&Source::new("p.toml", shared.as_str())).is_ok());
        let with_media = shared.replace("[::]:8600\"", "[::]:8600\", \"--media=7420\"");
        let named = shared.replacen("10.0.0.1", "localhost", 1);
        let named = named.replace("10.0.0.1", "127.0.0.1");
        for (plan, ports) in [
            (shared.replace("8601", "8600"), "port 8600"),
            (named.replace("8601", "8600"), "port 8600"),
            (with_media.clone(), "port 7420"),
            (with_media.replace("8601", "8600"), "ports 8600 and 7420"),
        ] {
            let problems = parse(&Source::new("p.toml", plan));
            let text = format!("{:?}", problems.expect_err("one port for two servers"));
            let part = format!("sites 'ams' and 'lju' have one address and both use its {ports}");
            assert!(text.contains(&part), "{text}");
        }
    }

    #[test]
    fn duplicate_site_names_are_refused_and_suggested_once() {
        let plan = MESH.replace("[[site]]\nname = \"lju\"", "[[site]]\nname = \"ams\"");
        let problems = parse(&Source::new("p.toml", plan)).expect_err("two sites 'ams'");
        let text = format!("{problems:?}");
        for part in [
            "there are two sites 'ams'",
            "there is no site 'lju'",
            "write one of ams, mil, or add a [[site]]",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn invalid_addresses_and_flags_are_refused_with_their_place() {
        for (from, to, part) in [
            ("10.0.0.1", "10.0.0.1:8600", "is no address of a host"),
            ("--tls", "--tsl", "--tls"),
        ] {
            let problems = parse(&Source::new("p.toml", MESH.replace(from, to)));
            let problems = problems.expect_err("a mistake");
            let text = format!("{problems:?}");
            assert!(text.contains(part), "{text}");
        }
    }
}
