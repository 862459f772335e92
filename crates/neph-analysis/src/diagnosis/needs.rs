//! The data that rules require. If it was not measured, the rule is not evaluated, and the report lists what
//! is missing.

use std::collections::BTreeMap;

use neph_model::{SEGMENT, Stage, StageSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Rule, RuleInput, Run, is_imported, peer};
use crate::text::plural;

/// Data that a rule requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Minimum number of replies in an experiment.
    Replies(usize),
    /// The network stage, measured separately.
    Network,
    /// Departure timestamps of what was sent, over TCP.
    SendTimestamps,
    /// TCP statistics in addition to timestamps; not required for datagrams.
    TcpStatistics,
    /// Requests of two sizes to one endpoint.
    Sizes,
    /// Minimum number of connections to one address from known ports.
    Flows(usize),
    /// ICMP echoes alongside the messages.
    Echoes,
    /// Timestamps of the peer.
    PeerTimestamps,
    /// Messages of at most one segment in each direction.
    OneSegment,
    /// Periodic readings of the wall clock.
    WallClock,
}

/// A rule that was not evaluated, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotEvaluated {
    /// The rule's name.
    pub rule: &'static str,
    /// The rule's name on screen.
    pub title: &'static str,
    /// The data that was missing.
    pub needs: Vec<String>,
}

impl NotEvaluated {
    /// The data that the rule requires and the campaign does not have; `None` if nothing is missing.
    pub(crate) fn of(rule: &Rule, input: &RuleInput<'_>) -> Option<Self> {
        let unmet: Vec<Need> = rule
            .needs
            .iter()
            .copied()
            .filter(|need| !need.is_met(input))
            .collect();
        let counts_replies = unmet.iter().any(|need| matches!(need, Need::Replies(_)));
        let mut needs: Vec<String> = Vec::new();
        for need in unmet {
            let text = match need.missing_messages(input) {
                // Another need already asks for a number of replies.
                Some(MissingMessages::Reply) if counts_replies => continue,
                Some(missing) => missing.to_text().to_owned(),
                None => need.to_text(),
            };
            if !needs.contains(&text) {
                needs.push(text);
            }
        }
        (!needs.is_empty()).then_some(Self {
            rule: rule.name,
            title: rule.title,
            needs,
        })
    }

    /// `needs: which rules`; rules with the same needs are combined.
    pub(crate) fn to_text(not_evaluated: &[Self]) -> Vec<String> {
        let mut identical: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
        for rule in not_evaluated {
            identical.entry(&rule.needs).or_default().push(rule.title);
        }
        let identical = identical.into_iter();
        identical
            .map(|(needs, titles)| format!("{}: needs {}.", titles.join(", "), needs.join("; ")))
            .collect()
    }
}

/// Messages whose absence explains several unmet needs. Without them the other needs are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingMessages {
    /// No message was replied to.
    Reply,
    /// The messages over TCP were connection attempts, which send no data.
    Request,
}

impl MissingMessages {
    const fn to_text(self) -> &'static str {
        match self {
            Self::Reply => "a reply",
            Self::Request => "requests over TCP (a connection attempt sends none)",
        }
    }
}

impl Need {
    /// The missing messages, if the need is unmet because of them and not because of the content of messages.
    fn missing_messages(self, input: &RuleInput<'_>) -> Option<MissingMessages> {
        let is_relevant = |run: &&Run<'_>| match self {
            Self::Network | Self::PeerTimestamps => true,
            Self::SendTimestamps | Self::TcpStatistics => is_tcp(run),
            _ => false,
        };
        let relevant_runs: Vec<&Run<'_>> = input.runs.iter().filter(is_relevant).collect();
        let sets = || relevant_runs.iter().flat_map(|run| run.flow.stage_sets());
        if relevant_runs.is_empty() {
            None
        } else if sets().next().is_none() {
            Some(MissingMessages::Reply)
        } else if sets().all(|set| !set.contains(Stage::SendWindow))
            && matches!(self, Self::SendTimestamps | Self::TcpStatistics)
        {
            Some(MissingMessages::Request)
        } else {
            None
        }
    }

    fn is_met(self, input: &RuleInput<'_>) -> bool {
        let any_run = |met: &dyn Fn(&Run<'_>) -> bool| input.runs.iter().any(met);
        match self {
            Self::Replies(min) => any_run(&|run| run.replies().nth(min - 1).is_some()),
            Self::Network => any_run(&|run| !run.network_times.is_empty()),
            Self::SendTimestamps => {
                let is_shown = |set: StageSet| {
                    set.contains(Stage::SendWindow) && !set.contains(Stage::Network)
                };
                !any_run(&is_tcp)
                    || any_run(&|run| is_tcp(run) && run.flow.stage_sets().any(is_shown))
            }
            Self::TcpStatistics => any_run(&|run| {
                let mut exchanges = run.flow.exchanges.iter();
                !is_tcp(run)
                    || exchanges
                        .any(|exchange| exchange.cwnd.is_some() || exchange.min_rtt.is_some())
            }),
            Self::Sizes => has_two_sizes(input),
            Self::Flows(min) => {
                let has_port = |run: &&&Run<'_>| {
                    let source = run.flow.flow.source;
                    source.is_some_and(|source| source.port() > 0) || is_imported(run)
                };
                let identical = input.grouped(|run| (run.site().to_owned(), peer(run)));
                let mut identical = identical.values();
                identical.any(|runs| runs.iter().filter(has_port).count() >= min)
            }
            Self::Echoes => any_run(&|run| run.echoes().len() > 0),
            Self::PeerTimestamps => any_run(&|run| {
                let mut stage_sets = run.flow.stage_sets();
                stage_sets.any(|set| set == StageSet::only(Stage::PeerApp))
            }),
            Self::OneSegment => any_run(&|run| {
                let scenario = run.scenario;
                scenario
                    .request_size
                    .max(scenario.response_size)
                    .is_one_segment()
            }),
            Self::WallClock => any_run(&|run| run.experiment.experiment.anchors().nth(1).is_some()),
        }
    }

    fn to_text(self) -> String {
        match self {
            Self::Replies(min) => format!("{min} replies in an experiment"),
            Self::Network => {
                "a network stage of its own (a neph reflector as peer, and kernel timestamps)"
                    .to_owned()
            }
            Self::SendTimestamps => {
                "kernel timestamps of sent data (Linux; some sandboxes have none)".to_owned()
            }
            Self::TcpStatistics => "TCP statistics (Linux; some sandboxes have none)".to_owned(),
            Self::Sizes => "requests of two sizes to the same endpoint".to_owned(),
            Self::Flows(min) => format!(
                "{} to the same address (more blocks, or several source ports)",
                plural(min, "connection")
            ),
            Self::Echoes => "ICMP echoes (as root, or within net.ipv4.ping_group_range)".to_owned(),
            Self::PeerTimestamps => "a neph reflector as peer".to_owned(),
            Self::OneSegment => {
                format!("messages of at most {} in each direction", SEGMENT.exact())
            }
            Self::WallClock => "readings of the wall clock (neph run stores them)".to_owned(),
        }
    }
}

fn is_tcp(run: &Run<'_>) -> bool {
    run.flow.flow.probe.uses_connection()
}

fn has_two_sizes(input: &RuleInput<'_>) -> bool {
    let size = |run: &Run<'_>| run.scenario.request_size;
    let mut pairs = input.pairs().into_values();
    pairs.any(|runs| runs.iter().any(|run| size(run) != size(runs[0])))
}
