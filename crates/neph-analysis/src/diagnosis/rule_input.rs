//! The input of rules: a campaign's experiments with the network times of their main flow, grouped by place.

use crate::diagnosis::SortedValues;
use crate::diagnosis::Times;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use neph_model::{Scenario, Seq, Span, Stage, StageSet};

use super::stall::{self, PeerStalls, Stall};
use crate::data::{Exchange, ExperimentData, FlowData};
use crate::{CampaignData, PlotSettings};

/// A campaign as the input of rules.
#[derive(Debug)]
pub(crate) struct RuleInput<'a> {
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
    /// Replied messages with a network stage of their own, in order. Messages that waited for the end of a
    /// stall are left out: their network stage contains the stall.
    pub(crate) network_times: Vec<NetworkTime>,
    pub(crate) stalls: Stalls,
}

/// The network time of a message, forward and reverse path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkTime {
    pub seq: Seq,
    /// Scheduled send time, in seconds since the experiment's start.
    pub(crate) at_s: f64,
    /// Both directions together, in milliseconds.
    pub(crate) network_ms: f64,
    /// The waits before it, for TCP's window and in the client's queue, in milliseconds.
    pub(crate) waited_ms: f64,
    /// Its connection retransmitted segments while it was under way, possibly its own.
    pub(crate) has_retransmission: bool,
}

/// How long a written message waited in the client host, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendWait {
    /// Until its last byte departed, as far as timestamps show.
    pub(crate) waited_ms: f64,
    /// The part in the interface's queue, if it was measured separately.
    pub(crate) queued_ms: f64,
}

/// The stalls of both sides of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    /// Stalls of the peer, from the messages and the echoes alongside.
    pub(crate) peer: PeerStalls,
    pub(crate) echoes: PeerStalls,
    /// Stalls of the client application.
    pub(crate) client: Vec<Stall>,
    /// The messages that waited for the peer in a stall, or for the window that it left closed.
    pub(crate) waited: BTreeSet<Seq>,
    /// The messages that waited for the client application in a stall: to be sent, or to be read.
    pub(crate) waited_for_client: BTreeSet<Seq>,
}

impl Stalls {
    fn of(experiment: &ExperimentData, flow: &FlowData) -> Self {
        let peer = stall::of_peer(flow);
        let echoes = experiment.companion().map(stall::of_peer);
        let waited = peer.stalls.iter().flat_map(Stall::affected_messages);
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

/// A path from site to peer, without ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SitePair {
    /// The site of the measurement; empty if the plan names none.
    pub(crate) site: String,
    pub(crate) endpoint: String,
    pub(crate) target: SocketAddr,
}

impl<'a> RuleInput<'a> {
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
                    network_times: network_times(flow, &stalls),
                    stalls,
                })
            })
            .collect();
        Self { data, runs }
    }

    /// The experiments by place.
    pub(crate) fn pairs(&self) -> BTreeMap<SitePair, Vec<&Run<'a>>> {
        self.grouped(Run::pair)
    }

    /// The experiments by a common key.
    pub(crate) fn grouped<K: Ord>(
        &self,
        key: impl Fn(&Run<'a>) -> K,
    ) -> BTreeMap<K, Vec<&Run<'a>>> {
        let mut groups: BTreeMap<K, Vec<&Run<'a>>> = BTreeMap::new();
        for run in &self.runs {
            groups.entry(key(run)).or_default().push(run);
        }
        groups
    }

    /// A place's name on screen; includes the site only if there are several.
    pub(crate) fn name(&self, pair: &SitePair) -> String {
        let sites: BTreeSet<&str> = self.runs.iter().map(Run::site).collect();
        if sites.len() > 1 && !pair.site.is_empty() {
            format!("{} from {}", pair.endpoint, pair.site)
        } else {
            pair.endpoint.clone()
        }
    }
}

