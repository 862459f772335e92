//! All flows together, and what of the captures was of none.

use std::io::{self, Write};

use neph_capture::{
    Answer, Event, Flow, Half, LaidOut, Method, Pair, Quantiles, Question, Side, Trips,
};
use neph_model::Wall;

use super::FileDocument;
use super::flow::HalvesDocument;
use super::summary_document::SummaryDocument;
use crate::version::Version;
use crate::when;
use neph_capture::reading::conversations::{Conversations, ONCE};
use neph_capture::reading::enough::advice;
use neph_capture::reading::file::File;
use neph_text::counted::counted;

/// How many of what, and what of them.
type Oddity = (u64, &'static str, &'static str);

/// What was counted of all flows.
#[derive(Debug, Default)]
pub struct Summary {
    pub flows: u64,
    /// Flows whose path to the server had no round trip.
    unmeasured: u64,
    /// Those of them of which one side alone was captured.
    one_direction: u64,
    packets: u64,
    bytes: u64,
    /// Retransmissions of whatever kind, and those of them that were spurious.
    sent_again: u64,
    spurious: u64,
    out_of_order: u64,
    /// Segments whose answers were not waited for.
    not_followed: u64,
    /// Flows and pairs whose directions travel in different VLANs or tunnels.
    apart: u64,
    server: Trips,
    client: Trips,
    began: Option<Wall>,
    last: Option<Wall>,
    /// Pairs outside of TCP, and their packets.
    exchanges: u64,
    exchanged: u64,
    /// Those of pings and DNS of which one direction alone was captured.
    pairs_one_direction: u64,
    /// Answers to nothing that was asked here, and questions whose answers were not waited for.
    unasked: u64,
    questions_not_followed: u64,
    /// Connections of QUIC whose spin bit did not tell a round trip.
    without_spin: u64,
    /// Those of them of which one side alone was captured.
    quic_one_direction: u64,
    /// Answers stamped before what they answer.
    pub backwards: u64,
    /// Answers with the stamp of what they answer.
    pub of_no_time: u64,
}

