//! A message as a line of text, in fixed columns.

use neph_model::{Answer, Entry, FlowRole, Ledger, Message, Outcome, Span, Stage};
use neph_probe::ConnectionUse;

use super::PlannedFlow;
use super::answers::answer_text;
use crate::syn_answers;

/// The header above the messages.
pub fn live_heading(planned: &PlannedFlow) -> String {
    let mut line = format!(
        "{:>6}  {:>10}  {:>10}  {:>10}",
        "seq", "response", "tcp", "icmp"
    );
    for (name, _) in stage_columns(planned) {
        line.push_str(&format!("  {name:>11}"));
    }
    line
}

/// The stages with a column of their own; sending is one column. A connection that replaces a
/// persistent one has none: see [`reconnect_suffix`].
fn stage_columns(planned: &PlannedFlow) -> Vec<(&'static str, &'static [Stage])> {
    use Stage::{
        Compose, Connect, Handshake, Lateness, Network, OwnKernel, PeerApp, PeerKernel, PeerSend,
        SendQueue, SendWindow,
    };
    let spec = &planned.spec;
    let mut stages: Vec<(&str, &[Stage])> = vec![("lateness", &[Lateness])];
    if is_attempt(planned) {
        // The connection attempt is the message.
        stages.push(("connect", &[Connect]));
        return stages;
    }
    if spec.connection_use == ConnectionUse::PerMessage {
        stages.push(("connect", &[Connect]));
        if spec.target.is_secure() || spec.target.kind().properties().has_opening {
            stages.push(("handshake", &[Handshake]));
        }
    }
    stages.push(("send", &[Compose, SendWindow, SendQueue]));
    if spec.reflector {
        stages.push(("network", &[Network]));
        stages.push(("peer kernel", &[PeerKernel]));
        stages.push(("peer app", &[PeerApp]));
        stages.push(("peer send", &[PeerSend]));
    } else {
        stages.push(("net + peer", &[Network, PeerKernel, PeerApp, PeerSend]));
    }
    stages.push(("client kernel", &[OwnKernel]));
    stages
}

/// Whether its messages are connection attempts only.
fn is_attempt(planned: &PlannedFlow) -> bool {
    let spec = &planned.spec;
    spec.is_attempt() && !(spec.target.kind().is_segment() && neph_probe::can_build_syns())
}

/// One message; `icmp` is the latest echo's round trip.
pub fn message_line(planned: &PlannedFlow, message: &Message, icmp: Option<Span>) -> String {
    let seq = message.seq;
    let Some(ledger) = message.ledger() else {
        return no_reply_line(planned, message);
    };
    let mut line = format!(
        "{seq:>6}  {:>10}  {}  {}",
        ledger.response_time(),
        span_cell(message.marks.tcp_round_trip(), 10),
        span_cell(icmp, 10)
    );
    for (_, stages) in stage_columns(planned) {
        line.push_str("  ");
        line.push_str(&column_text(&ledger, stages));
    }
    if planned.spec.connection_use == ConnectionUse::Lasting && !is_attempt(planned) {
        line.push_str(&reconnect_suffix(&ledger));
    }
    line.push_str(&answer_suffix(message));
    if message.duplicates > 0 {
        line.push_str(&format!("  duplicate x{}", message.duplicates));
    }
    if message.reordered {
        line.push_str("  reordered");
    }
    line
}

/// The line of a message without a reply.
fn no_reply_line(planned: &PlannedFlow, message: &Message) -> String {
    let seq = message.seq;
    let outcome = match message.outcome {
        Outcome::Lost => "no reply",
        Outcome::Error => "error",
        Outcome::Failed | Outcome::Reply
            if planned.spec.target.uses_connection() && message.answer.is_none() =>
        {
            "not sent: no connection"
        }
        Outcome::Failed | Outcome::Reply => "not sent",
    };
    let answer_text = message.answer.map_or_else(String::new, |answer| {
        format!(": {}", answer_text(planned, answer))
    });
    format!("{seq:>6}  {outcome}{answer_text}")
}

/// The status or handshake answer of a reply.
fn answer_suffix(message: &Message) -> String {
    match message.answer {
        Some(Answer::Syn(answer)) => format!("  {}", syn_answers::port_state_text(answer)),
        None => String::new(),
        Some(answer) if answer.is_plain_success() => String::new(),
        Some(other) => format!("  {}", other.description()),
    }
}

