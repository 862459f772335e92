//! All flows together, and what of the captures was of none.

use std::io::{self, Write};

use neph_capture::{
    Account, Answer, Ending, Event, Flow, Half, Method, Pair, Quantiles, Question, Side, Trips,
};
use neph_model::{Span, Wall};
use serde_json::{Value, json};

use super::conversations::{Conversations, ONCE};
use super::json;
use super::{ending, gzip};
use crate::counted::counted;
use crate::enough::advice;
use crate::when;

/// A capture that was read.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) account: Account,
    /// Packets without IP, or of a link that is not known.
    pub(crate) not_ip: u64,
    /// A link type that is not known, of some of them.
    pub(crate) unread: Option<u32>,
    /// When its packets passed.
    pub(crate) times: Option<Times>,
    /// Packets that the file keeps no time of.
    pub(crate) without_time: u64,
}

/// The times of a capture's packets, in the order of the file; nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Of the first packet.
    pub(crate) first: i64,
    /// The latest.
    pub(crate) last: i64,
    /// Packets that lay before the latest until then.
    late: u64,
    /// The furthest that one did, nanoseconds.
    back: i64,
}

impl Times {
    /// Packets of several processors and interfaces stand out of order by less than this.
    const DISORDER: Span = Span::from_nanos(5_000_000_000);

    pub(crate) const fn from(at: i64) -> Self {
        Self {
            first: at,
            last: at,
            late: 0,
            back: 0,
        }
    }

    #[inline]
    pub(crate) fn see(&mut self, at: i64) {
        if at >= self.last {
            self.last = at;
        } else {
            self.late += 1;
            self.back = self.back.max(self.last.saturating_sub(at));
        }
    }

    /// Whether both passed at the same time, for a while.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// How far they go back at once, where that is more than disorder.
    pub(crate) fn jump(self) -> Option<Span> {
        Some(Span::from_nanos(self.back)).filter(|back| *back > Self::DISORDER)
    }

    /// Packets that stand behind later ones; none where the times jump.
    const fn out_of_turn(self) -> u64 {
        if self.back > Self::DISORDER.nanos() {
            0
        } else {
            self.late
        }
    }
}

/// What was counted of all flows.
#[derive(Default)]
pub(super) struct Summary {
    pub(super) flows: u64,
    /// Flows whose path to the server had no round trip.
    unmeasured: u64,
    /// Those of them of which one side alone was captured.
    one_direction: u64,
    packets: u64,
    bytes: u64,
    sent_again: u64,
    out_of_order: u64,
    server: Trips,
    client: Trips,
    began: Option<Wall>,
    last: Option<Wall>,
    /// Pairs outside of TCP, and their packets.
    exchanges: u64,
    exchanged: u64,
    /// Connections of QUIC whose spin bit did not tell a round trip.
    without_spin: u64,
    /// Those of them of which one side alone was captured.
    quic_one_direction: u64,
    /// Answers stamped before what they answer.
    pub(super) backwards: u64,
    /// Answers with the stamp of what they answer.
    pub(super) of_no_time: u64,
}

impl Summary {
    pub(super) fn add(&mut self, flow: &Flow) {
        self.flows += 1;
        for side in [Side::Client, Side::Server] {
            let sent = flow.sent(side);
            self.packets += sent.packets;
            self.bytes += sent.bytes;
            self.sent_again += u64::from(sent.sent_again());
            self.out_of_order += u64::from(sent.count(Event::OutOfOrder));
        }
        let server = flow.trips(Half::Server);
        let methods = [Method::Acknowledgement, Method::Echo];
        let is_measured = methods.into_iter().any(|method| server.has_path(method));
        self.unmeasured += u64::from(!is_measured);
        let is_heard = |side| flow.sent(side).packets > 0;
        let is_one = !(is_heard(Side::Client) && is_heard(Side::Server));
        self.one_direction += u64::from(!is_measured && is_one);
        self.server.merge(&server);
        self.client.merge(&flow.trips(Half::Client));
        let began = flow.began();
        self.began = Some(self.began.map_or(began, |first| first.min(began)));
        self.last = self.last.max(Some(flow.last()));
    }