impl Run<'_> {
    /// The site of the measurement; empty if the plan names none.
    pub(crate) fn site(&self) -> &str {
        let provenance = self.experiment.provenance.as_ref();
        let recorded_site = provenance.and_then(|provenance| provenance.site.as_deref());
        self.scenario.site().or(recorded_site).unwrap_or("")
    }

    pub(crate) fn pair(&self) -> SitePair {
        SitePair {
            site: self.site().to_owned(),
            endpoint: self.scenario.endpoint.clone(),
            target: self.flow.flow.target,
        }
    }

    /// Its network times in order.
    pub(crate) fn sorted_network_times(&self) -> SortedValues {
        self.network_times
            .iter()
            .map(|network_time| network_time.network_ms)
            .collect()
    }

    /// The least round trip that TCP has measured, including the handshake, in milliseconds.
    pub(crate) fn min_tcp_rtt(&self) -> Option<f64> {
        let min_rtt = self
            .flow
            .exchanges
            .iter()
            .filter_map(|exchange| exchange.min_rtt);
        min_rtt.min().map(Span::millis_f64)
    }

    /// The round trips of the ICMP echoes alongside, in milliseconds.
    pub(crate) fn echoes(&self) -> SortedValues {
        self.echoes_matching(|_, _| true)
    }

    /// Echoes that were not under way during a stall of the peer. Both echoes and stalls may be periodic:
    /// then all echoes wait, or none.
    pub(crate) fn echoes_outside_stalls(&self) -> SortedValues {
        let Stalls { peer, echoes, .. } = &self.stalls;
        self.echoes_matching(|exchange, took| {
            let mut stalls = peer.stalls.iter().chain(&echoes.stalls);
            exchange
                .send_started
                .map(stall::millis)
                .is_some_and(|sent| {
                    !stalls.any(|stall| sent < stall.until && sent + took > stall.from)
                })
        })
    }

    /// The round trips of echoes that match a condition on the echo and its round trip.
    fn echoes_matching(&self, matches: impl Fn(&Exchange, f64) -> bool) -> SortedValues {
        let Some(flow) = self.experiment.companion() else {
            return SortedValues::default();
        };
        let times = flow.exchanges.iter().filter_map(|exchange| {
            let took = flow.round_trip(exchange)?.millis_f64();
            matches(exchange, took).then_some(took)
        });
        times.collect()
    }

    /// The least round trip of the path: of TCP, the messages or an echo, which may use another path.
    pub(crate) fn min_path_rtt(&self) -> Option<f64> {
        let min_rtt = self
            .min_tcp_rtt()
            .or_else(|| self.sorted_network_times().min());
        min_rtt.or_else(|| self.echoes().min())
    }

    /// The replied messages that waited in no stall, with the time of each stage.
    pub(crate) fn replies(&self) -> impl Iterator<Item = (&Exchange, Times)> {
        let Stalls {
            waited,
            waited_for_client,
            ..
        } = &self.stalls;
        let replied = self.all_replies();
        replied.filter(|(exchange, _)| {
            !waited.contains(&exchange.seq) && !waited_for_client.contains(&exchange.seq)
        })
    }

    /// All replied messages with the time of each stage.
    pub(crate) fn all_replies(&self) -> impl Iterator<Item = (&Exchange, Times)> {
        let replied = self.flow.exchanges.iter();
        replied
            .filter(|exchange| exchange.response.is_some())
            .map(|exchange| (exchange, Times::of(self.flow, exchange)))
    }
}

impl SendWait {
    /// Timestamps between the two may be absent. Without a timestamp of sending, the waits are part of the
    /// network stage: `None`.
    pub(crate) fn of(flow: &FlowData, exchange: &Exchange) -> Option<Self> {
        let has_wait =
            |set: StageSet| set.contains(Stage::SendWindow) || set.contains(Stage::SendQueue);
        let mut send_wait = Self::default();
        for (set, time) in flow.ledger(exchange) {
            if set.contains(Stage::Network) {
                return (!set.contains(Stage::SendWindow)).then_some(send_wait);
            }
            if !has_wait(set) {
                continue;
            }
            if set.contains(Stage::Compose) {
                return None;
            }
            send_wait.waited_ms += time.millis_f64();
            if set == StageSet::only(Stage::SendQueue) {
                send_wait.queued_ms = time.millis_f64();
            }
        }
        None
    }
}

/// Whether the stages contain no application: the network alone, or with the peer's send path, whose end only
/// the next reply shows.
fn is_network(set: StageSet) -> bool {
    let alone = StageSet::only(Stage::Network);
    set == alone || set == alone.with(Stage::PeerSend)
}

fn network_times(flow: &FlowData, stalls: &Stalls) -> Vec<NetworkTime> {
    // The peer's kernel answers an echo or a SYN and adds almost nothing.
    let is_echo = flow.flow.probe.properties().is_answered_by_kernel;
    let network_time = |(exchange, has_retransmission): (&Exchange, bool)| {
        let mut entries = flow.ledger(exchange);
        let is_in_network =
            |set: StageSet| is_network(set) || (is_echo && set.contains(Stage::Network));
        let (_, time) = entries.find(|(set, _)| is_in_network(*set))?;
        Some(NetworkTime {
            seq: exchange.seq,
            at_s: Span::from_nanos(exchange.intended.nanos()).secs_f64(),
            network_ms: time.millis_f64(),
            waited_ms: SendWait::of(flow, exchange).map_or(0.0, |send_wait| send_wait.waited_ms),
            has_retransmission,
        })
    };
    let has_waited = |exchange: &Exchange| stalls.waited.contains(&exchange.seq);
    let exchanges = flow
        .with_retransmission_meanwhile()
        .filter(|(exchange, _)| !has_waited(exchange));
    exchanges.filter_map(network_time).collect()
}
