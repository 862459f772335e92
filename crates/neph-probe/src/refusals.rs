//! Queries what reflectors refused, before a fleet and after it.
//!
//! The answer is [`Refusals`]. Does not own the caps. A STAMP request beyond them gets no answer, so only the
//! reflector knows why it was lost.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;

use neph_model::{FleetEndpoint, Instant, Local, Span, Stop, Target};
use neph_sys::clock;
use neph_sys::place::Placement;

use crate::discover::{DiscoveryOptions, discover};
use crate::fleet::FleetSpec;
use crate::machine::at_site;
use crate::refused::Refusals;
use crate::spec::Trust;
use crate::stamp_clock::now;

/// Time limit for one answer.
const QUERY_TIMEOUT: Span = Span::from_secs(1);
/// Time limit for all queries before a fleet.
const TIMEOUT_BEFORE_FLEET: Span = Span::from_secs(4);
/// Tries before a fleet, as a packet may be lost; few, as it may be a third-party server.
const MAX_TRIES: u32 = 2;
/// Time limit for all queries after a fleet. Only endpoints that answered before are asked, repeatedly, as
/// connections that were just closed count for a moment more.
const TIMEOUT_AFTER_FLEET: Span = Span::from_secs(2);
/// Least time between two tries at an endpoint.
const RETRY_INTERVAL: Span = Span::from_millis(100);
/// How long a fleet waits for the answers before it begins. Unless the reflector is very far, its counters
/// before the first message are known then.
const HEAD_START: Span = Span::from_millis(100);
/// Endpoints that are asked at the same time: no more files than a fleet leaves to others.
const MAX_CONCURRENT_QUERIES: usize = 32;

/// A fleet's endpoints, and what each had refused when the fleet began. An address with several names is one
/// endpoint, with the first name: reflectors count by the client's address.
#[derive(Debug)]
pub struct RefusalWatch {
    site: Option<Placement>,
    endpoints: Vec<FleetEndpoint>,
    before: EarlierRefusals,
}

/// What each of them had refused before.
#[derive(Debug)]
enum EarlierRefusals {
    Known(Vec<Option<Refusals>>),
    /// They are still being asked, until the flag is set.
    Asked(Receiver<Vec<Option<Refusals>>>, Stop),
}

impl RefusalWatch {
    /// Asks each endpoint that may be a neph reflector, on a new connection to the fleet's port, and with a
    /// second one if there is no answer. Takes at most 0.1 s. The others are asked on for 4 s in all, while
    /// the fleet runs.
    pub fn begin(spec: &FleetSpec) -> Self {
        let endpoints: &[FleetEndpoint] = if spec.fleet.probe.is_identified() {
            &spec.fleet.endpoints
        } else {
            &[]
        };
        let mut addresses = BTreeSet::new();
        let candidates = endpoints.iter();
        let endpoints = candidates.filter(|endpoint| addresses.insert(endpoint.address));
        let (site, endpoints) = (spec.site.clone(), endpoints.cloned().collect::<Vec<_>>());
        let (teller, receiver) = mpsc::channel();
        let stop = Stop::new();
        let round = Round {
            site: site.clone(),
            deadline: now() + TIMEOUT_BEFORE_FLEET,
            tries: MAX_TRIES,
            patience: QUERY_TIMEOUT,
            stop: stop.clone(),
        };
        let requested = endpoints.clone();
        // Without a thread nothing is asked and nothing is reported.
        let _ = thread::Builder::new()
            .name("neph-refusals".to_owned())
            .spawn(move || teller.send(round.ask_all(&requested)));
        let before = match receiver.recv_timeout(HEAD_START.to_duration()) {
            Ok(known) => EarlierRefusals::Known(known),
            Err(_) => EarlierRefusals::Asked(receiver, stop),
        };
        Self {
            site,
            endpoints,
            before,
        }
    }

    /// The same for endpoints whose refusals are known from discovery, from `site`: they are not asked again.
    pub fn of_known(
        known: impl IntoIterator<Item = (FleetEndpoint, Refusals)>,
        site: Option<Placement>,
    ) -> Self {
        let mut addresses = BTreeSet::new();
        let candidates = known.into_iter();
        let candidates = candidates.filter(|(endpoint, _)| addresses.insert(endpoint.address));
        let (endpoints, before) = candidates
            .map(|(endpoint, refused)| (endpoint, Some(refused)))
            .unzip();
        Self {
            site,
            endpoints,
            before: EarlierRefusals::Known(before),
        }
    }

    /// What each refused or dropped since then, without those that refused nothing. Takes at most 3 s.
    pub fn end(self) -> Vec<(FleetEndpoint, Refusals)> {
        let before = match self.before {
            EarlierRefusals::Known(known) => known,
            EarlierRefusals::Asked(receiver, stop) => {
                stop.set();
                receiver.recv().unwrap_or_default()
            }
        };
        let endpoint_refusals = self.endpoints.into_iter().zip(before);
        let known = endpoint_refusals.filter_map(|(endpoint, before)| Some((endpoint, before?)));
        let (endpoints, before): (Vec<_>, Vec<_>) = known.unzip();
        let round = Round {
            site: self.site,
            deadline: now() + TIMEOUT_AFTER_FLEET,
            tries: u32::MAX,
            patience: QUERY_TIMEOUT,
            stop: Stop::new(),
        };
        let after = round.ask_all(&endpoints);
        let refusal_ranges = endpoints.into_iter().zip(before.iter().zip(after));
        refusal_ranges
            .filter_map(|(endpoint, (before, after))| Some((endpoint, after?.since(before))))
            .filter(|(_, refused)| refused.messages + refused.connections + refused.dropped > 0)
            .collect()
    }
}

