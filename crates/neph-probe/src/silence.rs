//! Why a fleet gets no answers: what the target's host reports when it is asked, and a remedy. Owns the
//! sentence. Does not own the queries ([`port_probe`] and [`discover`]).

use std::thread;

use neph_model::{FleetEndpoint, ProbeKind, REFLECT_PORT as PORT, Span, Target, bracketed};

use neph_sys::place::Placement;

use crate::discover::{Discovery, DiscoveryOptions, discover};
use crate::fleet::FleetSpec;
use crate::port_probe::{PortProbeResult, probe_port};
use crate::spec::Trust;

/// Silent endpoints that are asked, at the same time.
const MAX_CONCURRENT_QUERIES: usize = 4;
/// Time limit for one query.
const QUERY_TIMEOUT: Span = Span::from_secs(1);

/// The likely problem of the STAMP secret where a reflector does not answer; `has_key`: whether a secret was
/// given.
#[must_use]
pub const fn stamp_suspicion(has_key: bool) -> &'static str {
    if has_key {
        "--stamp-key is not the reflector's secret"
    } else {
        "the reflector requires its secret (--stamp-key)"
    }
}

/// Endpoints without answers, and how they were asked.
#[derive(Clone, Debug)]
pub struct Silence {
    probe: ProbeKind,
    site: Option<Placement>,
    has_key: bool,
}

/// Findings about a silent endpoint.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and most combinations occur"
)]
struct EndpointState {
    probe: ProbeKind,
    has_key: bool,
    /// Its host reports that the port is closed.
    is_free: bool,
    /// A neph reflector accepts connections at the port.
    is_reflector: bool,
    /// A reflector listens at the default port.
    remote: bool,
}

impl Silence {
    /// For this fleet.
    pub fn new(spec: &FleetSpec) -> Self {
        Self {
            probe: spec.fleet.probe,
            site: spec.site.clone(),
            has_key: spec.key.is_some(),
        }
    }

