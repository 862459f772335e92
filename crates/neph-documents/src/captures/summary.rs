//! The totals of all flows, and the packets that belong to no flow.

use std::io::{self, Write};

use neph_capture::{
    Answer, Event, ExchangeProtocol, Flow, Half, HostPair, Method, Quantiles, RoundTripSketches,
    RoundTripsByMethod, Side,
};
use neph_model::Wall;

use super::FileDocument;
use super::flow::HalvesDocument;
use super::summary_document::SummaryDocument;
use crate::version::Version;
use crate::wall_time;
use neph_capture::reading::conversations::{CAPTURE_ONCE_REMEDY, Conversations};
use neph_capture::reading::file::File;
use neph_capture::reading::snaplen::snaplen_remedy;
use neph_text::counted::counted;

/// A number, its noun and a description.
type CountedNote = (u64, &'static str, &'static str);

/// The totals of all flows.
#[derive(Debug, Default)]
pub struct Summary {
    pub flows: u64,
    /// Flows without a round trip of the path to the server.
    without_path: u64,
    /// Of these, flows with one direction only in the capture.
    one_direction: u64,
    packets: u64,
    bytes: u64,
    /// Retransmissions, spurious ones included; and spurious ones alone.
    retransmitted_segments: u64,
    spurious: u64,
    out_of_order: u64,
    /// Segments that were not matched with an acknowledgement.
    segments_not_tracked: u64,
    /// Flows and pairs whose directions travel in different VLANs or tunnels.
    different_tunnels: u64,
    server: RoundTripSketches,
    client: RoundTripSketches,
    began: Option<Wall>,
    last: Option<Wall>,
    /// Pairs of hosts with exchanges outside TCP, and their packets.
    exchanges: u64,
    exchange_packets: u64,
    /// Pairs of ping and DNS with one direction only in the capture.
    pairs_one_direction: u64,
    /// Answers without a request in the capture, and requests that were not matched with an answer.
    responses_without_request: u64,
    requests_not_tracked: u64,
    /// QUIC connections whose spin bit shows no round trip.
    without_spin: u64,
    /// Of these, connections with one direction only in the capture.
    quic_one_direction: u64,
    /// Answers with a timestamp before their request's.
    pub negative_round_trips: u64,
    /// Answers with the same timestamp as their request.
    pub zero_round_trips: u64,
}

impl Summary {
    pub fn add(&mut self, flow: &Flow) {
        self.flows += 1;
        self.different_tunnels += u64::from(flow.separate_encapsulation(Side::Client).is_some());
        for side in [Side::Client, Side::Server] {
            let sent = flow.sent(side);
            self.packets += sent.packets;
            self.bytes += sent.bytes;
            self.retransmitted_segments += u64::from(sent.retransmitted_segments());
            self.spurious += u64::from(sent.spurious());
            self.segments_not_tracked += sent.segments_not_tracked();
            self.out_of_order += u64::from(sent.count(Event::OutOfOrder));
        }
        let server = flow.round_trips(Half::Server);
        let methods = [Method::Acknowledgement, Method::Echo];
        let is_measured = methods
            .into_iter()
            .any(|method| server.has_path_round_trips(method));
        self.without_path += u64::from(!is_measured);
        let is_received = |side| flow.sent(side).packets > 0;
        let is_one_direction = !(is_received(Side::Client) && is_received(Side::Server));
        self.one_direction += u64::from(!is_measured && is_one_direction);
        self.server.merge(&server);
        self.client.merge(&flow.round_trips(Half::Client));
        let began = flow.first_packet_at();
        self.began = Some(self.began.map_or(began, |first| first.min(began)));
        self.last = self.last.max(Some(flow.last_packet_at()));
    }

    pub fn add_exchange(&mut self, pair: &HostPair) {
        self.exchanges += 1;
        self.different_tunnels += u64::from(pair.other().is_some());
        let counts = pair.counts();
        self.exchange_packets += counts.packets();
        self.negative_round_trips += counts.negative_round_trips();
        self.responses_without_request += counts.responses_without_request();
        self.requests_not_tracked += counts.requests_not_tracked();
        let is_quic = pair.key().protocol == ExchangeProtocol::Quic;
        self.pairs_one_direction += u64::from(!is_quic && pair.is_one_direction());
        let has_no_spin = is_quic && counts.round_trips(Half::Server).is_none();
        self.without_spin += u64::from(has_no_spin);
        self.quic_one_direction += u64::from(has_no_spin && pair.is_one_direction());
    }

