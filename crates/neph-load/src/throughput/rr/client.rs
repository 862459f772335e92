//! The client of a request/response test.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_model::{Stop, Wall};
use neph_sys::clock;
use neph_wire::throughput::{Preamble, RrInterval, RrKind};

use super::super::board::Board;
use super::super::carrier::Carrier;
use super::super::dialogue::Dialogue;
use super::super::engine::{Decision, TestState, run_streams};
use super::super::error::ThroughputError;
use super::super::job::Job;
use super::super::opening::{Started, start};
use super::super::rates::nanos;
use super::super::usage::usage;
use super::measured::{RrCounts, RrMeasured};
use super::recorder::{Recorder, Sink};
use super::second::{RrSecond, Seconds, per_second};
use super::spec::{RrRequest, RrSpec};
use super::{datagram_client, stream_client};
use crate::durations::Durations;

/// Measures until the duration is over or `stop` is set. `on_second` gets each second with its RTTs
/// once both ends have counted it.
///
/// # Errors
/// The server cannot be reached, refuses, or breaks off before anything was counted. After a later
/// fault the result has the counts so far and the fault ([`RrMeasured::fault`]).
pub fn measure(
    request: RrRequest<'_>,
    stop: &Stop,
    on_second: &mut dyn FnMut(&RrSecond),
) -> Result<RrMeasured, ThroughputError> {
    let RrRequest { server, spec, .. } = request;
    spec.ask.check()?;
    let job = Job::Rr(spec.ask.clone());
    let Started {
        control,
        token,
        carriers,
    } = start(server, &job, stop)?;
    let sink = Sink::default();
    let carriers_by_stream: BTreeMap<u16, Option<Carrier>> = match spec.ask.kind {
        RrKind::TcpCrr => (0..spec.ask.streams).map(|stream| (stream, None)).collect(),
        RrKind::UdpRr | RrKind::TcpRr => carriers
            .into_iter()
            .map(|(stream, carrier)| (stream, Some(carrier)))
            .collect(),
    };
    let run_stream = |carrier: Option<Carrier>, stream, board: &Board, stop: &Stop| {
        let recorder = Recorder::of_client(stream, job.duration(), board, &sink);
        match carrier {
            Some(Carrier::Udp(socket)) => {
                datagram_client::run_transactions(&socket, request, token, stop, recorder)
            }
            Some(Carrier::Tcp(stream)) => {
                stream_client::run_transactions(&stream, request, stop, recorder)
            }
            None => {
                let preamble = Preamble { stream, token };
                stream_client::run_connections(request, preamble, stop, recorder)
            }
        }
    };
    let mut client = Client {
        dialogue: Dialogue::begin(control, stop),
        seconds: Seconds::of(spec.ask.streams),
        started: Wall::from_unix_nanos(clock::wall().0),
        rtts: Durations::default(),
        sink: &sink,
        on_second,
    };
    let fault = run_streams(carriers_by_stream, &run_stream, &mut |state| {
        Ok(client.poll(state))
    })?;
    Ok(client.finish(server, spec, fault))
}

struct Client<'a> {
    dialogue: Dialogue<'a>,
    seconds: Seconds,
    started: Wall,
    rtts: Durations,
    sink: &'a Sink,
    on_second: &'a mut dyn FnMut(&RrSecond),
}

impl Client<'_> {
    fn poll(&mut self, state: TestState<'_>) -> Decision {
        let decision = self.dialogue.poll(state);
        // RTTs are added before their interval, so they exist for every interval.
        for part in self.sink.take() {
            self.rtts.merge(&part.rtts);
            self.seconds.add_rtts(&part);
        }
        let client = std::mem::take(&mut self.dialogue.client);
        let server = std::mem::take(&mut self.dialogue.server);
        self.seconds.add(client, server);
        while let Some(second) = self.seconds.next() {
            (self.on_second)(&second);
        }
        decision
    }

    fn finish(mut self, address: SocketAddr, spec: &RrSpec, fault: Option<String>) -> RrMeasured {
        for second in self.seconds.remaining() {
            (self.on_second)(&second);
        }
        let (client, server) = (&self.seconds.client, &self.seconds.server);
        let mut counts = RrCounts::default();
        for interval in &client.exchanged {
            counts.add(interval);
        }
        let last = client.exchanged.iter().map(|interval| interval.to_ns).max();
        let requests = server
            .exchanged
            .iter()
            .map(|interval| interval.transactions);
        // A fault of the client also breaks the server's stream: the client's fault is the root
        // cause.
        let fault = fault.or(self.dialogue.fault);
        RrMeasured {
            address,
            spec: spec.clone(),
            started: self.started,
            lasted: nanos(last.unwrap_or(0)),
            rate: rate(&client.exchanged),
            rtts: self.rtts,
            counts,
            requests_at_server: fault
                .is_none()
                .then(|| requests.fold(0, u64::saturating_add)),
            client: usage(&client.exchanged, &client.cpu),
            server: usage(&server.exchanged, &server.cpu),
            is_stopped: self.dialogue.is_stopped,
            fault,
        }
    }
}

/// Transactions per second: the sum over all streams, each in its own time.
fn rate(intervals: &[RrInterval]) -> f64 {
    let mut streams: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for interval in intervals {
        let (count, end_ns) = streams.entry(interval.stream).or_default();
        *count += interval.transactions;
        *end_ns = interval.to_ns.max(*end_ns);
    }
    let rates = streams.into_values();
    rates.map(|(count, end_ns)| per_second(count, end_ns)).sum()
}
