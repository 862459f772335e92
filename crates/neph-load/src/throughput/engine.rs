//! Runs the streams of one end, each on its thread, and a CPU meter.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use neph_model::{Permit, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::{TestRequest, Token};

use super::board::Board;
use super::carrier::Carrier;
use super::cores::CpuMeter;
use super::course::INTERVAL;
use super::error::ThroughputError;
use super::run::{Run, TICK};
use super::{tcp_receiver, tcp_sender, udp_receiver, udp_sender};
use crate::transfer::now;

/// An end of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestEnd {
    Client,
    Server,
}

impl TestEnd {
    /// Whether this end sends on the stream.
    pub(super) fn sends(self, test_request: &TestRequest, stream: u16) -> bool {
        test_request.is_up(stream) == (self == Self::Client)
    }
}

/// Argument of the `poll` function.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestState<'a> {
    /// Counts that were not taken yet.
    pub(super) board: &'a Board,
    /// Set it to end all streams.
    pub(super) halt: &'a Stop,
    /// All threads have ended.
    pub(super) is_over: bool,
}

/// Parameters of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Engine<'a> {
    pub(super) end: TestEnd,
    pub(super) test_request: &'a TestRequest,
    pub(super) token: Token,
    pub(super) read_pause: Span,
    pub(super) permit: &'a Permit,
}

/// Result of a `poll`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    GoOn,
    /// Stop calling `poll`; valid only when all threads have ended.
    Leave,
}

impl Engine<'_> {
    /// Moves data until all streams have ended. Calls `poll` repeatedly; each call must wait a
    /// moment. Returns the first fault of a stream.
    pub(super) fn run(
        &self,
        carriers: BTreeMap<u16, Carrier>,
        poll: &mut dyn FnMut(TestState<'_>) -> Result<Decision, ThroughputError>,
    ) -> Result<Option<String>, ThroughputError> {
        let work = |carrier, stream, board: &Board, stop: &Stop| {
            let run = Run {
                test_request: self.test_request,
                token: self.token,
                board,
                stop,
                permit: self.permit,
                read_pause: self.read_pause,
            };
            self.carry(carrier, stream, run)
        };
        run_streams(carriers, &work, poll)
    }

    fn carry(&self, carrier: Carrier, stream: u16, run: Run<'_>) -> io::Result<()> {
        match (carrier, self.end.sends(self.test_request, stream)) {
            (Carrier::Tcp(socket), true) => tcp_sender::send(socket, stream, run),
            (Carrier::Tcp(socket), false) => tcp_receiver::receive(&socket, stream, run),
            (Carrier::Udp(socket), true) => udp_sender::send(&socket, stream, run),
            (Carrier::Udp(socket), false) => udp_receiver::receive(&socket, stream, run),
        }
    }
}

/// The work of a stream until it ends or the flag is set.
pub(super) type Work<'a, T> = dyn Fn(T, u16, &Board, &Stop) -> io::Result<()> + Sync + 'a;

/// Runs all streams, each on its thread, and the CPU meter, until all have ended. Calls `poll`
/// repeatedly; each call must wait a moment. Returns the first fault of a stream.
pub(super) fn run_streams<T: Send>(
    parts: BTreeMap<u16, T>,
    work: &Work<'_, T>,
    poll: &mut dyn FnMut(TestState<'_>) -> Result<Decision, ThroughputError>,
) -> Result<Option<String>, ThroughputError> {
    let (board, halt) = (Board::default(), Stop::new());
    let running_threads = AtomicUsize::new(parts.len() + 1);
    let streams = AtomicUsize::new(parts.len());
    let faults = Mutex::new(None);
    let (board, halt, running_threads) = (&board, &halt, &running_threads);
    let (streams, faults_there) = (&streams, &faults);
    let result = thread::scope(|scope| {
        let spawned = parts.into_iter().try_for_each(|(stream, part)| {
            let work = move || {
                if let Err(error) = work(part, stream, board, halt) {
                    let mut faults = faults_there.lock().unwrap_or_else(PoisonError::into_inner);
                    faults.get_or_insert_with(|| format!("stream {stream}: {error}"));
                    halt.set();
                }
                streams.fetch_sub(1, Ordering::Release);
                running_threads.fetch_sub(1, Ordering::Release);
            };
            spawn(scope, work)
        });
        let spawned = spawned.and_then(|()| {
            spawn(scope, || {
                meter(board, streams);
                running_threads.fetch_sub(1, Ordering::Release);
            })
        });
        let watched = spawned.map_err(ThroughputError::Thread).and_then(|()| {
            loop {
                let is_over = running_threads.load(Ordering::Acquire) == 0;
                let state = TestState {
                    board,
                    halt,
                    is_over,
                };
                if poll(state)? == Decision::Leave {
                    return Ok(());
                }
            }
        });
        if watched.is_err() {
            halt.set();
        }
        watched
    });
    result?;
    Ok(faults.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn spawn<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    thread::Builder::new().spawn_scoped(scope, work).map(drop)
}

/// Measures the CPU each second until no stream is left.
fn meter(board: &Board, streams: &AtomicUsize) {
    let start = now();
    let mut meter = CpuMeter::begin();
    let mut due = INTERVAL;
    loop {
        let is_over = streams.load(Ordering::Acquire) == 0;
        let elapsed = now() - start;
        if elapsed >= due || is_over {
            let interval = meter.pass(elapsed);
            board.lock().cpu.push(interval);
            due += INTERVAL;
        }
        if is_over {
            return;
        }
        clock::nap(
            TICK.min(due - elapsed)
                .max(Span::from_millis(1))
                .to_duration(),
        );
    }
}
