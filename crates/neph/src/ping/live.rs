//! One line per message for people, in columns that do not move.

use neph_model::{Answer, Entry, FlowRole, Ledger, Message, Outcome, ProbeKind, Span, Stage};

use super::flows::Planned;
use crate::syn_answers;

/// The line above the messages.
pub(super) fn heading(planned: &Planned) -> String {
    let mut line = format!(
        "{:>6}  {:>10}  {:>10}  {:>10}",
        "seq", "response", "tcp", "icmp"
    );
    for (name, _) in shown(planned) {
        line.push_str(&format!("  {name:>11}"));
    }
    line
}

/// Which stages have a column of their own: sending is told as one, and with it a connection that
/// had to be made anew although it was to last.
fn shown(planned: &Planned) -> Vec<(&'static str, &'static [Stage])> {
    use Stage::{
        Compose, Connect, Handshake, Lateness, Network, OwnKernel, PeerApp, PeerKernel, PeerSend,
        SendQueue, SendWindow,
    };
    let spec = &planned.spec;
    let mut stages: Vec<(&str, &[Stage])> = vec![("lateness", &[Lateness])];
    let connects = match spec.target.kind() {
        ProbeKind::Tcp => !spec.reflector,
        ProbeKind::Syn => !neph_probe::can_build_syns(),
        ProbeKind::Ws | ProbeKind::Http | ProbeKind::Udp | ProbeKind::Icmp => false,
    };
    if connects {
        // The attempt is the message.
        stages.push(("connect", &[Connect]));
        return stages;
    }
    if spec.connection_use == neph_probe::ConnectionUse::PerMessage {
        stages.push(("connect", &[Connect]));
        if spec.target.is_secure() || spec.target.kind() != ProbeKind::Http {
            stages.push(("handshake", &[Handshake]));
        }
        stages.push(("send", &[Compose, SendWindow, SendQueue]));
    } else {
        stages.push((
            "send",
            &[Connect, Handshake, Compose, SendWindow, SendQueue],
        ));
    }
    if spec.reflector {
        stages.push(("network", &[Network]));
        stages.push(("peer kernel", &[PeerKernel]));
        stages.push(("peer app", &[PeerApp]));
        stages.push(("peer send", &[PeerSend]));
    } else {
        stages.push(("net + peer", &[Network, PeerKernel, PeerApp, PeerSend]));
    }
    stages.push(("own kernel", &[OwnKernel]));
    stages
}

/// One message; `icmp` is the latest echo's round trip.
pub(super) fn line(planned: &Planned, message: &Message, icmp: Option<Span>) -> String {
    let seq = message.seq;
    let Some(ledger) = message.ledger() else {
        let what = match message.outcome {
            Outcome::Lost => "no reply",
            Outcome::Error => "error",
            Outcome::Failed | Outcome::Reply => {
                match (planned.spec.target.kind(), message.answer) {
                    (ProbeKind::Ws | ProbeKind::Http | ProbeKind::Tcp, None) => {
                        "not sent: no connection"
                    }
                    _ => "not sent",
                }
            }
        };
        let why = message
            .answer
            .map_or_else(String::new, |answer| format!(": {}", answer.words()));
        return format!("{seq:>6}  {what}{why}");
    };
    let mut line = format!(
        "{seq:>6}  {:>10}  {}  {}",
        ledger.response_time(),
        cell(message.marks.tcp_round_trip(), 10),
        cell(icmp, 10)
    );
    for (_, stages) in shown(planned) {
        line.push_str("  ");
        line.push_str(&column(&ledger, stages));
    }
    match message.answer {
        Some(Answer::Syn(answer)) => line.push_str(&format!("  {}", syn_answers::word(answer))),
        Some(Answer::HttpStatus(200)) | None => {}
        Some(other) => line.push_str(&format!("  {}", other.words())),
    }
    if message.duplicates > 0 {
        line.push_str(&format!("  duplicate x{}", message.duplicates));
    }
    if message.reordered {
        line.push_str("  reordered");
    }
    line
}

/// The time of these stages; of what is merged with others an upper bound, at the first of its stages.
fn column(ledger: &Ledger, stages: &[Stage]) -> String {
    const WIDTH: usize = 11;
    let begins = |entry: &&Entry| {
        entry
            .stages
            .iter()
            .next()
            .is_some_and(|first| stages.contains(&first))
    };
    let entries = || ledger.entries().iter().filter(begins);
    let is_merged = entries().any(|entry| entry.stages.iter().any(|one| !stages.contains(&one)));
    let time = entries()
        .next()
        .map(|_| entries().map(|entry| entry.time).sum());
    match time {
        Some(time) if is_merged => format!("{:>WIDTH$}", format!("<{time}")),
        time => cell(time, WIDTH),
    }
}

fn cell(span: Option<Span>, width: usize) -> String {
    match span {
        Some(span) => format!("{span:>width$}"),
        None => format!("{:>width$}", "-"),
    }
}

/// Whether this flow's messages have lines: the companion's go into a column.
pub(super) fn has_lines(planned: &Planned) -> bool {
    planned.spec.role == FlowRole::Main
}
