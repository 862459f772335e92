//! The client of a throughput test.

use std::net::SocketAddr;

use neph_model::{Permit, Span, Stop, Wall};
use neph_sys::clock;
use neph_wire::throughput::TestRequest;

use super::dialogue::Dialogue;
use super::engine::{Decision, Engine, TestEnd, TestState};
use super::error::ThroughputError;
use super::job::Job;
use super::measured::Measured;
use super::opening::{Started, start};
use super::second::{Second, Seconds};

/// A test and its server.
#[derive(Clone, Copy, Debug)]
pub struct ThroughputRequest<'a> {
    /// Address of the server.
    pub server: SocketAddr,
    /// Parameters of the test.
    pub test_request: &'a TestRequest,
    /// Limit of data that this end sends and receives.
    pub permit: &'a Permit,
}

/// Measures until the duration is over or `stop` is set. `on_second` gets each second of each
/// direction once both ends have counted it.
///
/// # Errors
/// The server cannot be reached, refuses, or breaks off before anything was counted. After a later
/// fault the result has the counts so far and the fault ([`Measured::fault`]).
pub fn measure(
    request: ThroughputRequest<'_>,
    stop: &Stop,
    on_second: &mut dyn FnMut(&Second),
) -> Result<Measured, ThroughputError> {
    let ThroughputRequest {
        server,
        test_request,
        permit,
    } = request;
    test_request.check()?;
    let job = Job::Throughput(test_request.clone());
    let Started {
        control,
        token,
        carriers,
    } = start(server, &job, stop)?;
    let mut client = Client {
        dialogue: Dialogue::begin(control, stop),
        measured: Measured::begin(
            server,
            test_request.clone(),
            Wall::from_unix_nanos(clock::wall().0),
        ),
        seconds: Seconds::default(),
        on_second,
    };
    let engine = Engine {
        end: TestEnd::Client,
        test_request,
        token,
        read_pause: Span::ZERO,
        permit,
    };
    let fault = engine.run(carriers, &mut |state| Ok(client.poll(state)))?;
    Ok(client.finish(fault))
}

struct Client<'a> {
    dialogue: Dialogue<'a>,
    measured: Measured,
    seconds: Seconds,
    on_second: &'a mut dyn FnMut(&Second),
}

impl Client<'_> {
    fn poll(&mut self, state: TestState<'_>) -> Decision {
        let decision = self.dialogue.poll(state);
        let counted = std::mem::take(&mut self.dialogue.client);
        self.measured.client.append(counted);
        let counted = std::mem::take(&mut self.dialogue.server);
        self.measured.server.append(counted);
        for second in self.seconds.complete(&self.measured) {
            (self.on_second)(&second);
        }
        decision
    }

    fn finish(mut self, fault: Option<String>) -> Measured {
        for second in self.seconds.remaining(&self.measured) {
            (self.on_second)(&second);
        }
        let mut measured = self.measured;
        measured.is_stopped = self.dialogue.is_stopped;
        // A fault of the client also breaks the server's stream: the client's fault is the root
        // cause.
        measured.fault = fault.or(self.dialogue.fault);
        measured
    }
}
