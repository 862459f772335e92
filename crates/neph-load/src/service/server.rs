//! The thread of a service of known speed: HTTP/1.1 on one port.
//!
//! A response is sent when its service time is over; the service uses no CPU meanwhile. The truth of a load
//! test: [`ServiceQueue`] is the model, and what a client measures in addition is the network and the two
//! kernels.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{ServiceModel, Span, Stop};
use neph_sys::clock;
use neph_sys::epoll::{Epoll, Interest, ReadyEvent, ReadyList};
use neph_sys::{files, sched};
use neph_wire::http::{Connection, ResponseLine};

use super::connection::{ClientConnection, ClientProgress, ServedRequest};
use super::queue::ServiceQueue;
use crate::listen::listen_on;

const LISTENER: u64 = u64::MAX;
const BACKLOG: i32 = 4_096;
const BUFFER: usize = 64 << 10;
/// The last part of a service time, in which the thread does not sleep.
const SPIN: Span = Span::from_micros(25);
/// Connections beyond this number are closed at once; fewer if this process may open fewer files.
const MAX_CONNECTIONS: usize = 50_000;

/// Why a service cannot be offered.
#[derive(Debug, thiserror::Error)]
#[error("serve at {address}: {source}")]
pub struct ServiceError {
    /// The address.
    address: SocketAddr,
    /// The cause.
    source: io::Error,
}

/// A service with an open port.
#[derive(Debug)]
pub struct ServiceServer {
    listener: TcpListener,
    address: SocketAddr,
    model: ServiceModel,
    seed: u64,
}

impl ServiceServer {
    /// Opens the port. `seed` determines the service times.
    ///
    /// # Errors
    /// Another program uses it, or permissions are missing.
    pub fn bind(
        address: SocketAddr,
        model: &ServiceModel,
        seed: u64,
    ) -> Result<Self, ServiceError> {
        let fault = |source| ServiceError { address, source };
        let listener = listen_on(address, BACKLOG).map_err(fault)?;
        listener.set_nonblocking(true).map_err(fault)?;
        Ok(Self {
            address: listener.local_addr().map_err(fault)?,
            listener,
            model: model.clone(),
            seed,
        })
    }

    /// The listening address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The kernel refuses to watch descriptors.
    pub fn run(&self, stop: &Stop) -> Result<(), ServiceError> {
        let address = self.address;
        let fault = |source| ServiceError { address, source };
        // Less precise wake-ups make responses a few microseconds later.
        let _ = sched::set_timer_slack(Duration::from_nanos(1));
        Serving::new(self).map_err(fault)?.run(stop).map_err(fault)
    }
}

/// A request that is served: its connection, and whether that is kept.
#[derive(Clone, Copy, Debug)]
struct Served {
    client: u64,
    request: ServedRequest,
}

struct Serving<'a> {
    listener: &'a TcpListener,
    epoll: Epoll,
    clients: HashMap<u64, ClientConnection>,
    next_client: u64,
    queue: ServiceQueue<Served>,
    buffer: Box<[u8]>,
    responses: Responses,
    max_clients: usize,
}

impl<'a> Serving<'a> {
    fn new(server: &'a ServiceServer) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let files = files::raise_limit()?;
        epoll.add(server.listener.as_fd(), LISTENER, Interest::Read)?;
        Ok(Self {
            listener: &server.listener,
            epoll,
            clients: HashMap::new(),
            next_client: 0,
            queue: ServiceQueue::new(&server.model, server.seed),
            buffer: vec![0; BUFFER].into(),
            responses: Responses::new(),
            // The rest is for the other services of this process.
            max_clients: usize::try_from(files / 2)
                .map_or(MAX_CONNECTIONS, |half| half.min(MAX_CONNECTIONS)),
        })
    }

