//! Answers the streams of a request/response test.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicI64;

use neph_model::Stop;
use neph_sys::clock;
use neph_wire::throughput::{RrKind, RrTestRequest, Token};

use super::super::board::Board;
use super::super::carrier::Carrier;
use super::super::engine::{Decision, TestState, run_streams};
use super::super::error::ThroughputError;
use super::super::listening::{LentSocket, Listening};
use super::super::served::ServerSpec;
use super::acceptor::Acceptor;
use super::guard::Guard;
use super::recorder::Recorder;
use super::{datagram_server, stream_server};

/// The server's side of a test.
#[derive(Clone, Copy, Debug)]
pub(in crate::throughput) struct RrServer<'a> {
    pub(in crate::throughput) test_request: &'a RrTestRequest,
    pub(in crate::throughput) token: Token,
    pub(in crate::throughput) client: IpAddr,
    pub(in crate::throughput) listening: &'a Listening,
    pub(in crate::throughput) spec: &'a ServerSpec,
}

impl<'a> RrServer<'a> {
    /// Borrows the listening socket if the transactions are connections.
    pub(in crate::throughput) fn prepare(&self) -> Option<LentSocket<'a>> {
        (self.test_request.kind == RrKind::TcpCrr).then(|| self.listening.lend())
    }
}

/// Answers until all streams have ended; calls `poll` repeatedly. Returns the first fault of a
/// stream. The result of [`RrServer::prepare`] is dropped at the end.
pub(in crate::throughput) fn serve(
    rr_server: &RrServer<'_>,
    carriers: BTreeMap<u16, Carrier>,
    lent: Option<LentSocket<'_>>,
    poll: &mut dyn FnMut(TestState<'_>) -> Result<Decision, ThroughputError>,
) -> Result<Option<String>, ThroughputError> {
    let RrServer {
        test_request,
        token,
        ..
    } = *rr_server;
    let parts: BTreeMap<u16, Option<Carrier>> = match test_request.kind {
        RrKind::TcpCrr => (0..test_request.streams)
            .map(|stream| (stream, None))
            .collect(),
        RrKind::UdpRr | RrKind::TcpRr => carriers
            .into_iter()
            .map(|(stream, carrier)| (stream, Some(carrier)))
            .collect(),
    };
    let requested = AtomicI64::new(clock::raw().0);
    let work = |part: Option<Carrier>, stream, board: &Board, stop: &Stop| {
        let mut guard = Guard::new(
            test_request,
            rr_server.spec,
            Recorder::of_server(stream, board),
        );
        match part {
            Some(Carrier::Udp(socket)) => {
                datagram_server::serve(&socket, test_request, token, stop, guard)
            }
            Some(Carrier::Tcp(stream)) => stream_server::serve(&stream, test_request, stop, guard),
            None => {
                guard.share(&requested);
                let acceptor = Acceptor {
                    listening: rr_server.listening,
                    test_request,
                    token,
                    client: rr_server.client.to_canonical(),
                };
                acceptor.work(stop, guard)
            }
        }
    };
    let result = run_streams(parts, &work, poll);
    drop(lent);
    result
}
