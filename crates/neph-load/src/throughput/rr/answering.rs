//! Answers the streams of a request/response test.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicI64;

use neph_model::Stop;
use neph_sys::clock;
use neph_wire::throughput::{RrKind, RrTestRequest, Token};

use super::super::board::Board;
use super::super::carrier::Carrier;
use super::super::engine::{Decision, Turn, run_streams};
use super::super::error::ThroughputError;
use super::super::listening::{LentSocket, Listening};
use super::super::served::ServerSpec;
use super::acceptor::Acceptor;
use super::guard::Guard;
use super::recorder::Recorder;
use super::{datagram_answers, stream_answers};

/// The server's side of a test.
#[derive(Clone, Copy, Debug)]
pub(in crate::throughput) struct Answering<'a> {
    pub(in crate::throughput) ask: &'a RrTestRequest,
    pub(in crate::throughput) token: Token,
    pub(in crate::throughput) client: IpAddr,
    pub(in crate::throughput) listening: &'a Listening,
    pub(in crate::throughput) spec: &'a ServerSpec,
}

impl<'a> Answering<'a> {
    /// Borrows the listening socket if the transactions are connections.
    pub(in crate::throughput) fn prepare(&self) -> Option<LentSocket<'a>> {
        (self.ask.kind == RrKind::TcpCrr).then(|| self.listening.lend())
    }
}

/// Answers until all streams have ended; calls `turn` repeatedly. Returns the first fault of a
/// stream. The result of [`Answering::prepare`] is dropped at the end.
pub(in crate::throughput) fn answer(
    answering: &Answering<'_>,
    carriers: BTreeMap<u16, Carrier>,
    lent: Option<LentSocket<'_>>,
    turn: &mut dyn FnMut(Turn<'_>) -> Result<Decision, ThroughputError>,
) -> Result<Option<String>, ThroughputError> {
    let Answering { ask, token, .. } = *answering;
    let parts: BTreeMap<u16, Option<Carrier>> = match ask.kind {
        RrKind::TcpCrr => (0..ask.streams).map(|stream| (stream, None)).collect(),
        RrKind::UdpRr | RrKind::TcpRr => carriers
            .into_iter()
            .map(|(stream, carrier)| (stream, Some(carrier)))
            .collect(),
    };
    let requested = AtomicI64::new(clock::raw().0);
    let work = |part: Option<Carrier>, stream, board: &Board, stop: &Stop| {
        let mut guard = Guard::new(ask, answering.spec, Recorder::of_server(stream, board));
        match part {
            Some(Carrier::Udp(socket)) => {
                datagram_answers::answer(&socket, ask, token, stop, guard)
            }
            Some(Carrier::Tcp(stream)) => stream_answers::answer(&stream, ask, stop, guard),
            None => {
                guard.share(&requested);
                let acceptor = Acceptor {
                    listening: answering.listening,
                    ask,
                    token,
                    client: answering.client.to_canonical(),
                };
                acceptor.work(stop, guard)
            }
        }
    };
    let ended = run_streams(parts, &work, turn);
    drop(lent);
    ended
}
