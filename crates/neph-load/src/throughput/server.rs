//! Serves throughput tests, one at a time, on one port for TCP and UDP.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use neph_model::Stop;
use neph_sys::ppoll::{self, Awaited};
use neph_wire::throughput::{Content, Header, Preamble, Protocol};
use socket2::{Domain, Protocol as Ip, SockAddr, Socket, Type};

use super::control::Control;
use super::engine::TestEnd;
use super::error::ThroughputError;
use super::listening::{AcceptedConnection, Listening};
use super::rr::answer_connection;
use super::run::TICK;
use super::served::{ServedEvent, ServerSpec};
use super::session::Session;
use super::slot::Slot;
use crate::listen::listen_on;

/// Maximum number of concurrent threads: connections without their first bytes, and tests.
const MAX_THREADS: usize = 160;
/// Timeout of the first bytes of a connection.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of datagrams per poll.
const MAX_HELLOS: usize = 256;

/// A server with an open port.
#[derive(Debug)]
pub struct Server {
    listening: Listening,
    hellos: UdpSocket,
    address: SocketAddr,
    spec: ServerSpec,
    slot: Slot,
}

impl Server {
    /// Opens the port for TCP and UDP.
    ///
    /// # Errors
    /// Another program uses it, or permissions are missing.
    pub fn bind(spec: &ServerSpec) -> Result<Self, ThroughputError> {
        let address = spec.listen;
        let listen = |source| ThroughputError::Listen { address, source };
        let listener = listen_on(address, 256).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let hellos = datagrams_on(address).map_err(listen)?;
        hellos.set_nonblocking(true).map_err(listen)?;
        Ok(Self {
            listening: Listening::new(listener).map_err(listen)?,
            hellos,
            address,
            spec: spec.clone(),
            slot: Slot::default(),
        })
    }

