//! Parses the target and the source ports of a trace.

use std::net::{IpAddr, SocketAddr};

use neph_model::{Target, TraceKind, of_many_hosts};

use crate::exit::Failure;

/// The first port of traditional traceroutes: it rarely has a listener.
const TRACEROUTE_PORT: u16 = 33_434;
/// More concurrent flows need more files than a process may open.
const MAX_PORTS: u16 = 50_000;

/// The kind of packets, and the target as for probes.
pub(super) fn parse(text: &str) -> Result<(TraceKind, Target), Failure> {
    let Some((scheme, _)) = text.split_once("://") else {
        let target = Target::with_port("udp", text, TRACEROUTE_PORT).map_err(Failure::usage)?;
        return Ok((TraceKind::Udp, target));
    };
    let (kind, result) = match scheme {
        "udp" => (TraceKind::Udp, Target::parse(text)),
        "icmp" => (TraceKind::Icmp, Target::parse(text)),
        "syn" => (TraceKind::Syn, Target::parse(text)),
        _ => {
            return Err(Failure::Usage(format!(
                "target '{text}': routes are traced with udp://, syn:// or icmp://, not with \
                 {scheme}://"
            )));
        }
    };
    Ok((kind, result.map_err(Failure::usage)?))
}

/// Refuses multicast and broadcast addresses: they have no single route.
pub(super) fn check_single_host(address: IpAddr) -> Result<(), Failure> {
    let Some(message) = of_many_hosts(address) else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "target {address} is {message}, to which there is no one route; give the address of one host"
    )))
}

/// Refuses a link-local address without an interface.
pub(super) fn check_link(destination: SocketAddr) -> Result<(), Failure> {
    match destination {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            let address = v6.ip();
            Err(Failure::Usage(format!(
                "target {address} is an address of one link only: say which, as {address}%eth0"
            )))
        }
        _ => Ok(()),
    }
}

/// Ports from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    pub(super) fn numbers(self) -> Vec<u16> {
        (self.first..=self.last).collect()
    }
}

/// Checks that packets of this kind can have these ports.
pub(super) fn check_ports(kind: TraceKind, ports: Ports) -> Result<(), Failure> {
    // The identifier of ICMP echo is its checksum, which cannot have this value.
    if kind == TraceKind::Icmp && ports.last == u16::MAX {
        return Err(Failure::usage(
            "--source-port: an identifier of ICMP echo is at most 65534 here; leave out 65535",
        ));
    }
    Ok(())
}

/// `4711`, `40000-40007`
pub(super) fn parse_ports(text: &str) -> Result<Ports, String> {
    let parse_port = |part: &str| match part.trim().parse::<u16>() {
        Ok(0) | Err(_) => Err(format!(
            "'{part}' is no port; write a number from 1 to 65535"
        )),
        Ok(port) => Ok(port),
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (parse_port(first)?, parse_port(last)?),
        None => (parse_port(text)?, parse_port(text)?),
    };
    if first > last {
        return Err(format!("{first} is behind {last}; write {last}-{first}"));
    }
    if last - first >= MAX_PORTS {
        return Err(format!("at most {MAX_PORTS} flows are traced at once"));
    }
    Ok(Ports { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_targets_have_the_default_schemes_and_ports() {
        for (text, kind, expected) in [
            ("host.example", TraceKind::Udp, "udp://host.example:33434"),
            ("host.example:53", TraceKind::Udp, "udp://host.example:53"),
            ("::1", TraceKind::Udp, "udp://[::1]:33434"),
            ("[::1]", TraceKind::Udp, "udp://[::1]:33434"),
            ("[::1]:9", TraceKind::Udp, "udp://[::1]:9"),
            ("udp://h", TraceKind::Udp, "udp://h:862"),
            ("syn://h:443", TraceKind::Syn, "syn://h:443"),
            ("icmp://10.0.0.1", TraceKind::Icmp, "icmp://10.0.0.1"),
        ] {
            let (scheme, target) = parse(text).expect(text);
            assert_eq!((scheme, target.to_string().as_str()), (kind, expected));
        }
    }

    #[test]
    fn targets_that_cannot_be_traced_are_refused_with_a_reason() {
        for (text, part) in [
            ("ws://h:80", "udp://, syn:// or icmp://, not with ws://"),
            (
                "syn://h",
                "the port is missing; write it as syn://host:port",
            ),
            ("", "has no host"),
        ] {
            let Err(Failure::Usage(message)) = parse(text) else {
                panic!("{text} is no target")
            };
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_link_local_address_needs_an_interface() {
        let check = |text: &str| check_link(text.parse().expect("an address"));
        let Err(Failure::Usage(message)) = check("[fe80::1]:9") else {
            panic!("of which link?")
        };
        assert!(message.contains("fe80::1%eth0"), "{message}");
        for valid in ["[fe80::1%2]:9", "[2001:db8::1]:9", "169.254.0.1:9"] {
            assert!(check(valid).is_ok(), "{valid}");
        }
    }

    #[test]
    fn ports_are_one_port_or_a_range() {
        let numbers_of = |text| parse_ports(text).map(Ports::numbers);
        assert_eq!(numbers_of("4711"), Ok(vec![4711]));
        assert_eq!(numbers_of("40000-40002"), Ok(vec![40_000, 40_001, 40_002]));
        assert_eq!(numbers_of("65535"), Ok(vec![65_535]));
        let last_port = parse_ports("65535").expect("a port");
        assert!(
            check_ports(TraceKind::Udp, last_port).is_ok()
                && check_ports(TraceKind::Icmp, last_port).is_err()
        );
        for text in ["0", "65536", "9-8", "x", "1-60000", "-5"] {
            assert!(parse_ports(text).is_err(), "{text}");
        }
    }
}
