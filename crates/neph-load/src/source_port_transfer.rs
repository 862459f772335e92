//! Small transfers on chosen source ports, one after the other. Measures the completion time that
//! an application sees on each flow.
//!
//! Each transfer has its own connection, closed by a RST so that its port is free at once. HTTP
//! takes two round trips (connect, then request and reply). The protocol of neph has an additional
//! greeting and takes three.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::ControlFlow;

use neph_model::{Instant, Local, SourcePortOutcome, SourcePortTransfer, Span, Stop};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::place::Placement;
use neph_wire::exchange::Exchange;

use crate::transfer::{
    Driver, FailedOperation, Next, Traffic, TransferError, TransferFailure, bind_source_port,
    connect_from, now,
};

/// The size in the source: "moving 1K of data".
pub const TRANSFER_SIZE: usize = 1024;

/// Parameters of the transfers.
#[derive(Clone, Debug)]
pub struct TransferSpec {
    /// The destination.
    pub address: SocketAddr,
    /// Local source ports, used in this order.
    pub source_ports: Vec<u16>,
    /// Transfers per port. The ports alternate, so that changes over time affect all of them.
    pub repetitions: u32,
    /// Minimum time between the starts of two transfers.
    pub interval: Span,
    /// A transfer that takes longer has failed.
    pub timeout: Span,
    /// The place (a lab's site) to connect from; `None`: the current namespace.
    pub site: Option<Placement>,
}

/// Creates the request of a transfer, which also detects the end of its reply.
pub type ExchangeFactory<'a> = dyn Fn() -> Result<Box<dyn Exchange>, String> + Sync + 'a;

/// Runs the transfers; ends early when `stop` is set, with the completed ones.
///
/// # Errors
/// The site cannot be entered. A failed transfer is an outcome, no error.
pub fn run_transfers(
    spec: &TransferSpec,
    new_exchange: &ExchangeFactory<'_>,
    stop: &Stop,
) -> Result<Vec<SourcePortTransfer>, TransferError> {
    let mut transfers = Vec::with_capacity(spec.source_ports.len() * spec.repetitions as usize);
    run_transfers_with(spec, new_exchange, stop, |transfer| {
        transfers.push(transfer);
        ControlFlow::Continue(())
    })?;
    Ok(transfers)
}

/// Runs the transfers and calls `report` after each of them; ends early when `stop` is set or when
/// `report` breaks.
///
/// # Errors
/// As [`run_transfers`].
pub fn run_transfers_with(
    spec: &TransferSpec,
    new_exchange: &ExchangeFactory<'_>,
    stop: &Stop,
    mut report: impl FnMut(SourcePortTransfer) -> ControlFlow<()> + Send,
) -> Result<(), TransferError> {
    let mut run = || run_all(spec, new_exchange, stop, &mut report);
    match &spec.site {
        None => run(),
        Some(site) => site.run(run)?,
    }
    Ok(())
}

fn run_all(
    spec: &TransferSpec,
    new_exchange: &ExchangeFactory<'_>,
    stop: &Stop,
    report: &mut dyn FnMut(SourcePortTransfer) -> ControlFlow<()>,
) {
    let mut driver = Driver::new();
    let mut due = now();
    for pass in 0..spec.repetitions {
        for port in &spec.source_ports {
            while now() < due && !stop.is_set() {
                let until = due.min(now() + Stop::POLL_INTERVAL);
                clock::sleep_until(RawNanos(until.nanos()), Spin::NONE);
            }
            if stop.is_set() {
                return;
            }
            let begun = now();
            due = begun + spec.interval;
            let transfer = SingleTransfer {
                spec,
                source_port: *port,
                begun,
            };
            let outcome =
                match new_exchange().and_then(|exchange| transfer.run(exchange, &mut driver)) {
                    Ok((connect, total)) => SourcePortOutcome::Done { connect, total },
                    Err(reason) => SourcePortOutcome::Failed(reason),
                };
            let flow = report(SourcePortTransfer {
                source_port: *port,
                pass,
                begun,
                outcome,
            });
            if flow.is_break() {
                return;
            }
        }
    }
}

