//! Silent hops that leave the distance of the destination uncertain, and when they are asked again.
//!
//! Hosts limit their answers (Linux: one per second, after six). A destination that another program has just
//! asked is silent at its own hop and answers at a farther one, a second later.

use std::collections::BTreeMap;

use neph_model::{Instant, Local, Span};

use super::flow::{AnswerKind, Probe};
use super::trace_settings::Retry;
use super::tracer::Tracer;
use super::tracer_io::Action;

/// Time between two probes to silent hops: a little more than a host waits between two answers.
const PROBE_INTERVAL: Span = Span::from_millis(1100);
/// Probes to silent hops in all; with [`PROBE_INTERVAL`] they take at most 9 s.
const MAX_RETRIES: usize = 8;
/// Probes to one silent hop.
const RETRY_EACH: usize = 2;

impl Tracer {
    /// Asks the silent hops before the end again, one at a time, until an answer makes the end certain.
    /// `None`: nothing is uncertain.
    pub(super) fn retry_silent_hop(&mut self, now: Instant<Local>) -> Option<Action> {
        if self.settings.retry != Retry::InDoubt {
            return None;
        }
        in_doubt(&self.probes, &[])?;
        let next_send_at = self.probes.last()?.sent + PROBE_INTERVAL;
        if now < next_send_at {
            return Some(Action::Wait(next_send_at));
        }
        let repeated = &self.repeated;
        let ttl = in_doubt(&self.probes, repeated).filter(|_| repeated.len() < MAX_RETRIES)?;
        self.repeated.push(ttl);
        self.create_probe(0, ttl, now).map(Action::Send)
    }
}

/// The silent hop to ask next: between the last router that answered and the end, or the first one after it
/// if there is no end. Of those asked least (`anew`) the nearest. `None` if the end is certain, or without
/// any answer.
fn in_doubt(probes: &[Probe], repeated: &[u8]) -> Option<u8> {
    let answered = || {
        probes
            .iter()
            .filter_map(|probe| Some((probe.ttl, probe.answer?)))
    };
    let ends = answered().filter(|(_, answer)| answer.kind != AnswerKind::Exceeded);
    let end = ends.map(|(ttl, _)| ttl).min();
    let before_end = answered().filter(|(ttl, _)| end.is_none_or(|end| *ttl < end));
    let router = before_end.map(|(ttl, _)| ttl).max().unwrap_or(0);
    let farthest = probes.iter().map(|probe| probe.ttl).max()?;
    let end = end.unwrap_or_else(|| farthest.min(router + 1) + 1);
    let mut requested: BTreeMap<u8, usize> = (router + 1..end).map(|ttl| (ttl, 0)).collect();
    for ttl in repeated {
        requested.entry(*ttl).and_modify(|times| *times += 1);
    }
    let min = requested
        .into_iter()
        .min_by_key(|(ttl, times)| (*times, *ttl));
    min.filter(|(_, times)| *times < RETRY_EACH)
        .map(|(ttl, _)| ttl)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use neph_model::ReadBy;

    use super::super::flow::Answer;
    use super::*;

    /// One probe per hop: `r` a router answers, `D` the destination, `.` silence.
    fn probes(answers: &str) -> Vec<Probe> {
        let hops = answers.bytes().zip(1..);
        hops.map(|(answer, ttl)| Probe {
            flow: 0,
            ttl,
            sent: Instant::from_nanos(0),
            tx_timestamp: None,
            answer: (answer != b'.').then_some(Answer {
                from: IpAddr::from([10, 0, 0, answer]),
                kind: match answer {
                    b'D' => AnswerKind::Arrived,
                    _ => AnswerKind::Exceeded,
                },
                at: Instant::from_nanos(0),
                read_by: ReadBy::Kernel,
            }),
            is_pending: false,
        })
        .collect()
    }

    #[test]
    fn only_silent_hops_just_before_the_end_are_retried() {
        for sure in ["", "D", "rD", "r.rD", "rr", "r.r"] {
            assert!(in_doubt(&probes(sure), &[]).is_none(), "{sure}");
        }
        assert_eq!(in_doubt(&probes("r.r..."), &[]), Some(4), "no end");
        assert_eq!(in_doubt(&probes("r.......D"), &[]), Some(2));
        assert_eq!(in_doubt(&probes(".DD"), &[]), Some(1));
    }

    #[test]
    fn silent_hops_are_retried_in_turn_and_at_most_twice() {
        let (all_probes, mut requested) = (probes("r..D"), Vec::new());
        while let Some(ttl) = in_doubt(&all_probes, &requested) {
            requested.push(ttl);
        }
        assert_eq!(requested, [2, 3, 2, 3]);
    }
}