    /// A sentence for each of these, for the first few; takes at most 3 s.
    pub fn explain<'a>(&self, silent: impl Iterator<Item = &'a FleetEndpoint>) -> Vec<String> {
        let silent: Vec<&FleetEndpoint> = silent.take(MAX_CONCURRENT_QUERIES).collect();
        thread::scope(|scope| {
            let queries = silent
                .iter()
                .map(|endpoint| scope.spawn(|| self.of(endpoint)));
            let queries: Vec<_> = queries.collect();
            let sentences = queries
                .into_iter()
                .filter_map(|scoped_join_handle| scoped_join_handle.join().ok());
            sentences.collect()
        })
    }

    fn of(&self, endpoint: &FleetEndpoint) -> String {
        let port = endpoint.address.port();
        let remote = || port != PORT && self.discover_reflector(endpoint, PORT).reflector;
        if self.probe.is_segment() {
            return sentence(endpoint, self.found(false, &Discovery::default(), false));
        }
        let discovery = self.discover_reflector(endpoint, port);
        let is_free = if self.probe.is_datagram() {
            let port_probe_result = probe_port(endpoint.address, QUERY_TIMEOUT, self.site.as_ref());
            port_probe_result
                .is_ok_and(|port_probe_result| port_probe_result == PortProbeResult::Refused)
        } else {
            discovery.closed
        };
        sentence(endpoint, self.found(is_free, &discovery, remote()))
    }

    const fn found(&self, is_free: bool, discovery: &Discovery, remote: bool) -> EndpointState {
        EndpointState {
            probe: self.probe,
            has_key: self.has_key,
            is_free,
            is_reflector: discovery.reflector,
            remote,
        }
    }

    /// The answer of a reflector over TCP at this port.
    fn discover_reflector(&self, endpoint: &FleetEndpoint, port: u16) -> Discovery {
        let mut address = endpoint.address;
        address.set_port(port);
        let options = DiscoveryOptions {
            tls_version: None,
            trust: Trust::Public,
            patience: QUERY_TIMEOUT,
            site: self.site.clone(),
        };
        let target = Target::parse(&format!("http://{address}"));
        let discovery = target.map(|target| discover(&target, address, &options));
        discovery.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// The finding and its remedy.
fn sentence(endpoint: &FleetEndpoint, state: EndpointState) -> String {
    let EndpointState { probe, .. } = state;
    let (ip, port) = (endpoint.address.ip(), endpoint.address.port());
    let host = bracketed(&ip.to_string());
    let layer = probe.protocol();
    let at = format!("{layer} {port} of {ip}");
    if probe.is_segment() {
        return format!(
            "{at} answers no SYN, neither with SYN-ACK nor with RST: a firewall drops them, or the host does not exist"
        );
    }
    if state.remote {
        let silent = if state.is_free {
            format!("nothing listens at {at}")
        } else {
            format!("no answer from {at}")
        };
        return format!("{silent}; neph reflect answers at {PORT}: write {probe}://{host}:{PORT}");
    }
    if state.is_reflector {
        let secret = stamp_suspicion(state.has_key);
        return format!(
            "neph reflect is at port {port} of {ip} and takes connections, but nothing comes back over {layer}: a firewall drops it, or {secret}"
        );
    }
    let which = if port == PORT {
        String::new()
    } else {
        format!(" (its default port is {PORT}: write {probe}://{host}:{PORT})")
    };
    let other = if probe == ProbeKind::Udp {
        ", or another STAMP reflector"
    } else {
        ""
    };
    if state.is_free {
        // By default it listens on IPv4 only.
        let how = if ip.is_ipv6() {
            format!(" --listen '[::]:{PORT}'")
        } else {
            String::new()
        };
        format!("nothing listens at {at}; start neph reflect{how} there{which}{other}")
    } else {
        format!(
            "no answer from {at}; is neph reflect{which}{other} running there, and does every firewall pass {layer}?"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence_about(target: (&str, ProbeKind), state: EndpointState) -> String {
        let endpoint = FleetEndpoint {
            name: "x".to_owned(),
            address: target.0.parse().expect("an address"),
        };
        let probe = target.1;
        sentence(&endpoint, EndpointState { probe, ..state })
    }

    #[test]
    fn each_silence_message_names_the_port_and_the_remedy() {
        let unreachable = EndpointState {
            probe: ProbeKind::Udp,
            has_key: false,
            is_free: false,
            is_reflector: false,
            remote: false,
        };
        let free = EndpointState {
            is_free: true,
            ..unreachable
        };
        let remote = EndpointState {
            remote: true,
            ..free
        };
        let silent_endpoint = EndpointState {
            is_reflector: true,
            ..unreachable
        };
        let udp = ("192.0.2.1:862", ProbeKind::Udp);
        let sentences = [
            sentence_about(udp, remote),
            sentence_about(udp, free),
            sentence_about(udp, unreachable),
            sentence_about(udp, silent_endpoint),
            sentence_about(("[2001:db8::1]:8080", ProbeKind::Udp), free),
            sentence_about(("[2001:db8::1]:80", ProbeKind::Tcp), remote),
            sentence_about(("192.0.2.1:443", ProbeKind::Syn), unreachable),
        ];
        let expected = [
            "nothing listens at UDP 862 of 192.0.2.1; neph reflect answers at 8080: write udp://192.0.2.1:8080",
            "nothing listens at UDP 862 of 192.0.2.1; start neph reflect there (its default port is 8080: write udp://192.0.2.1:8080), or another STAMP reflector",
            "no answer from UDP 862 of 192.0.2.1; is neph reflect (its default port is 8080: write udp://192.0.2.1:8080), or another STAMP reflector running there, and does every firewall pass UDP?",
            "neph reflect is at port 862 of 192.0.2.1 and takes connections, but nothing comes back over UDP: a firewall drops it, or the reflector requires its secret (--stamp-key)",
            "nothing listens at UDP 8080 of 2001:db8::1; start neph reflect --listen '[::]:8080' there, or another STAMP reflector",
            "nothing listens at TCP 80 of 2001:db8::1; neph reflect answers at 8080: write tcp://[2001:db8::1]:8080",
            "TCP 443 of 192.0.2.1 answers no SYN, neither with SYN-ACK nor with RST: a firewall drops them, or the host does not exist",
        ];
        assert_eq!(sentences, expected);
    }
}
