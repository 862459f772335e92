//! Accepts connections: each that finds a place gets a thread.
//!
//! [`super::connection_slots`] assigns places; [`super::serve`] is the work of a thread.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use neph_model::Span;
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::memory;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::pulse::Pulse;

use super::ReflectorState;
use super::connection_slots::Reception;
use super::counters::Counted;
use super::serve::{Admitted, TICK, serve};
use crate::stamp_clock::now;

/// After a failed accept.
const RETRY_PAUSE: Span = Span::from_millis(50);
/// Memory that a thread maps at its start, without its stack.
const MEMORY_HEADROOM_BYTES: usize = 512 << 10;
/// A connection's thread needs less than this of its stack.
const STACK_BYTES: usize = 512 << 10;

/// Accepts connections until the reflector stops.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<ReflectorState>, pulse: &Pulse) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.stop.is_set() {
        pulse.beat();
        let mut poll_fds = [Awaited::readable(listener.as_fd())];
        if ppoll::wait(&mut poll_fds, Some(TICK)).is_err() || !poll_fds[0].is_readable() {
            continue;
        }
        threads.retain(|thread| !thread.is_finished());
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                // Probably no descriptors are left: connections that end free theirs.
                shared.counters.count(Counted::FailedAccepts);
                pause();
                continue;
            }
        };
        // Each connection is counted once, as one or the other.
        let thread = begin(shared, peer, stream);
        shared.counters.count(match thread {
            Some(_) => Counted::Connections,
            None => Counted::RefusedConnections,
        });
        threads.extend(thread);
    }
    for thread in threads {
        // A panic was printed by the thread; it affects only its peer.
        let _ = thread.join();
    }
}

/// A thread for this connection, if there are a place and memory for it.
fn begin(
    shared: &Arc<ReflectorState>,
    peer: SocketAddr,
    stream: TcpStream,
) -> Option<JoinHandle<()>> {
    if !memory::is_there(STACK_BYTES + MEMORY_HEADROOM_BYTES) {
        return None;
    }
    let stream = Arc::new(stream);
    let admitted = admit(shared, peer, &stream)?;
    let sharing = Arc::clone(shared);
    let thread = thread::Builder::new()
        .name("neph-answer".to_owned())
        .stack_size(STACK_BYTES);
    thread
        .spawn(move || serve(&stream, &sharing, &admitted))
        .ok()
}

fn pause() {
    let until = RawNanos((now() + RETRY_PAUSE).nanos());
    clock::sleep_until(until, Spin::NONE);
}

fn admit(shared: &ReflectorState, peer: SocketAddr, stream: &Arc<TcpStream>) -> Option<Admitted> {
    let at = now();
    let budget = shared.budgets.of(peer.ip(), at)?;
    let slot_guard = match shared.connection_slots.receive(peer.ip(), stream, at) {
        Reception::Granted(slot_guard) => slot_guard,
        Reception::Replaced(slot_guard) => {
            shared.counters.count(Counted::Replaced);
            slot_guard
        }
        Reception::Refused => {
            budget.refuse_connection();
            return None;
        }
    };
    let peer = peer.ip();
    Some(Admitted {
        peer,
        guard: slot_guard,
        budget,
    })
}
