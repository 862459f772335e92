//! Serves throughput tests, one after the other, on one port for TCP and UDP.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use neph_model::Stop;
use neph_sys::ppoll::{self, Awaited};
use neph_wire::throughput::{Content, Header, Preamble, Protocol};
use socket2::{Domain, Protocol as Ip, SockAddr, Socket, Type};

use super::control::Control;
use super::engine::End;
use super::error::ThroughputError;
use super::listening::{Listening, Newcomer};
use super::rr::answer_connection;
use super::run::TICK;
use super::served::{ServedEvent, ServerSpec};
use super::session::Session;
use super::slot::Slot;

/// Connections whose first bytes are awaited, and tests, at a time.
const MOST_THREADS: usize = 160;
/// How long the first bytes of a connection may take.
const FIRST: Duration = Duration::from_secs(5);
/// Datagrams that are looked at in one turn.
const MOST_HELLOS: usize = 256;

/// A server that has its port.
#[derive(Debug)]
pub struct Server {
    listening: Listening,
    hellos: UdpSocket,
    address: SocketAddr,
    spec: ServerSpec,
    slot: Slot,
}

impl Server {
    /// Takes the port for TCP and UDP.
    ///
    /// # Errors
    /// Another program has it, or it may not be had.
    pub fn bind(spec: &ServerSpec) -> Result<Self, ThroughputError> {
        let address = spec.listen;
        let listen = |source| ThroughputError::Listen { address, source };
        let listener = listen_on(address).map_err(listen)?;
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

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The port cannot be waited on.
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
            let greet = |newcomer: Newcomer| {
                if threads.fetch_add(1, Ordering::AcqRel) >= MOST_THREADS {
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
                let awaited = self.await_something()?;
                if awaited.hellos {
                    self.hear_hellos(event);
                }
                if awaited.connections
                    && let Ok((stream, peer)) = self.listening.listener().accept()
                {
                    greet(Newcomer {
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

    /// Waits a tick until something came. While a test accepts connections, this does not.
    fn await_something(&self) -> io::Result<Came> {
        let mut awaited = [
            Awaited::readable(self.hellos.as_fd()),
            Awaited::readable(self.listening.listener().as_fd()),
        ];
        let count = if self.listening.is_lent() { 1 } else { 2 };
        ppoll::wait(&mut awaited[..count], Some(TICK.to_duration()))?;
        Ok(Came {
            hellos: awaited[0].has_something(),
            connections: awaited[1].is_readable(),
        })
    }

    /// Takes in which addresses UDP streams come from.
    fn hear_hellos(&self, event: &(dyn Fn(ServedEvent) + Sync)) {
        let mut datagram = [0; Header::LEN];
        for _ in 0..MOST_HELLOS {
            // An error belongs to an earlier datagram, or there is none.
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

    /// A socket of its own for a UDP stream that is awaited: the kernel hands it what comes from there.
    fn attach_datagrams(&self, hello: Header, peer: SocketAddr) -> io::Result<()> {
        let mut slot = self.slot.lock();
        let Some(active) = slot.as_mut() else {
            return Ok(());
        };
        let (token, stream) = (hello.token, hello.stream);
        // A peer that has the token may name any address as its own in a datagram; it must be the one that
        // the control connection comes from.
        if !active.awaits(token, stream, Protocol::Udp) || !active.is_from(peer.ip()) {
            return Ok(());
        }
        // A socket of IPv4 costs less than one of IPv6 that carries IPv4.
        let socket = datagrams_on(unmapped(active.local))?;
        let peer = unmapped(peer);
        let carrier = active.job.datagrams(socket, peer, End::Server, stream)?;
        active.carriers.insert(stream, carrier);
        Ok(())
    }

    /// A connection for a TCP stream that is awaited.
    fn attach_connection(&self, preamble: Preamble, newcomer: Newcomer) {
        let Newcomer {
            stream,
            peer,
            first,
        } = newcomer;
        let mut slot = self.slot.lock();
        let Some(active) = slot.as_mut() else { return };
        let number = preamble.stream;
        if let Some(ask) = active.of_connections(preamble.token)
            && active.is_from(peer.ip())
        {
            // The server had accepted it just before it lent its port.
            let ask = ask.clone();
            drop(slot);
            answer_connection(&stream, &ask, first.len());
            return;
        }
        if !active.awaits(preamble.token, number, Protocol::Tcp) || !active.is_from(peer.ip()) {
            return;
        }
        // What cannot be prepared is closed, and the client hears that.
        if let Ok(carrier) = active.job.connection(stream, End::Server, number) {
            active.carriers.insert(number, carrier);
        }
    }
}

/// What came.
#[derive(Clone, Copy)]
struct Came {
    hellos: bool,
    connections: bool,
}

/// A server at work.
#[derive(Clone, Copy)]
struct Serving<'a> {
    server: &'a Server,
    stop: &'a Stop,
    event: &'a (dyn Fn(ServedEvent) + Sync),
}

impl Serving<'_> {
    /// Reads what a connection is for, and serves it.
    fn greet(&self, newcomer: Newcomer) {
        let Newcomer {
            mut stream,
            peer,
            mut first,
        } = newcomer;
        let read = first.len();
        first.resize(read.max(Preamble::LEN), 0);
        let filled = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(FIRST)))
            .and_then(|()| stream.read_exact(&mut first[read..]));
        if filled.is_err() {
            return;
        }
        if let Some(preamble) = first.first_chunk().and_then(Preamble::decode) {
            let newcomer = Newcomer {
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
        // The end of a test was reported with its fault; nonsense of other peers is no event.
        drop(served);
    }
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Ip::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(256)?;
    let listener = TcpListener::from(socket);
    Ok(listener)
}

/// An address of IPv4 that IPv6 writes (`::ffff:192.0.2.1`) as one of IPv4.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// A UDP socket that shares its port with others of this user.
fn datagrams_on(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Ip::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket.into())
}