    /// Writes some sentences, with the round trips of the path by one method.
    pub fn write(
        &self,
        method: Method,
        conversations: &Conversations,
        files: &[File],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some((began, last)) = self.began.zip(self.last) {
            let (began, last) = (wall_time::utc(began), wall_time::utc(last));
            writeln!(
                out,
                "{} of TCP, {}, {} bytes, {began} to {last}; {} retransmitted ({} of them spurious), {} \
                 out of order.",
                counted(self.flows, "flow"),
                counted(self.packets, "packet"),
                self.bytes,
                self.retransmitted_segments,
                self.spurious,
                self.out_of_order
            )?;
        }
        if self.exchanges > 0 {
            writeln!(
                out,
                "{} outside of TCP (ping, DNS, QUIC), {}.",
                counted(self.exchanges, "pair"),
                counted(self.exchange_packets, "packet")
            )?;
        }
        for (side, trips) in [("servers", &self.server), ("clients", &self.client)] {
            write_side_round_trips(side, &trips.by_method(), method, out)?;
        }
        if let Some(response) = self
            .server
            .answer_quantiles(Method::Response, Answer::WithData)
        {
            let note = quantiles_text(&response);
            writeln!(
                out,
                "Request to the first byte of the response (network and server): {note}."
            )?;
        }
        write_other_packets(conversations, files, out)?;
        let notes = self.misleading_notes(conversations, files);
        for (count, noun, note) in self.incomplete_notes().into_iter().chain(notes) {
            if count > 0 {
                writeln!(out, "{} {note}.", counted(count, noun))?;
            }
        }
        Ok(())
    }

    /// Anomalies of flows and pairs, with their numbers.
    const fn incomplete_notes(&self) -> [CountedNote; 8] {
        [
            (
                self.one_direction,
                "flow",
                "with one direction only in the capture, so without a path RTT to the server. There was no answer, or the other direction takes another path (files of a TAP: give both, a.pcap+b.pcap)",
            ),
            (
                self.without_path - self.one_direction,
                "flow",
                "without a path to the server that could be measured: every answer came with data, or late, or to what was sent twice, or not at all",
            ),
            (
                self.pairs_one_direction,
                "pair",
                "of ping or DNS with one direction only in the capture: there was no answer, or the other direction takes another path",
            ),
            (
                self.responses_without_request,
                "answer",
                "of ping or DNS without a request before it: the request took another path, passed before the capture, or was answered already",
            ),
            (
                self.segments_not_tracked,
                "segment",
                "not matched with an acknowledgement, because more were in flight than neph stores: an even sample represents them",
            ),
            (
                self.requests_not_tracked,
                "question",
                "not matched with an answer, because too many waited for one: an even sample represents them",
            ),
            (
                self.quic_one_direction,
                "connection",
                "of QUIC with one direction only in the capture: the spin bit needs both",
            ),
            (
                self.without_spin - self.quic_one_direction,
                "connection",
                "of QUIC without a spin bit that turns with the round trip",
            ),
        ]
    }