    pub(super) fn add_exchange(&mut self, pair: &Pair) {
        self.exchanges += 1;
        let all = pair.counted();
        self.exchanged += all.packets();
        self.backwards += all.backwards();
        let is_quic = pair.between().question == Question::Quic;
        let is_without = is_quic && all.trips(Half::Server).is_none();
        self.without_spin += u64::from(is_without);
        self.quic_one_direction += u64::from(is_without && pair.is_one_direction());
    }

    /// A few sentences; of the path what one method found.
    pub(super) fn write(
        &self,
        method: Method,
        (seen, files): (&Conversations, &[File]),
        out: &mut impl Write,
    ) -> io::Result<()> {
        if let Some((began, last)) = self.began.zip(self.last) {
            let (began, last) = (when::utc(began), when::utc(last));
            writeln!(
                out,
                "{} of TCP, {}, {} bytes, {began} to {last}; {} sent again, {} out of order.",
                counted(self.flows, "flow"),
                counted(self.packets, "packet"),
                self.bytes,
                self.sent_again,
                self.out_of_order
            )?;
        }
        for (whose, trips) in [("servers", &self.server), ("clients", &self.client)] {
            if let Some(path) = trips.path(method) {
                let by = if method == Method::Echo {
                    ", by echo"
                } else {
                    ""
                };
                writeln!(out, "Path to {whose} and back{by}: {}.", told(&path))?;
            }
        }
        if let Some(response) = self.server.of(Method::Response, Answer::WithData) {
            let told = told(&response);
            writeln!(
                out,
                "Request to first data of the answer, path and program: {told}."
            )?;
        }
        left_out(seen, files, out)?;
        for (count, noun, told) in self.oddities(seen, files) {
            if count > 0 {
                writeln!(out, "{} {told}.", counted(count, noun))?;
            }
        }
        Ok(())
    }

    /// What of flows, answers and packets is not as one expects: how many of what, and what of them.
    fn oddities(
        &self,
        seen: &Conversations,
        files: &[File],
    ) -> [(u64, &'static str, &'static str); 10] {
        let crowded_out = seen.table.crowded_out() + seen.exchanges.crowded_out();
        let out_of_turn = (files.iter()).filter_map(|file| Some(file.times?.out_of_turn()));
        // They mislead only where anything is told of the order of segments.
        let is_misled = self.sent_again + self.out_of_order > 0;
        let dropped = files.iter().filter_map(|file| file.account.dropped);
        [
            (
                self.one_direction,
                "flow",
                "of which one direction alone is in what was captured: without a path to the server that could be measured; nobody answered, or the other one passes elsewhere",
            ),
            (
                self.unmeasured - self.one_direction,
                "flow",
                "without a path to the server that could be measured: every answer came with data, or late, or to what was sent twice, or not at all",
            ),
            (
                self.quic_one_direction,
                "connection",
                "of QUIC of which one direction alone is in what was captured: a spin bit tells round trips where both pass",
            ),
            (
                self.without_spin - self.quic_one_direction,
                "connection",
                "of QUIC without a spin bit that turns with the round trip",
            ),
            (
                out_of_turn.filter(|_| is_misled).sum(),
                "packet",
                "standing behind later ones: what is told to be sent again or out of order may be that alone; reordercap puts a capture in order",
            ),
            (
                self.backwards,
                "answer",
                "stamped before what they answer, since the clock was set back or packets stand out of order: without a round trip",
            ),
            (
                self.of_no_time,
                "round trip",
                "of 0 ns: shorter than the capture's stamps tell",
            ),
            (
                crowded_out,
                "flow",
                "ended for others, since there were too many at a time; --flows allows more",
            ),
            (
                seen.counts().copies,
                "packet",
                "that had passed another interface just before, and do not count again",
            ),
            (
                dropped.sum(),
                "packet",
                "lost by the capturing program: what they answered has no round trip",
            ),
        ]
    }

