//! Background traffic: threads of the lab that send at one site and receive at another.
//!
//! Owns the transfers and their schedule, which restarts with the lab's cue. Data in a sender's buffer at the
//! end is discarded, not sent.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_model::Span;
use neph_sys::place::Placement;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::{clock, tcp};

use super::LabError;
use crate::cue::Cue;
use crate::gate::{Moment, Recurrence};
use crate::topology::Traffic;

/// Longest sleep of a thread: it notices a new cue after this.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes per write.
const CHUNK: usize = 64 * 1024;

/// A transfer of a lab that is up.
#[derive(Debug)]
pub(super) struct RunningTraffic {
    handle: TrafficHandle,
    schedule: Arc<TransferSchedule>,
    /// Closing it stops both threads.
    stop: Option<PipeWriter>,
    threads: Vec<JoinHandle<()>>,
}

/// The state of a transfer for other threads.
#[derive(Clone, Debug)]
pub(super) struct TrafficHandle {
    pub(super) name: String,
    received: Arc<AtomicU64>,
    schedule: Arc<TransferSchedule>,
}

impl TrafficHandle {
    /// Bytes that have arrived since the lab came up.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether it is on now.
    pub(super) fn is_on(&self) -> bool {
        matches!(self.schedule.phase(), Phase::On(_))
    }
}

/// The schedule of a transfer.
#[derive(Debug)]
struct TransferSchedule {
    cue: Arc<Cue>,
    recurrence: Recurrence,
    stopped: AtomicBool,
}

/// The state of a transfer in its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It starts after this time.
    Before(Span),
    /// It is on, since this moment.
    On(Moment),
    /// It is over, or there was no cue.
    Off,
}

fn phase_at(now: Moment, cue: Option<Moment>, recurrence: Recurrence) -> Phase {
    let Some(cue) = cue else { return Phase::Off };
    let since = now - cue;
    let on_since = recurrence
        .last_begin(since)
        .filter(|_| recurrence.is_active_at(since));
    match (on_since, recurrence.next_after(since)) {
        (Some(on_since), _) => Phase::On(cue + on_since),
        (None, Some(next)) => Phase::Before(next - since),
        (None, None) => Phase::Off,
    }
}

impl TransferSchedule {
    fn phase(&self) -> Phase {
        if self.stopped.load(Ordering::Relaxed) {
            return Phase::Off;
        }
        let now = Moment(clock::raw().0);
        phase_at(now, self.cue.last(), self.recurrence)
    }
}

impl RunningTraffic {
    /// Runs `traffic` between two places, on schedule after `cue`.
    pub(super) fn start(
        traffic: &Traffic,
        [from, to]: [Placement; 2],
        address: SocketAddr,
        cue: Arc<Cue>,
    ) -> Result<Self, LabError> {
        let failed = |source| LabError::Traffic {
            traffic: traffic.name.clone(),
            source,
        };
        let schedule = Arc::new(TransferSchedule {
            cue,
            recurrence: Recurrence {
                at: traffic.at,
                until: Some(traffic.until),
                every: traffic.every,
            },
            stopped: AtomicBool::new(false),
        });
        let received = Arc::new(AtomicU64::new(0));
        let listener = to.run(|| TcpListener::bind(address))?.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let target = listener.local_addr().map_err(failed)?;
        from.run(|| check_congestion_control(traffic))?
            .map_err(failed)?;
        let (sender_stop, stop) = io::pipe().map_err(failed)?;
        let mut running = Self {
            handle: TrafficHandle {
                name: traffic.name.clone(),
                received: Arc::clone(&received),
                schedule: Arc::clone(&schedule),
            },
            schedule: Arc::clone(&schedule),
            stop: Some(stop),
            threads: Vec::new(),
        };
        let (receiver_schedule, receiver_stop) = (
            Arc::clone(&schedule),
            sender_stop.try_clone().map_err(failed)?,
        );
        running.start_thread(to, move || {
            receive(&listener, &receiver_schedule, &received, &receiver_stop);
        })?;
        let traffic = traffic.clone();
        running.start_thread(from, move || {
            send(&traffic, target, &schedule, &sender_stop);
        })?;
        Ok(running)
    }

    fn start_thread(
        &mut self,
        placement: Placement,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), LabError> {
        let (report, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("traffic-{}", self.handle.name))
            .spawn(move || {
                let entered = placement.enter().map_err(LabError::from);
                let has_entered = entered.is_ok();
                let _ = report.send(entered);
                if has_entered {
                    work();
                }
            });
        let failed = |source| LabError::Traffic {
            traffic: self.handle.name.clone(),
            source,
        };
        self.threads.push(thread.map_err(failed)?);
        receiver
            .recv()
            .map_err(|_| failed(io::Error::other("its thread ended")))?
    }

    pub(super) fn handle(&self) -> TrafficHandle {
        self.handle.clone()
    }
}

