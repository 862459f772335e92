//! What a reflector's caps refused to one address: how it tells, and asking for it.
//!
//! Owns the response header to HEAD, and a fleet's asking before and after. Does not own the caps: a
//! STAMP request beyond them gets no answer, so that only the reflector knows why it was lost.

use std::fmt;
use std::thread;

use neph_model::{FleetEndpoint, ProbeKind, Span};
use neph_sys::clock;
use neph_sys::place::Place;

use crate::discover::{Asking, discover};
use crate::fleet::FleetSpec;
use crate::machine::at_site;
use crate::spec::{TlsVersion, Trust};
use crate::stamp_clock::now;
use crate::target::Target;

/// The response header.
pub(crate) const REFUSED_HEADER: &str = "Neph-Refused";
/// How long one answer is waited for, and how long one is tried for in the end: connections that
/// were just closed count for a moment more.
const PATIENCE: Span = Span::from_secs(1);
const TRYING: Span = Span::from_secs(2);
const PAUSE: Span = Span::from_millis(100);
/// Endpoints that are asked at the same time.
const AT_ONCE: usize = 32;

/// What a reflector refused to the address that asks, since it knows that address, and its caps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Messages beyond the rate.
    pub messages: u64,
    /// That rate: messages a second from one address.
    pub messages_per_second: u32,
    /// Connections beyond the number.
    pub connections: u64,
    /// That number: connections at the same time from one address.
    pub connections_per_peer: u32,
}

impl fmt::Display for Refusals {
    /// As the header has it: four numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (messages, rate) = (self.messages, self.messages_per_second);
        let (connections, most) = (self.connections, self.connections_per_peer);
        write!(f, "{messages} {rate} {connections} {most}")
    }
}

impl Refusals {
    /// Reads the header; `None` if it is none.
    pub(crate) fn read(header: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(header).ok()?.split(' ');
        let read = Self {
            messages: parts.next()?.parse().ok()?,
            messages_per_second: parts.next()?.parse().ok()?,
            connections: parts.next()?.parse().ok()?,
            connections_per_peer: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(read)
    }

    /// What was refused since it told `earlier`.
    const fn since(self, earlier: &Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(earlier.messages),
            connections: self.connections.saturating_sub(earlier.connections),
            ..self
        }
    }
}

/// A fleet's endpoints, and what each had refused when the fleet began.
#[derive(Debug)]
pub struct RefusalWatch {
    site: Option<Place>,
    known: Vec<(FleetEndpoint, Refusals)>,
}

impl RefusalWatch {
    /// Asks each endpoint that may be a reflector of ours, once: a connection of its own to the port
    /// that the fleet asks. Takes a second at worst.
    pub fn begin(spec: &FleetSpec) -> Self {
        let endpoints: &[FleetEndpoint] = match spec.fleet.probe {
            ProbeKind::Udp | ProbeKind::Tcp => &spec.fleet.endpoints,
            _ => &[],
        };
        let site = spec.site.clone();
        let told = ask_all(site.as_ref(), endpoints, Span::ZERO);
        let known = endpoints.iter().cloned().zip(told);
        let known = known.filter_map(|(endpoint, told)| Some((endpoint, told?)));
        Self {
            known: known.collect(),
            site,
        }
    }

    /// The same for one endpoint that told when it was discovered, from `site`: it is not asked again.
    pub fn told(endpoint: FleetEndpoint, refused: Refusals, site: Option<Place>) -> Self {
        Self {
            site,
            known: vec![(endpoint, refused)],
        }
    }

    /// What each refused since then; none of those that refused nothing.
    pub fn end(self) -> Vec<(FleetEndpoint, Refusals)> {
        let endpoints: Vec<FleetEndpoint> = self.known.iter().map(|(one, _)| one.clone()).collect();
        let told = ask_all(self.site.as_ref(), &endpoints, TRYING);
        let both = self.known.into_iter().zip(told);
        both.filter_map(|((endpoint, before), after)| Some((endpoint, after?.since(&before))))
            .filter(|(_, refused)| refused.messages + refused.connections > 0)
            .collect()
    }
}

/// Asks all of them; those that do not answer are tried again for so long.
fn ask_all(
    site: Option<&Place>,
    endpoints: &[FleetEndpoint],
    trying: Span,
) -> Vec<Option<Refusals>> {
    let all = || {
        let mut told = Vec::with_capacity(endpoints.len());
        for some in endpoints.chunks(AT_ONCE) {
            thread::scope(|scope| {
                let asking: Vec<_> = some
                    .iter()
                    .map(|endpoint| scope.spawn(move || ask(endpoint, trying)))
                    .collect();
                told.extend(asking.into_iter().map(|one| one.join().ok().flatten()));
            });
        }
        told
    };
    at_site(site, all).unwrap_or_default()
}

fn ask(endpoint: &FleetEndpoint, trying: Span) -> Option<Refusals> {
    let address = endpoint.address;
    let target = Target::tcp(&address.ip().to_string(), address.port()).ok()?;
    let asking = Asking {
        tls_version: TlsVersion::Any,
        trust: Trust::Public,
        patience: PATIENCE,
        site: None,
    };
    let latest = now() + trying;
    loop {
        let found = discover(&target, address, &asking).ok()?;
        if found.refused.is_some() || now() >= latest {
            return found.refused;
        }
        clock::nap(PAUSE.to_duration());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_numbers_read_back_and_nothing_else_does() {
        let told = Refusals {
            messages: 5,
            messages_per_second: 120_000,
            connections: 3,
            connections_per_peer: 512,
        };
        assert_eq!(told.to_string(), "5 120000 3 512");
        assert_eq!(Refusals::read(told.to_string().as_bytes()), Some(told));
        for wrong in [
            "",
            "5",
            "5 120000 3",
            "5 120000 3 512 1",
            "5 -1 3 512",
            "a b c d",
        ] {
            assert_eq!(Refusals::read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_reflector_that_began_anew_has_refused_nothing_since() {
        let earlier = Refusals {
            messages: 5,
            ..Refusals::default()
        };
        assert_eq!(Refusals::default().since(&earlier).messages, 0);
    }
}