/// One transfer.
struct SingleTransfer<'a> {
    spec: &'a TransferSpec,
    source_port: u16,
    begun: Instant<Local>,
}

impl SingleTransfer<'_> {
    /// Returns the time to connect and the total time.
    fn run(
        &self,
        exchange: Box<dyn Exchange>,
        driver: &mut Driver,
    ) -> Result<(Span, Span), String> {
        let address = self.spec.address;
        let socket = bind_source_port(address, self.source_port);
        let socket = socket.map_err(|error| format!("take source port: {error}"))?;
        let remaining = self.spec.timeout - (now() - self.begun);
        if remaining <= Span::ZERO {
            return Err(NO_REPLY_IN_TIME.to_owned());
        }
        let mut stream = connect_from(socket, address, remaining)
            .map_err(|error| format!("connect to {address}: {error}"))?;
        let connect = now() - self.begun;
        stream
            .set_nonblocking(true)
            .map_err(|error| format!("wait on the socket: {error}"))?;
        let mut request = RequestInProgress::new(exchange, self.spec.timeout);
        // A started transfer is not stopped: its timeout is short.
        driver
            .drive(&mut stream, &mut request, self.begun, &Stop::new())
            .map_err(|failure| failure_reason(&failure))?;
        let total = request.completed_after.ok_or(NO_REPLY_IN_TIME)?;
        Ok((connect, total))
    }
}

const NO_REPLY_IN_TIME: &str = "no reply in time";

fn failure_reason(failure: &TransferFailure) -> String {
    let error = &failure.source;
    match (error.kind(), failure.during) {
        (ErrorKind::TimedOut, _) => NO_REPLY_IN_TIME.to_owned(),
        (_, FailedOperation::Writing) => format!("send the request: {error}"),
        (_, FailedOperation::Reading) => format!("read the reply: {error}"),
        (_, FailedOperation::Other) => error.to_string(),
    }
}

/// Sends the request and reads until the reply is complete.
#[derive(Debug)]
struct RequestInProgress {
    exchange: Box<dyn Exchange>,
    out: Vec<u8>,
    written: usize,
    inbox: Vec<u8>,
    deadline: Span,
    /// Time until the reply was complete; `None` before.
    completed_after: Option<Span>,
}

impl RequestInProgress {
    fn new(mut exchange: Box<dyn Exchange>, deadline: Span) -> Self {
        let mut out = Vec::new();
        exchange.begin(&mut out);
        Self {
            exchange,
            out,
            written: 0,
            inbox: Vec::new(),
            deadline,
            completed_after: None,
        }
    }
}

impl Traffic for RequestInProgress {
    fn next(&mut self, now: Span) -> io::Result<Next<'_>> {
        if self.completed_after.is_some() {
            return Ok(Next::End);
        }
        if now >= self.deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        let until = self.deadline;
        Ok(match self.out.get(self.written..) {
            Some(bytes @ [_, ..]) => Next::Write { bytes, until },
            _ => Next::Wait(until),
        })
    }

    fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.written >= self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }

    fn received(&mut self, bytes: &[u8], now: Span) -> io::Result<()> {
        self.inbox.extend_from_slice(bytes);
        let is_complete = self.exchange.take(&mut self.inbox, &mut self.out);
        if is_complete.map_err(io::Error::other)? {
            self.completed_after = Some(now);
        }
        Ok(())
    }

    fn closed(&mut self, now: Span) -> io::Result<()> {
        if !self.exchange.end() {
            return Err(io::Error::other(
                "the peer closed before the reply was complete",
            ));
        }
        self.completed_after = Some(now);
        Ok(())
    }

    /// Data after the reply does not belong to it.
    fn needs_data(&self) -> bool {
        self.completed_after.is_none()
    }
}