/// One query of many endpoints: from where, until when, and how.
#[derive(Debug)]
struct Round {
    site: Option<Placement>,
    deadline: Instant<Local>,
    /// At each endpoint, and how long each may take.
    tries: u32,
    patience: Span,
    stop: Stop,
}

/// An endpoint that is to be asked.
#[derive(Clone, Copy, Debug)]
struct Turn {
    endpoint: usize,
    tried: u32,
    /// Not before this moment.
    at: Instant<Local>,
}

impl Round {
    /// Asks all, a few at a time. Those that do not answer are asked again after all others.
    fn ask_all(&self, endpoints: &[FleetEndpoint]) -> Vec<Option<Refusals>> {
        let at = now();
        let first = |endpoint| Turn {
            endpoint,
            tried: 0,
            at,
        };
        let turns = Mutex::new((0..endpoints.len()).map(first).collect());
        let read_all = || {
            let mut refusals = vec![None; endpoints.len()];
            thread::scope(|scope| {
                let askers = 0..endpoints.len().min(MAX_CONCURRENT_QUERIES);
                let threads = askers.map(|_| scope.spawn(|| self.take_turns(endpoints, &turns)));
                let threads: Vec<_> = threads.collect();
                for (at, refused) in threads
                    .into_iter()
                    .flat_map(|scoped_join_handle| scoped_join_handle.join().unwrap_or_default())
                {
                    refusals[at] = Some(refused);
                }
            });
            refusals
        };
        at_site(self.site.as_ref(), read_all).unwrap_or_default()
    }

    /// Asks one after the other until all are asked or time is over.
    fn take_turns(
        &self,
        endpoints: &[FleetEndpoint],
        turns: &Mutex<VecDeque<Turn>>,
    ) -> Vec<(usize, Refusals)> {
        let mut refusals = Vec::new();
        let turns = || turns.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over()
            && let Some(turn) = { turns().pop_front() }
        {
            clock::nap((turn.at - now()).to_duration());
            let next = Turn {
                tried: turn.tried + 1,
                at: now() + RETRY_INTERVAL,
                ..turn
            };
            match self.ask(&endpoints[turn.endpoint]) {
                Some(refused) => refusals.push((turn.endpoint, refused)),
                None if next.tried < self.tries => turns().push_back(next),
                None => {}
            }
        }
        refusals
    }

    fn is_over(&self) -> bool {
        self.stop.is_set() || now() >= self.deadline
    }

    fn ask(&self, endpoint: &FleetEndpoint) -> Option<Refusals> {
        let address = endpoint.address;
        let target = Target::tcp(&address.ip().to_string(), address.port()).ok()?;
        let options = DiscoveryOptions {
            tls_version: None,
            trust: Trust::Public,
            patience: self.patience.min(self.deadline - now()),
            site: None,
        };
        discover(&target, address, &options).ok()?.refused
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::Reflector;
    use neph_model::ReflectorSpec;

    #[test]
    fn refusal_counts_with_five_or_four_numbers_are_parsed() {
        let refusals = Refusals {
            messages: 5,
            messages_per_second: 120_000,
            connections: 3,
            connections_per_peer: 512,
            dropped: 7,
        };
        assert_eq!(refusals.to_string(), "5 120000 3 512 7");
        let earlier = Refusals {
            dropped: 0,
            ..refusals
        };
        assert_eq!(Refusals::read(b"5 120000 3 512"), Some(earlier));
        assert_eq!(
            Refusals::read(refusals.to_string().as_bytes()),
            Some(refusals)
        );
        for invalid in [
            "",
            "5",
            "5 120000 3",
            "5 120000 3 512 x",
            "5 120000 3 512 1 1",
            "5 -1 3 512",
            "a b c d",
        ] {
            assert_eq!(Refusals::read(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn silent_reflectors_get_two_queries_without_delaying_others() {
        let silent = (0..MAX_CONCURRENT_QUERIES).map(|_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.set_nonblocking(true).expect("it can be");
            listener
        });
        let silent: Vec<TcpListener> = silent.collect();
        let at = "127.0.0.1:0".parse().expect("an address");
        let reflector = Reflector::start(&ReflectorSpec::at(at)).expect("a port");
        let addresses = silent
            .iter()
            .map(|listener| listener.local_addr().expect("bound"));
        let endpoints = addresses.chain([reflector.address()]).map(|address| {
            let name = address.to_string();
            FleetEndpoint { name, address }
        });
        let endpoints: Vec<FleetEndpoint> = endpoints.collect();
        let round = Round {
            site: None,
            deadline: now() + Span::from_secs(60),
            tries: 2,
            patience: Span::from_millis(300),
            stop: Stop::new(),
        };
        let refusals = round.ask_all(&endpoints);
        let (answered, unanswered) = refusals.split_last().expect("as many as endpoints");
        assert!(answered.is_some());
        assert!(unanswered.iter().all(Option::is_none));
        for listener in &silent {
            let mut connections = 0;
            while listener.accept().is_ok() {
                connections += 1;
            }
            assert_eq!(connections, 2);
        }
        round.stop.set();
        assert_eq!(round.ask_all(&endpoints), vec![None; endpoints.len()]);
    }

    #[test]
    fn a_restarted_reflector_has_no_refusals_since_the_start() {
        let earlier = Refusals {
            messages: 5,
            ..Refusals::default()
        };
        assert_eq!(Refusals::default().since(&earlier).messages, 0);
    }
}