impl Summary {
    pub fn add(&mut self, flow: &Flow) {
        self.flows += 1;
        self.apart += u64::from(flow.travels_apart(Side::Client).is_some());
        for side in [Side::Client, Side::Server] {
            let sent = flow.sent(side);
            self.packets += sent.packets;
            self.bytes += sent.bytes;
            self.sent_again += u64::from(sent.sent_again());
            self.spurious += u64::from(sent.spurious());
            self.not_followed += sent.thinned();
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

    pub fn add_exchange(&mut self, pair: &Pair) {
        self.exchanges += 1;
        self.apart += u64::from(pair.other().is_some());
        let all = pair.counted();
        self.exchanged += all.packets();
        self.backwards += all.backwards();
        self.unasked += all.unasked();
        self.questions_not_followed += all.not_followed();
        let is_quic = pair.between().question == Question::Quic;
        self.pairs_one_direction += u64::from(!is_quic && pair.is_one_direction());
        let is_without = is_quic && all.trips(Half::Server).is_none();
        self.without_spin += u64::from(is_without);
        self.quic_one_direction += u64::from(is_without && pair.is_one_direction());
    }

    /// A few sentences; of the path what one method found.
    pub fn write(
        &self,
        method: Method,
        seen: &Conversations,
        files: &[File],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some((began, last)) = self.began.zip(self.last) {
            let (began, last) = (when::utc(began), when::utc(last));
            writeln!(
                out,
                "{} of TCP, {}, {} bytes, {began} to {last}; {} retransmitted ({} of them spurious), {} \
                 out of order.",
                counted(self.flows, "flow"),
                counted(self.packets, "packet"),
                self.bytes,
                self.sent_again,
                self.spurious,
                self.out_of_order
            )?;
        }
        if self.exchanges > 0 {
            writeln!(
                out,
                "{} outside of TCP (ping, DNS, QUIC), {}.",
                counted(self.exchanges, "pair"),
                counted(self.exchanged, "packet")
            )?;
        }
        for (whose, trips) in [("servers", &self.server), ("clients", &self.client)] {
            classes(whose, &trips.laid_out(), method, out)?;
        }
        if let Some(response) = self.server.of(Method::Response, Answer::WithData) {
            let told = told(&response);
            writeln!(
                out,
                "Request to first data of the answer, path and program: {told}."
            )?;
        }
        left_out(seen, files, out)?;
        let misleading = self.misleading(seen, files);
        for (count, noun, told) in self.incomplete().into_iter().chain(misleading) {
            if count > 0 {
                writeln!(out, "{} {told}.", counted(count, noun))?;
            }
        }
        Ok(())
    }

    /// What of flows and of who asked is not as one expects: how many of what, and what of them.
    const fn incomplete(&self) -> [Oddity; 8] {
        [
            (
                self.one_direction,
                "flow",
                "of which one direction alone is in what was captured: without a path to the server that could be measured; nobody answered, or the other one passes elsewhere (of a TAP with a file for each direction give both: a.pcap+b.pcap)",
            ),
            (
                self.unmeasured - self.one_direction,
                "flow",
                "without a path to the server that could be measured: every answer came with data, or late, or to what was sent twice, or not at all",
            ),
            (
                self.pairs_one_direction,
                "pair",
                "of ping or DNS of which one direction alone is in what was captured: nobody answered, or the other one passes elsewhere",
            ),
            (
                self.unasked,
                "answer",
                "of ping or DNS without a question before it: that passed elsewhere or before the capture, or was answered before",
            ),
            (
                self.not_followed,
                "segment",
                "not followed to an answer, of windows larger than neph has room for: the round trips of others, evenly chosen, stand for theirs",
            ),
            (
                self.questions_not_followed,
                "question",
                "not followed to an answer, since too many waited for one: others, evenly chosen, stand for them",
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
        ]
    }

    /// The same of answers and packets.
    fn misleading(&self, seen: &Conversations, files: &[File]) -> [Oddity; 8] {
        let crowded_out = seen.table.crowded_out() + seen.exchanges.crowded_out();
        let out_of_turn = (files.iter()).filter_map(|file| Some(file.times?.out_of_turn()));
        // They mislead only where anything is told of the order of segments.
        let is_misled = self.sent_again + self.out_of_order > 0;
        let dropped = files.iter().filter_map(|file| file.account.dropped);
        [
            (
                out_of_turn.filter(|_| is_misled).sum(),
                "packet",
                "standing behind later ones: what is reported as retransmitted or out of order may be that alone; reordercap puts a capture in order",
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
                "that the capture shows again (another interface, a VLAN or tunnel more, a mirror): each counts once",
            ),
            (
                self.apart,
                "flow",
                "whose directions travel in different VLANs or tunnels: joined, since addresses, ports and numbers of one answer the other and no other flow fits",
            ),
            (
                seen.table.ambiguous() + seen.exchanges.ambiguous(),
                "direction",
                "in VLANs or tunnels of their own that several others could answer: left apart, each of one direction",
            ),
            (
                dropped.sum(),
                "packet",
                "lost by the capturing program: what they answered has no round trip",
            ),
        ]
    }

    /// The same for programs.
    pub fn document(&self, seen: &Conversations, files: &[File]) -> SummaryDocument {
        let captured: u64 = files.iter().map(|file| file.account.packets).sum();
        SummaryDocument {
            schema: Version,
            files: files.iter().map(FileDocument::from).collect(),
            packets_captured: captured,
            flows: self.flows,
            flows_ended_for_others: seen.table.crowded_out(),
            exchanges: self.exchanges,
            exchanges_ended_for_others: seen.exchanges.crowded_out(),
            exchange_packets: self.exchanged,
            exchanges_of_one_direction: self.pairs_one_direction,
            answers_without_question: self.unasked,
            questions_not_followed: self.questions_not_followed,
            quic_without_spin: self.without_spin,
            quic_of_one_direction: self.quic_one_direction,
            flows_in_different_tunnels: self.apart,
            directions_of_several: seen.table.ambiguous() + seen.exchanges.ambiguous(),
            packets_seen_twice: seen.counts().copies,
            packets_shown_again: seen.again().packets,
            packets_looked_at: seen.again().looked,
            answers_stamped_before: self.backwards,
            round_trips_of_no_time: self.of_no_time,
            flows_without_server_path: self.unmeasured,
            flows_of_one_direction: self.one_direction,
            packets: self.packets,
            bytes: self.bytes,
            sent_again: self.sent_again,
            retransmissions: self.sent_again - self.spurious,
            spurious_retransmissions: self.spurious,
            segments_not_followed: self.not_followed,
            out_of_order: self.out_of_order,
            round_trips: HalvesDocument {
                server: (&self.server).into(),
                client: (&self.client).into(),
            },
            other_packets: seen.table.others().into(),
        }
    }
}

/// What of the captures is in no flow.
fn left_out(seen: &Conversations, files: &[File], out: &mut dyn Write) -> io::Result<()> {
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
             that the capture does not tell): they count twice, as retransmitted or asked again; capture {ONCE}.",
            counted(again.packets, "packet"),
            again.looked
        )?;
    }
    Ok(())
}

/// Round trips of one half of the path: the path's, and beside them those that a timer held back.
fn classes(whose: &str, trips: &LaidOut, method: Method, out: &mut dyn Write) -> io::Result<()> {
    let by = if method == Method::Echo {
        ", by echo"
    } else {
        ""
    };
    if let Some(path) = trips.path(method) {
        writeln!(out, "Path to {whose} and back{by}: {}.", told(&path))?;
    }
    if let Some(delayed) = trips.of(method, Answer::Delayed) {
        writeln!(
            out,
            "Set aside as delayed acknowledgements of {whose}{by} (late by a timer of 40 or 200 ms): {}.",
            told(&delayed)
        )?;
    }
    Ok(())
}

fn told(path: &Quantiles) -> String {
    let mut told = format!("mean {}, p50 {}", path.mean, path.p50);
    for (name, quantile) in [("p95", path.p95), ("p99", path.p99)] {
        if let Some(quantile) = quantile {
            told.push_str(&format!(", {name} {quantile}"));
        }
    }
    let deviation = path
        .deviation
        .map(|deviation| format!(", deviation {deviation}"));
    let of = match path.estimated {
        all if all > path.n => format!(" that stand for {all}"),
        _ => String::new(),
    };
    format!(
        "{told}, longest {}{}, {}{of}",
        path.most,
        deviation.unwrap_or_default(),
        counted(path.n, "round trip")
    )
}
