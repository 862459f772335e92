//! What rules look at: a campaign's experiments with their main flow's crossings of the network,
//! grouped by where they went.

use crate::diagnosis::Ordered;
use crate::diagnosis::Times;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use neph_model::{Scenario, Seq, Span, Stage, StageSet};

use super::stall::{self, PeerStalls, Stall};
use crate::data::{Exchange, ExperimentData, FlowData};
use crate::{CampaignData, PlotSettings};

/// A campaign as rules see it.
#[derive(Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) data: &'a CampaignData,
    /// The experiments that have a main flow, by block and position.
    pub(crate) runs: Vec<Run<'a>>,
}

/// One experiment.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) experiment: &'a ExperimentData,
    pub(crate) scenario: &'a Scenario,
    pub(crate) flow: &'a FlowData,
    /// Its replied messages whose time in the network is told alone, in order; without those that
    /// waited for the end of a stall, of which the network's part is the peer's.
    pub(crate) crossings: Vec<Crossing>,
    pub(crate) stalls: Stalls,
}

/// A message's way through the network and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub seq: Seq,
    /// When it was meant to go, in seconds since the experiment's start.
    pub(crate) at: f64,
    /// Both directions together, in milliseconds.
    pub(crate) network: f64,
    /// The waits before it, for TCP's window and in our own queue, in milliseconds.
    pub(crate) waited: f64,
    /// Its connection sent segments again while it was under way: it may have been among them.
    pub(crate) is_resent: bool,
}

/// How long a message waited in our own host once it was written, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    /// Until its last byte left, as far as stamps tell.
    pub(crate) waited: f64,
    /// Of that, in the interface's queue, where that is told alone.
    pub(crate) queued: f64,
}

/// The stalls of both sides of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    /// Of the peer, as the messages show them, and the echoes beside them.
    pub(crate) peer: PeerStalls,
    pub(crate) echoes: PeerStalls,
    /// Of our own program.
    pub(crate) client: Vec<Stall>,
    /// The messages that waited for the peer in one, or for the window that it left closed.
    pub(crate) waited: BTreeSet<Seq>,
    /// Those that waited for our own program in one: to be sent, or to be read.
    pub(crate) waited_for_client: BTreeSet<Seq>,
}

impl Stalls {
    fn of(experiment: &ExperimentData, flow: &FlowData) -> Self {
        let peer = stall::of_peer(flow);
        let echoes = experiment.companion().map(stall::of_peer);
        let waited = peer.stalls.iter().flat_map(Stall::all);
        let client = stall::of_client(flow);
        Self {
            waited: waited.collect(),
            waited_for_client: stall::waiting_for_client(flow, &client),
            client,
            echoes: echoes.unwrap_or_default(),
            peer,
        }
    }
}

/// From where to where: what experiments have in common that share a path, ports aside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The site it was measured from; empty where the plan names none.
    pub(crate) site: String,
    pub(crate) endpoint: String,
    pub(crate) target: SocketAddr,
}

impl<'a> Sight<'a> {
    pub(crate) fn of(data: &'a CampaignData, settings: &PlotSettings) -> Self {
        let runs = data
            .shown(settings)
            .filter_map(|experiment| {
                let flow = experiment.main()?;
                let stalls = Stalls::of(experiment, flow);
                Some(Run {
                    experiment,
                    scenario: &data.scenarios[experiment.scenario],
                    flow,
                    crossings: crossings(flow, &stalls),
                    stalls,
                })
            })
            .collect();
        Self { data, runs }
    }

    /// The experiments by where they went.
    pub(crate) fn places(&self) -> BTreeMap<Place, Vec<&Run<'a>>> {
        self.grouped(Run::place)
    }

    /// The experiments by what they have in common.
    pub(crate) fn grouped<K: Ord>(
        &self,
        key: impl Fn(&Run<'a>) -> K,
    ) -> BTreeMap<K, Vec<&Run<'a>>> {
        let mut found: BTreeMap<K, Vec<&Run<'a>>> = BTreeMap::new();
        for run in &self.runs {
            found.entry(key(run)).or_default().push(run);
        }
        found
    }

    /// A place's name on screen; the site is told only where there are several.
    pub(crate) fn name(&self, place: &Place) -> String {
        let sites: BTreeSet<&str> = self.runs.iter().map(Run::site).collect();
        if sites.len() > 1 && !place.site.is_empty() {
            format!("{} from {}", place.endpoint, place.site)
        } else {
            place.endpoint.clone()
        }
    }
}