/// `  connect 93.0 us, handshake 1.02 ms`: the wait of the message for a new connection, after the
/// previous one had ended.
fn reconnect_suffix(ledger: &Ledger) -> String {
    let waits = ledger.entries().iter().filter(|entry| {
        let first_stage = entry.stages.iter().next();
        matches!(first_stage, Some(Stage::Connect | Stage::Handshake))
    });
    let waits: Vec<String> = waits
        .map(|entry| format!("{} {}", entry.stages, entry.time()))
        .collect();
    if waits.is_empty() {
        return String::new();
    }
    format!("  {}", waits.join(", "))
}

/// The time of these stages. For stages merged with others, an upper bound in the column of the
/// first stage.
fn column_text(ledger: &Ledger, stages: &[Stage]) -> String {
    const WIDTH: usize = 11;
    let starts_in_column = |entry: &&Entry| {
        entry
            .stages
            .iter()
            .next()
            .is_some_and(|first| stages.contains(&first))
    };
    let entries = || ledger.entries().iter().filter(starts_in_column);
    let is_merged =
        entries().any(|entry| entry.stages.iter().any(|stage| !stages.contains(&stage)));
    let time = entries()
        .next()
        .map(|_| entries().map(neph_model::Entry::time).sum());
    match time {
        Some(time) if is_merged => format!("{:>WIDTH$}", format!("<{time}")),
        time => span_cell(time, WIDTH),
    }
}

fn span_cell(span: Option<Span>, width: usize) -> String {
    match span {
        Some(span) => format!("{span:>width$}"),
        None => format!("{:>width$}", "-"),
    }
}

/// Whether this flow's messages have lines: the companion's go into a column.
pub fn has_lines(planned: &PlannedFlow) -> bool {
    planned.spec.role == FlowRole::Main
}

#[cfg(test)]
mod tests {
    use neph_model::Target;
    use neph_model::{FlowIndex, Instant, Marks, Seq};
    use neph_probe::{Discovery, FlowSpec};

    use super::*;

    fn planned_flow(target: &str) -> PlannedFlow {
        let target = Target::parse(target).expect("a target");
        PlannedFlow {
            spec: FlowSpec::plain(target, ([127, 0, 0, 1], 9).into()),
            discovery: Discovery::default(),
        }
    }

    /// A message that met a new connection: 93 us to connect, 1.02 ms of TLS, 12 us to send.
    fn reconnected_message() -> Message {
        let at = |micros: i64| Some(Instant::from_nanos(micros * 1000));
        let mut marks = Marks::intended_at(Instant::from_nanos(0));
        (marks.dialled, marks.connected, marks.opened) = (at(7), at(100), at(1120));
        (marks.app_send, marks.queued, marks.nic_tx) = (at(1122), at(1130), at(1132));
        (marks.nic_rx, marks.app_recv) = (at(1400), at(1450));
        let mut message = Message::new(FlowIndex(0), Seq(3), marks);
        message.outcome = Outcome::Reply;
        message
    }

    #[test]
    fn a_new_connection_is_printed_separately_from_sending() {
        let mut planned = planned_flow("https://h:9");
        assert_eq!(
            message_line(&planned, &reconnected_message(), None),
            "     3     1.45 ms           -           -       7.0 us      12.0 us     268.0 us      \
             50.0 us  connect 93.0 us, handshake 1.02 ms"
        );
        planned.spec.connection_use = ConnectionUse::PerMessage;
        assert_eq!(
            message_line(&planned, &reconnected_message(), None),
            "     3     1.45 ms           -           -       7.0 us      93.0 us      1.02 ms      \
             12.0 us     268.0 us      50.0 us"
        );
    }

    #[test]
    fn an_http_status_to_a_websocket_opening_is_a_refusal() {
        let mut message = reconnected_message();
        message.outcome = Outcome::Failed;
        message.answer = Some(Answer::HttpStatus(200));
        assert_eq!(
            message_line(&planned_flow("ws://h:9"), &message, None),
            "     3  not sent: WebSocket refused: HTTP status 200"
        );
        message.answer = Some(Answer::Closed);
        assert_eq!(
            message_line(&planned_flow("ws://h:9"), &message, None),
            "     3  not sent: connection closed by the peer"
        );
    }
}