impl Drop for RunningTraffic {
    fn drop(&mut self) {
        self.schedule.stopped.store(true, Ordering::Relaxed);
        drop(self.stop.take());
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Whether this kernel has the requested congestion control.
fn check_congestion_control(traffic: &Traffic) -> io::Result<()> {
    let Some(congestion) = &traffic.congestion else {
        return Ok(());
    };
    let socket = TcpListener::bind(("0.0.0.0", 0))?;
    tcp::set_congestion_control(socket.as_fd(), congestion)
        .map_err(|error| io::Error::new(error.kind(), format!("use {congestion}: {error}")))
}

/// Waits at most this long; false when the lab is taken down.
fn sleep_unless_stopped(stop: &PipeReader, timeout: Duration) -> bool {
    let mut awaited = [Awaited::readable(stop.as_fd())];
    ppoll::wait(&mut awaited, Some(timeout)).is_ok() && !awaited[0].is_gone()
}

fn send(traffic: &Traffic, target: SocketAddr, schedule: &TransferSchedule, stop: &PipeReader) {
    loop {
        let timeout = match schedule.phase() {
            Phase::On(phase_start) => {
                thread::scope(|scope| {
                    for _ in 0..traffic.streams {
                        scope.spawn(|| {
                            send_stream(traffic, target, || {
                                schedule.phase() == Phase::On(phase_start)
                            });
                        });
                    }
                });
                POLL_INTERVAL
            }
            Phase::Before(left) => POLL_INTERVAL.min(left.to_duration()),
            Phase::Off => POLL_INTERVAL,
        };
        if !sleep_unless_stopped(stop, timeout) {
            return;
        }
    }
}

/// Sends over one connection at a time while the transfer is on; replaces a broken one.
fn send_stream(traffic: &Traffic, target: SocketAddr, is_on: impl Fn() -> bool) {
    while is_on() {
        // Retries after network errors: a link may lose everything for some time.
        if send_over_connection(traffic, target, &is_on).is_err() {
            clock::nap(POLL_INTERVAL);
        }
    }
}

fn send_over_connection(
    traffic: &Traffic,
    target: SocketAddr,
    is_on: impl Fn() -> bool,
) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&target, Duration::from_secs(1))?;
    if let Some(congestion) = &traffic.congestion {
        tcp::set_congestion_control(stream.as_fd(), congestion)?;
    }
    stream.set_write_timeout(Some(POLL_INTERVAL))?;
    let chunk = vec![0; CHUNK];
    while is_on() {
        match stream.write(&chunk) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn receive(
    listener: &TcpListener,
    schedule: &Arc<TransferSchedule>,
    received: &Arc<AtomicU64>,
    stop: &PipeReader,
) {
    let mut readers: Vec<JoinHandle<()>> = Vec::new();
    loop {
        let mut awaited = [listener.as_fd(), stop.as_fd()].map(Awaited::readable);
        if ppoll::wait(&mut awaited, None).is_err() || awaited[1].is_gone() {
            break;
        }
        let Ok((stream, _)) = listener.accept() else {
            // The client has disconnected, or this process has no free descriptor: the listener would stay
            // readable.
            sleep_unless_stopped(stop, POLL_INTERVAL);
            continue;
        };
        let (schedule, received) = (Arc::clone(schedule), Arc::clone(received));
        readers.retain(|reader| !reader.is_finished());
        readers.push(thread::spawn(move || {
            receive_stream(stream, &schedule, &received);
        }));
    }
    for reader in readers {
        // A reader does not panic; the lab is taken down in any case.
        let _ = reader.join();
    }
}

/// Reads until the period is over. A reset then answers later data, so that the sender discards its buffer:
/// megabytes that would take seconds.
fn receive_stream(mut stream: TcpStream, schedule: &TransferSchedule, received: &AtomicU64) {
    let Phase::On(phase_start) = schedule.phase() else {
        return;
    };
    let mut chunk = vec![0; CHUNK];
    if stream.set_nonblocking(false).is_err()
        || stream.set_read_timeout(Some(POLL_INTERVAL)).is_err()
    {
        return;
    }
    while schedule.phase() == Phase::On(phase_start) {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(bytes) => {
                let bytes = u64::try_from(bytes).expect("at most a chunk");
                received.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_on_in_its_time_after_each_cue() {
        let recurrence = Recurrence {
            at: Span::from_secs(15),
            until: Some(Span::from_secs(40)),
            every: None,
        };
        let second = |n: i64| Moment(n * 1_000_000_000);
        let cue = Some(second(100));
        assert_eq!(phase_at(second(5), None, recurrence), Phase::Off);
        let before_start = phase_at(second(114), cue, recurrence);
        assert_eq!(before_start, Phase::Before(Span::from_secs(1)));
        assert_eq!(
            phase_at(second(115), cue, recurrence),
            Phase::On(second(115))
        );
        assert_eq!(phase_at(second(140), cue, recurrence), Phase::Off);
        let after_second_cue = phase_at(second(140), Some(second(120)), recurrence);
        assert_eq!(
            after_second_cue,
            Phase::On(second(135)),
            "another cue, another transfer"
        );
        let every = Some(Span::from_secs(60));
        let recurrence = Recurrence {
            every,
            ..recurrence
        };
        let remaining = Phase::Before(Span::from_secs(25));
        assert_eq!(phase_at(second(150), cue, recurrence), remaining);
        assert_eq!(
            phase_at(second(180), cue, recurrence),
            Phase::On(second(175))
        );
    }
}
