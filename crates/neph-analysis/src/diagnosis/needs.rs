//! What rules need before they can look: where it was not measured, a rule that is silent has said
//! nothing, and what it needs is told.

use std::collections::BTreeMap;

use neph_model::{SEGMENT, Stage, StageSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Rule, Run, Sight, is_imported, peer};
use crate::words::plural;

/// Something without which a rule cannot look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// So many replies in an experiment.
    Replies(usize),
    /// The network's time told alone.
    Network,
    /// When what was sent left, over TCP.
    SendStamps,
    /// What TCP told beside the stamps; datagrams do without.
    TcpStatistics,
    /// Requests of two sizes to one endpoint.
    Sizes,
    /// So many connections to one address from ports that are known.
    Flows(usize),
    /// ICMP echoes beside the messages.
    Echoes,
    /// The peer's marks.
    PeerMarks,
    /// Messages of a segment at most each way.
    OneSegment,
    /// The wall clock, read now and then.
    WallClock,
}

/// A rule that could not look, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blind {
    /// The rule's name.
    pub rule: &'static str,
    /// The rule's name on screen.
    pub title: &'static str,
    /// What it needs and did not have.
    pub needs: Vec<String>,
}

impl Blind {
    /// What the rule needs and a campaign does not have, if anything.
    pub(crate) fn of(rule: &Rule, sight: &Sight<'_>) -> Option<Self> {
        let unmet: Vec<Need> = rule
            .needs
            .iter()
            .copied()
            .filter(|need| !need.is_met(sight))
            .collect();
        let counts_replies = unmet.iter().any(|need| matches!(need, Need::Replies(_)));
        let mut needs: Vec<String> = Vec::new();
        for need in unmet {
            let words = match need.follows_from(sight) {
                // So many of them are asked for already.
                Some(Lack::Reply) if counts_replies => continue,
                Some(lack) => lack.in_words().to_owned(),
                None => need.in_words(),
            };
            if !needs.contains(&words) {
                needs.push(words);
            }
        }
        (!needs.is_empty()).then_some(Self {
            rule: rule.name,
            title: rule.title,
            needs,
        })
    }

    /// `needs: which rules`, those with the same needs together.
    pub(crate) fn in_words(all: &[Self]) -> Vec<String> {
        let mut alike: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
        for one in all {
            alike.entry(&one.needs).or_default().push(one.title);
        }
        let alike = alike.into_iter();
        alike
            .map(|(needs, titles)| format!("{}: needs {}.", titles.join(", "), needs.join("; ")))
            .collect()
    }
}

/// What several needs follow from: without it nothing is known of them, and nothing is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// No message was replied to.
    Reply,
    /// The messages over TCP were connection attempts, which send nothing.
    Request,
}

impl Lack {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Reply => "a reply",
            Self::Request => "requests over TCP (a connection attempt sends none)",
        }
    }
}

impl Need {
    /// What is lacking if this need is unmet for want of messages, and not of what they would show.
    fn follows_from(self, sight: &Sight<'_>) -> Option<Lack> {
        let is_about = |run: &&Run<'_>| match self {
            Self::Network | Self::PeerMarks => true,
            Self::SendStamps | Self::TcpStatistics => is_tcp(run),
            _ => false,
        };
        let about: Vec<&Run<'_>> = sight.runs.iter().filter(is_about).collect();
        let sets = || about.iter().flat_map(|run| run.flow.stage_sets());
        if about.is_empty() {
            None
        } else if sets().next().is_none() {
            Some(Lack::Reply)
        } else if sets().all(|set| !set.contains(Stage::SendWindow))
            && matches!(self, Self::SendStamps | Self::TcpStatistics)
        {
            Some(Lack::Request)
        } else {
            None
        }
    }

    fn is_met(self, sight: &Sight<'_>) -> bool {
        let any = |met: &dyn Fn(&Run<'_>) -> bool| sight.runs.iter().any(met);
        match self {
            Self::Replies(least) => any(&|run| run.replies().nth(least - 1).is_some()),
            Self::Network => any(&|run| !run.crossings.is_empty()),
            Self::SendStamps => {
                let tells = |set: StageSet| {
                    set.contains(Stage::SendWindow) && !set.contains(Stage::Network)
                };
                !any(&is_tcp) || any(&|run| is_tcp(run) && run.flow.stage_sets().any(tells))
            }
            Self::TcpStatistics => any(&|run| {
                let mut all = run.flow.exchanges.iter();
                !is_tcp(run) || all.any(|one| one.cwnd.is_some() || one.least_rtt.is_some())
            }),
            Self::Sizes => has_two_sizes(sight),
            Self::Flows(least) => {
                let has_port = |run: &&&Run<'_>| {
                    let source = run.flow.flow.source;
                    source.is_some_and(|source| source.port() > 0) || is_imported(run)
                };
                let alike = sight.grouped(|run| (run.site().to_owned(), peer(run)));
                let mut alike = alike.values();
                alike.any(|runs| runs.iter().filter(has_port).count() >= least)
            }
            Self::Echoes => any(&|run| run.echoes().len() > 0),
            Self::PeerMarks => any(&|run| {
                let mut told = run.flow.stage_sets();
                told.any(|set| set == StageSet::only(Stage::PeerApp))
            }),
            Self::OneSegment => any(&|run| {
                let scenario = run.scenario;
                scenario
                    .request_size
                    .max(scenario.response_size)
                    .is_one_segment()
            }),
            Self::WallClock => any(&|run| run.experiment.experiment.anchors().nth(1).is_some()),
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Replies(least) => format!("{least} replies in an experiment"),
            Self::Network => {
                "the network's time alone (a neph reflector at the other end, and the kernel's stamps)"
                    .to_owned()
            }
            Self::SendStamps => {
                "the kernel's stamps of what is sent (Linux; some sandboxes tell none)".to_owned()
            }
            Self::TcpStatistics => {
                "TCP's statistics (Linux; some sandboxes tell none)".to_owned()
            }
            Self::Sizes => "requests of two sizes to the same endpoint".to_owned(),
            Self::Flows(least) => format!(
                "{} to the same address (more blocks, or several source ports)",
                plural(least, "connection")
            ),
            Self::Echoes => {
                "ICMP echoes beside the messages (as root, or within net.ipv4.ping_group_range)"
                    .to_owned()
            }
            Self::PeerMarks => "a neph reflector at the other end".to_owned(),
            Self::OneSegment => format!("messages of at most {} each way", SEGMENT.exact()),
            Self::WallClock => "the wall clock beside the messages (neph run stores it)".to_owned(),
        }
    }
}

fn is_tcp(run: &Run<'_>) -> bool {
    run.flow.flow.probe.on_connection()
}

fn has_two_sizes(sight: &Sight<'_>) -> bool {
    let size = |run: &Run<'_>| run.scenario.request_size;
    let mut places = sight.places().into_values();
    places.any(|runs| runs.iter().any(|run| size(run) != size(runs[0])))
}