    /// The listening address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The port cannot be polled.
    pub fn run(
        &self,
        stop: &Stop,
        event: &(dyn Fn(ServedEvent) + Sync),
    ) -> Result<(), ThroughputError> {
        let count = AtomicUsize::new(0);
        let threads = &count;
        let serving = Serving {
            server: self,
            stop,
            event,
        };
        let served = thread::scope(|scope| {
            let greet = |newcomer: AcceptedConnection| {
                if threads.fetch_add(1, Ordering::AcqRel) >= MAX_THREADS {
                    threads.fetch_sub(1, Ordering::AcqRel);
                    return;
                }
                let work = move || {
                    serving.greet(newcomer);
                    threads.fetch_sub(1, Ordering::AcqRel);
                };
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    threads.fetch_sub(1, Ordering::AcqRel);
                }
            };
            while !stop.is_set() {
                let ready_sockets = self.await_something()?;
                if ready_sockets.hellos {
                    self.receive_hellos(event);
                }
                if ready_sockets.connections
                    && let Ok((stream, peer)) = self.listening.listener().accept()
                {
                    greet(AcceptedConnection {
                        stream,
                        peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
                        first: Vec::new(),
                    });
                }
                self.listening.take_handed().into_iter().for_each(&greet);
            }
            Ok(())
        });
        let address = self.address;
        served.map_err(|source| ThroughputError::Listen { address, source })
    }

    /// Waits at most a tick for data. While a test accepts connections, this does not.
    fn await_something(&self) -> io::Result<ReadySockets> {
        let mut poll_fds = [
            Awaited::readable(self.hellos.as_fd()),
            Awaited::readable(self.listening.listener().as_fd()),
        ];
        let count = if self.listening.is_lent() { 1 } else { 2 };
        ppoll::wait(&mut poll_fds[..count], Some(TICK.to_duration()))?;
        Ok(ReadySockets {
            hellos: poll_fds[0].has_something(),
            connections: poll_fds[1].is_readable(),
        })
    }

    /// Reads hellos, which show the source addresses of UDP streams.
    fn receive_hellos(&self, event: &(dyn Fn(ServedEvent) + Sync)) {
        let mut datagram = [0; Header::LEN];
        for _ in 0..MAX_HELLOS {
            // An error about an earlier datagram, or an empty socket.
            let Ok((length, peer)) = self.hellos.recv_from(&mut datagram) else {
                return;
            };
            let Ok(header) = Header::decode(&datagram[..length]) else {
                continue;
            };
            if header.content != Content::Hello {
                continue;
            }
            if let Err(error) = self.attach_datagrams(header, peer) {
                let reason = format!("open a UDP socket to it: {error}");
                event(ServedEvent::Refused { peer, reason });
            }
        }
    }

    /// Opens a connected socket for an expected UDP stream: the kernel delivers the packets of that
    /// source to it.
    fn attach_datagrams(&self, hello: Header, peer: SocketAddr) -> io::Result<()> {
        let mut slot = self.slot.lock();
        let Some(active) = slot.as_mut() else {
            return Ok(());
        };
        let (token, stream) = (hello.token, hello.stream);
        // A peer with the token could forge the source address of a datagram: it must be that of
        // the control connection.
        if !active.awaits(token, stream, Protocol::Udp) || !active.is_from(peer.ip()) {
            return Ok(());
        }
        // An IPv4 socket costs less than an IPv6 socket with mapped addresses.
        let socket = datagrams_on(unmapped(active.local))?;
        let peer = unmapped(peer);
        let carrier = active
            .job
            .datagrams(socket, peer, TestEnd::Server, stream)?;
        active.carriers.insert(stream, carrier);
        Ok(())
    }

    /// Attaches a connection as an expected TCP stream.
    fn attach_connection(&self, preamble: Preamble, newcomer: AcceptedConnection) {
        let AcceptedConnection {
            stream,
            peer,
            first,
        } = newcomer;
        let mut slot = self.slot.lock();
        let Some(active) = slot.as_mut() else { return };
        let number = preamble.stream;
        if let Some(test_request) = active.of_connections(preamble.token)
            && active.is_from(peer.ip())
        {
            // The server accepted it just before it lent its port.
            let test_request = test_request.clone();
            drop(slot);
            answer_connection(&stream, &test_request, first.len());
            return;
        }
        if !active.awaits(preamble.token, number, Protocol::Tcp) || !active.is_from(peer.ip()) {
            return;
        }
        // A connection that cannot be prepared is closed, and the client detects that.
        if let Ok(carrier) = active.job.connection(stream, TestEnd::Server, number) {
            active.carriers.insert(number, carrier);
        }
    }
}

/// Sockets with data.
#[derive(Clone, Copy)]
struct ReadySockets {
    hellos: bool,
    connections: bool,
}

/// State of a running server.
#[derive(Clone, Copy)]
struct Serving<'a> {
    server: &'a Server,
    stop: &'a Stop,
    event: &'a (dyn Fn(ServedEvent) + Sync),
}

impl Serving<'_> {
    /// Reads the purpose of a connection and serves it.
    fn greet(&self, newcomer: AcceptedConnection) {
        let AcceptedConnection {
            mut stream,
            peer,
            mut first,
        } = newcomer;
        let read = first.len();
        first.resize(read.max(Preamble::LEN), 0);
        let filled = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(PREAMBLE_TIMEOUT)))
            .and_then(|()| stream.read_exact(&mut first[read..]));
        if filled.is_err() {
            return;
        }
        if let Some(preamble) = first.first_chunk().and_then(Preamble::decode) {
            let newcomer = AcceptedConnection {
                stream,
                peer,
                first,
            };
            self.server.attach_connection(preamble, newcomer);
            return;
        }
        if first[0] != b'{' {
            return;
        }
        let served = Control::new(stream, peer, &first).and_then(|control| {
            let session = Session {
                control,
                spec: &self.server.spec,
                slot: &self.server.slot,
                listening: &self.server.listening,
                stop: self.stop,
                event: self.event,
            };
            session.serve()
        });
        // The end of a test was already reported with its fault; invalid data of other peers is no
        // event.
        drop(served);
    }
}

/// An IPv4-mapped address (`::ffff:192.0.2.1`) as an IPv4 one.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// A UDP socket that shares its port with others of the same user.
fn datagrams_on(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Ip::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket.into())
}
