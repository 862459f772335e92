//! What the tracer takes and gives: answers that arrived, and the next action.

use neph_model::{Instant, Local, MplsLabel};

use super::flow::{Answer, ProbeId};

/// Whether an answer identifies the probe of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeMatching {
    /// It does, by a number.
    ByNumber,
    /// It may not: a flow asks one hop at a time.
    OneAtATime,
}

/// A probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeToSend {
    pub(crate) id: ProbeId,
    pub(crate) port: u16,
    pub(crate) ttl: u8,
    /// Within its flow, from 1.
    pub(crate) number: u16,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send this.
    Send(ProbeToSend),
    /// Nothing before this moment, unless an answer comes.
    Wait(Instant<Local>),
    /// Add this many flows with `Tracer::add`, or none, which ends the trace.
    AddFlows(usize),
    /// Everything possible is known.
    Done,
}

/// An answer and its flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedAnswer {
    pub(crate) port: u16,
    /// The probe's number, if known.
    pub(crate) number: Option<u16>,
    pub(crate) answer: Answer,
    pub(crate) labels: Vec<MplsLabel>,
}