    fn run(mut self, stop: &Stop) -> io::Result<()> {
        let mut found = ReadyList::default();
        while !stop.is_set() {
            self.end_services(clock::raw().0);
            self.epoll.wait(&mut found, self.wait_time())?;
            for event in found.iter() {
                // All services that ended before this event are over first, as the queue needs it.
                let now = clock::raw().0;
                self.end_services(now);
                if event.token == LISTENER {
                    self.accept();
                } else {
                    self.handle(event, now);
                }
            }
        }
        Ok(())
    }

    fn wait_time(&self) -> Duration {
        let now = clock::raw().0;
        let end = self.queue.next_end().unwrap_or(i64::MAX);
        let wait = Span::from_nanos(end.saturating_sub(now).saturating_sub(SPIN.nanos()));
        wait.min(Stop::POLL_INTERVAL).to_duration()
    }

    fn end_services(&mut self, now: i64) {
        while let Some(served) = self.queue.take_ended(now) {
            let next = self.respond(served, true);
            self.progress(served.client, next, now);
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() >= self.max_clients {
                continue;
            }
            let Ok(client) = ClientConnection::new(stream) else {
                continue;
            };
            let token = self.next_client;
            self.next_client += 1;
            if self
                .epoll
                .add(client.stream().as_fd(), token, Interest::Read)
                .is_ok()
            {
                self.clients.insert(token, client);
            }
        }
    }

    fn handle(&mut self, event: ReadyEvent, now: i64) {
        let Some(client) = self.clients.get_mut(&event.token) else {
            return;
        };
        if event.is_writable && client.has_output() {
            let mut progress = client.send();
            if !client.has_output() {
                let fd = client.stream().as_fd();
                let _ = self.epoll.change(fd, event.token, Interest::Read);
                if progress == ClientProgress::Waits {
                    progress = client.next_request();
                }
            }
            self.progress(event.token, progress, now);
        }
        let Some(client) = self.clients.get_mut(&event.token) else {
            return;
        };
        if event.is_readable || event.has_notice {
            let progress = client.receive(&mut self.buffer);
            self.progress(event.token, progress, now);
        }
    }

    /// Carries out what came of a step of a client, and the steps that follow at once.
    fn progress(&mut self, client: u64, mut progress: ClientProgress, now: i64) {
        loop {
            let request = match progress {
                ClientProgress::Waits => return,
                ClientProgress::Ends => {
                    self.clients.remove(&client);
                    return;
                }
                ClientProgress::Requests(request) => request,
            };
            let served = Served { client, request };
            if self.queue.arrive(served, now).is_ok() {
                return;
            }
            progress = self.respond(served, false);
        }
    }

    /// Sends a response; returns what follows.
    fn respond(&mut self, served: Served, is_success: bool) -> ClientProgress {
        let keep_alive = served.request.keep_alive;
        let response = self.responses.get(is_success, keep_alive);
        // It may have been closed meanwhile.
        let Some(client) = self.clients.get_mut(&served.client) else {
            return ClientProgress::Waits;
        };
        let progress = client.respond(response, keep_alive);
        if client.has_output() {
            let fd = client.stream().as_fd();
            let _ = self.epoll.change(fd, served.client, Interest::ReadWrite);
        } else if progress == ClientProgress::Waits {
            return client.next_request();
        }
        progress
    }
}

/// The four responses.
struct Responses([Vec<u8>; 4]);

impl Responses {
    fn new() -> Self {
        let build = |status, body: &str, connection| {
            let line = ResponseLine {
                status,
                content_length: Some(body.len() as u64),
                connection,
            };
            let mut bytes = Vec::new();
            line.encode(&[], &mut bytes)
                .expect("no header has a wrong character");
            bytes.extend_from_slice(body.as_bytes());
            bytes
        };
        let (full, served) = ("the queue is full\n", "served\n");
        Self([
            build(503, full, Connection::Close),
            build(503, full, Connection::KeepAlive),
            build(200, served, Connection::Close),
            build(200, served, Connection::KeepAlive),
        ])
    }

    fn get(&self, is_success: bool, keep_alive: bool) -> &[u8] {
        &self.0[usize::from(is_success) * 2 + usize::from(keep_alive)]
    }
}