    /// Anomalies of answers and packets, with their numbers.
    fn misleading_notes(&self, conversations: &Conversations, files: &[File]) -> [CountedNote; 8] {
        let evicted = conversations.table.evicted() + conversations.exchanges.evicted();
        let out_of_order_counts =
            (files.iter()).filter_map(|file| Some(file.times?.out_of_order()));
        // They mislead only where the order of segments is reported.
        let is_misled = self.retransmitted_segments + self.out_of_order > 0;
        let dropped = files.iter().filter_map(|file| file.summary.dropped);
        [
            (
                out_of_order_counts.filter(|_| is_misled).sum(),
                "packet",
                "not in order of time, which can look like retransmission or reordering. To sort a capture: reordercap",
            ),
            (
                self.negative_round_trips,
                "answer",
                "with a timestamp before their request's (clock set back, or packets out of order): without a round trip",
            ),
            (
                self.zero_round_trips,
                "round trip",
                "of 0 ns: shorter than the resolution of the capture",
            ),
            (
                evicted,
                "flow",
                "evicted because too many were tracked at the same time; raise --flows",
            ),
            (
                conversations.counts().copies,
                "packet",
                "that the capture holds twice (another interface, VLAN or tunnel, a mirror port): each counts once",
            ),
            (
                self.different_tunnels,
                "flow",
                "with their directions in different VLANs or tunnels: joined by addresses, ports and sequence numbers, because no other flow matches",
            ),
            (
                conversations.table.ambiguous() + conversations.exchanges.ambiguous(),
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

    /// The totals as a document.
    pub fn document(&self, conversations: &Conversations, files: &[File]) -> SummaryDocument {
        let captured: u64 = files.iter().map(|file| file.summary.packets).sum();
        SummaryDocument {
            schema: Version,
            files: files.iter().map(FileDocument::from).collect(),
            packets_captured: captured,
            flows: self.flows,
            flows_evicted: conversations.table.evicted(),
            exchanges: self.exchanges,
            exchanges_evicted: conversations.exchanges.evicted(),
            exchange_packets: self.exchange_packets,
            exchanges_one_direction_only: self.pairs_one_direction,
            responses_without_request: self.responses_without_request,
            requests_not_tracked: self.requests_not_tracked,
            quic_without_spin: self.without_spin,
            quic_of_one_direction: self.quic_one_direction,
            flows_in_different_tunnels: self.different_tunnels,
            ambiguous_directions: conversations.table.ambiguous()
                + conversations.exchanges.ambiguous(),
            capture_duplicates_removed: conversations.counts().copies,
            capture_duplicates_counted: conversations.repeats().packets,
            packets_examined: conversations.repeats().examined,
            responses_stamped_before_request: self.negative_round_trips,
            round_trips_below_resolution: self.zero_round_trips,
            flows_without_server_rtt: self.without_path,
            flows_one_direction_only: self.one_direction,
            packets: self.packets,
            bytes: self.bytes,
            retransmitted_segments: self.retransmitted_segments,
            retransmissions: self.retransmitted_segments - self.spurious,
            spurious_retransmissions: self.spurious,
            segments_not_tracked: self.segments_not_tracked,
            out_of_order: self.out_of_order,
            round_trips: HalvesDocument {
                server: (&self.server).into(),
                client: (&self.client).into(),
            },
            other_packets: conversations.table.other_packets().into(),
        }
    }
}

/// Packets that belong to no flow.
fn write_other_packets(
    conversations: &Conversations,
    files: &[File],
    out: &mut dyn Write,
) -> io::Result<()> {
    let others = conversations.table.other_packets();
    let parts: Vec<String> = [
        (others.udp, "UDP"),
        (others.icmp, "ICMP"),
        (others.fragments, "fragments"),
        (others.other_protocols, "other"),
        (others.truncated, "cut off"),
        (files.iter().map(|file| file.not_ip).sum(), "not IP"),
        (
            files.iter().map(|file| file.without_time).sum(),
            "without a time",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, reason)| format!("{count} {reason}"))
    .collect();
    if !parts.is_empty() {
        writeln!(out, "Packets of no flow here: {}.", parts.join(", "))?;
    }
    if others.truncated > 0 {
        writeln!(
            out,
            "{} truncated within the headers, so their content is unknown; {}.",
            counted(others.truncated, "packet"),
            snaplen_remedy()
        )?;
    }
    let repeats = conversations.repeats();
    if repeats.has_capture_duplicates() {
        writeln!(
            out,
            "{} of the {} examined packets are duplicates in the capture (a mirror port of both directions, or several interfaces): they count twice, as retransmissions or repeated requests; capture {CAPTURE_ONCE_REMEDY}.",
            counted(repeats.packets, "packet"),
            repeats.examined
        )?;
    }
    Ok(())
}

/// Round trips to one side: those of the path, and those that a timer delayed.
fn write_side_round_trips(
    side: &str,
    round_trips: &RoundTripsByMethod,
    method: Method,
    out: &mut dyn Write,
) -> io::Result<()> {
    let method_note = if method == Method::Echo {
        ", by echo"
    } else {
        ""
    };
    if let Some(path) = round_trips.path_quantiles(method) {
        writeln!(
            out,
            "Path RTT to {side}{method_note}: {}.",
            quantiles_text(&path)
        )?;
    }
    if let Some(delayed) = round_trips.answer_quantiles(method, Answer::Delayed) {
        writeln!(
            out,
            "Excluded as delayed acknowledgements of {side}{method_note} (late by a timer of 40 or 200 ms): {}.",
            quantiles_text(&delayed)
        )?;
    }
    Ok(())
}

fn quantiles_text(path: &Quantiles) -> String {
    let mut text = format!("mean {}, p50 {}", path.mean, path.p50);
    for (name, quantile) in [("p95", path.p95), ("p99", path.p99)] {
        if let Some(quantile) = quantile {
            text.push_str(&format!(", {name} {quantile}"));
        }
    }
    let deviation = path
        .deviation
        .map(|deviation| format!(", deviation {deviation}"));
    let weight_note = match path.estimated {
        estimate if estimate > path.n => format!(" that represent {estimate}"),
        _ => String::new(),
    };
    format!(
        "{text}, longest {}{}, {}{weight_note}",
        path.max,
        deviation.unwrap_or_default(),
        counted(path.n, "round trip")
    )
}
