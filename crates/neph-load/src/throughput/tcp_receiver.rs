//! Receives on one TCP connection and discards the data.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;

use neph_model::{Permit, Span};
use neph_sys::bulk;
use neph_sys::clock;
use neph_sys::ppoll::{self, Awaited};
use neph_wire::throughput::ReceivedInterval;

use super::course::{CompletedInterval, Course};
use super::run::{Run, TICK};

/// Bytes per read.
const CHUNK: usize = 1 << 20;
/// How long the first byte may take before time counts without it.
const START_TIMEOUT: Span = Span::from_secs(1);

/// Receives until the sender ends, the test's time is over, or it is stopped. It reads no faster than
/// the permit allows: then TCP's receive window slows the sender down.
pub(super) fn receive(stream: &TcpStream, id: u16, run: Run<'_>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    await_first(stream, run)?;
    let mut course = Course::begin();
    let (mut received, mut counted) = (0, 0);
    let end = run.duration();
    let result = loop {
        let now = course.elapsed();
        if now >= end || run.stop.is_set() {
            break Ok(());
        }
        if now >= course.due() {
            put(id, run, course.pass(now), received - counted);
            counted = received;
        }
        if run.read_pause > Span::ZERO {
            clock::nap(run.read_pause.to_duration());
        }
        let Some(room) = run.room_or_rest(Permit::MIN_ROOM, &mut course, now) else {
            continue;
        };
        let room = room.min(buffer.len());
        match bulk::discard(stream.as_fd(), &mut buffer[..room]) {
            Ok(0) => break Ok(()),
            Ok(count) => {
                received += count as u64;
                run.spend(count);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let until = end.min(course.due()).min(now + TICK);
                let max_wait = (until - now).to_duration();
                ppoll::wait(&mut [Awaited::readable(stream.as_fd())], Some(max_wait))?;
                course.waited_since(now);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    put(id, run, course.pass(course.elapsed()), received - counted);
    result
}

/// Waits for the first byte: time counts from its arrival on.
fn await_first(stream: &TcpStream, run: Run<'_>) -> io::Result<()> {
    let start = Course::begin();
    while start.elapsed() < START_TIMEOUT && !run.stop.is_set() {
        let mut poll_fds = [Awaited::readable(stream.as_fd())];
        ppoll::wait(&mut poll_fds, Some(TICK.to_duration()))?;
        if poll_fds[0].has_something() {
            break;
        }
    }
    Ok(())
}

fn put(id: u16, run: Run<'_>, passed: CompletedInterval, bytes: u64) {
    let interval = ReceivedInterval {
        stream: id,
        index: passed.index,
        from_ns: passed.from_ns,
        to_ns: passed.to_ns,
        bytes,
        waited_ns: passed.waited_ns,
        policy_ns: passed.policy_ns,
        cpu_ns: passed.cpu_ns,
        core: passed.core,
        ..ReceivedInterval::default()
    };
    run.board.lock().received.push(interval);
}