impl Run<'_> {
    /// The site it was measured from; empty where the plan names none.
    pub(crate) fn site(&self) -> &str {
        let ran = self.experiment.provenance.as_ref();
        let ran = ran.and_then(|provenance| provenance.site.as_deref());
        self.scenario.site().or(ran).unwrap_or("")
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            site: self.site().to_owned(),
            endpoint: self.scenario.endpoint.clone(),
            target: self.flow.flow.target,
        }
    }

    /// Its crossings' times in order.
    pub(crate) fn networks(&self) -> Ordered {
        self.crossings.iter().map(|one| one.network).collect()
    }

    /// The least round trip that its TCP has seen, handshake included, in milliseconds.
    pub(crate) fn tcp_least(&self) -> Option<f64> {
        let seen = self.flow.exchanges.iter().filter_map(|one| one.least_rtt);
        seen.min().map(Span::millis_f64)
    }

    /// The round trips of the ICMP echoes beside it, in milliseconds.
    pub(crate) fn echoes(&self) -> Ordered {
        self.echoes_that(|_, _| true)
    }

    /// Those that were not under way while the peer stood still. Echoes come at an even pace, and so may
    /// stalls: then all echoes wait, or none.
    pub(crate) fn echoes_at_rest(&self) -> Ordered {
        let Stalls { peer, echoes, .. } = &self.stalls;
        self.echoes_that(|one, took| {
            let mut stalls = peer.stalls.iter().chain(&echoes.stalls);
            one.begun.map(stall::millis).is_some_and(|sent| {
                !stalls.any(|stall| sent < stall.until && sent + took > stall.from)
            })
        })
    }

    /// The round trips of those echoes for which this holds of the echo and its round trip.
    fn echoes_that(&self, is: impl Fn(&Exchange, f64) -> bool) -> Ordered {
        let Some(flow) = self.experiment.companion() else {
            return Ordered::default();
        };
        let times = flow.exchanges.iter().filter_map(|one| {
            let took = flow.round_trip(one)?.millis_f64();
            is(one, took).then_some(took)
        });
        times.collect()
    }

    /// The path alone: TCP's least round trip, or the messages', or an echo's, which may go
    /// another way.
    pub(crate) fn path(&self) -> Option<f64> {
        let seen = self.tcp_least().or_else(|| self.networks().least());
        seen.or_else(|| self.echoes().least())
    }

    /// The replied messages that waited in no stall, with the time of each stage.
    pub(crate) fn replies(&self) -> impl Iterator<Item = (&Exchange, Times)> {
        let Stalls {
            waited,
            waited_for_client,
            ..
        } = &self.stalls;
        let replied = self.all_replies();
        replied
            .filter(|(one, _)| !waited.contains(&one.seq) && !waited_for_client.contains(&one.seq))
    }

    /// All replied messages with the time of each stage.
    pub(crate) fn all_replies(&self) -> impl Iterator<Item = (&Exchange, Times)> {
        let replied = self.flow.exchanges.iter();
        replied
            .filter(|one| one.response.is_some())
            .map(|one| (one, Times::of(self.flow, one)))
    }
}

impl Leaving {
    /// Marks between the two may be absent; without any stamp of sending, the waits are told with the
    /// network, and nobody knows.
    pub(crate) fn of(flow: &FlowData, exchange: &Exchange) -> Option<Self> {
        let waits =
            |set: StageSet| set.contains(Stage::SendWindow) || set.contains(Stage::SendQueue);
        let mut found = Self::default();
        for (set, time) in flow.ledger(exchange) {
            if set.contains(Stage::Network) {
                return (!set.contains(Stage::SendWindow)).then_some(found);
            }
            if !waits(set) {
                continue;
            }
            if set.contains(Stage::Compose) {
                return None;
            }
            found.waited += time.millis_f64();
            if set == StageSet::only(Stage::SendQueue) {
                found.queued = time.millis_f64();
            }
        }
        None
    }
}

/// Whether nobody's program is among the stages: the network alone, or with the peer's send path,
/// whose end only the next reply tells.
fn is_network(set: StageSet) -> bool {
    let alone = StageSet::only(Stage::Network);
    set == alone || set == alone.with(Stage::PeerSend)
}

fn crossings(flow: &FlowData, stalls: &Stalls) -> Vec<Crossing> {
    // An echo or a SYN is answered by the peer's kernel, which adds next to nothing.
    let is_echo = flow.flow.probe.facts().is_answered_by_kernel;
    let one = |(exchange, is_resent): (&Exchange, bool)| {
        let mut entries = flow.ledger(exchange);
        let wanted = |set: StageSet| is_network(set) || (is_echo && set.contains(Stage::Network));
        let (_, time) = entries.find(|(set, _)| wanted(*set))?;
        Some(Crossing {
            seq: exchange.seq,
            at: Span::from_nanos(exchange.intended.nanos()).secs_f64(),
            network: time.millis_f64(),
            waited: Leaving::of(flow, exchange).map_or(0.0, |leaving| leaving.waited),
            is_resent,
        })
    };
    let waited = |one: &Exchange| stalls.waited.contains(&one.seq);
    let all = flow.resent_meanwhile().filter(|(one, _)| !waited(one));
    all.filter_map(one).collect()
}