    /// The same for programs.
    pub(super) fn json(&self, seen: &Conversations, files: &[File]) -> Value {
        let others = seen.table.others();
        let files: Vec<Value> = files.iter().map(file).collect();
        json!({
            "kind": "summary",
            "files": files,
            "flows": self.flows,
            "flows_ended_for_others": seen.table.crowded_out(),
            "exchanges": self.exchanges,
            "exchanges_ended_for_others": seen.exchanges.crowded_out(),
            "exchange_packets": self.exchanged,
            "quic_without_spin": self.without_spin,
            "quic_of_one_direction": self.quic_one_direction,
            "packets_seen_twice": seen.counts().copies,
            "packets_shown_again": seen.again().packets,
            "packets_looked_at": seen.again().looked,
            "answers_stamped_before": self.backwards,
            "round_trips_of_no_time": self.of_no_time,
            "flows_without_server_path": self.unmeasured,
            "flows_of_one_direction": self.one_direction,
            "packets": self.packets,
            "bytes": self.bytes,
            "sent_again": self.sent_again,
            "out_of_order": self.out_of_order,
            "round_trips": {
                "server": json::trips(&self.server),
                "client": json::trips(&self.client),
            },
            "other_packets": {
                "udp": others.udp,
                "icmp": others.icmp,
                "fragments": others.fragments,
                "unread": others.unread,
                "cut_off": others.cut,
            },
        })
    }
}

/// What of the captures is in no flow.
fn left_out(seen: &Conversations, files: &[File], out: &mut impl Write) -> io::Result<()> {
    let others = seen.table.others();
    let told: Vec<String> = [
        (others.udp, "UDP"),
        (others.icmp, "ICMP"),
        (others.fragments, "fragments"),
        (others.unread, "other"),
        (others.cut, "cut off"),
        (files.iter().map(|file| file.not_ip).sum(), "not IP"),
        (
            files.iter().map(|file| file.without_time).sum(),
            "without a time",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if !told.is_empty() {
        writeln!(out, "Packets of no flow here: {}.", told.join(", "))?;
    }
    if others.cut > 0 {
        writeln!(
            out,
            "{} cut off within the headers, and what they carry is not told; {}.",
            counted(others.cut, "packet"),
            advice()
        )?;
    }
    let again = seen.again();
    if again.is_many() {
        writeln!(
            out,
            "{} of the {} that were looked at stand there again (a mirror of both directions, or interfaces \
             that the capture does not tell): they count twice, as sent again or asked again; capture {ONCE}.",
            counted(again.packets, "packet"),
            again.looked
        )?;
    }
    Ok(())
}

fn file(file: &File) -> Value {
    let ending = match &file.account.ending {
        _ if ending::is_whole(&file.account) => "whole",
        Ending::BrokenPacked(error) if gzip::is_trailing(error) => "cut off",
        Ending::Whole | Ending::CutOff | Ending::CutPacked => "cut off",
        Ending::Broken(_) | Ending::BrokenPacked(_) => "broken",
        Ending::Failed(_) => "failed",
        Ending::Stopped => "stopped",
    };
    json!({
        "name": file.name,
        "packets": file.account.packets,
        "bytes": file.account.bytes,
        "packets_not_ip": file.not_ip,
        "packets_without_time": file.without_time,
        "packets_lost_by_capture": file.account.dropped,
        "packets_out_of_turn": file.times.map_or(0, Times::out_of_turn),
        "jump_back_ns": file.times.and_then(Times::jump).map(Span::nanos),
        "ending": ending,
    })
}

fn told(path: &Quantiles) -> String {
    let mut told = format!("p50 {}", path.p50);
    for (name, quantile) in [("p95", path.p95), ("p99", path.p99)] {
        if let Some(quantile) = quantile {
            told.push_str(&format!(", {name} {quantile}"));
        }
    }
    format!(
        "{told}, longest {}, {}",
        path.most,
        counted(path.n, "round trip")
    )
}
