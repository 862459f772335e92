//! Serves throughput tests, one after the other, on one port for TCP and UDP.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use neph_model::Stop;
use neph_sys::ppoll::{self, Awaited};
use neph_wire::throughput::{Content, Header, Preamble, Protocol};
use socket2::{Domain, Protocol as Ip, SockAddr, Socket, Type};

use super::carrier::Carrier;
use super::control::Control;
use super::error::ThroughputError;
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
    listener: TcpListener,
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
            listener,
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
            while !stop.is_set() {
                let mut awaited = [
                    Awaited::readable(self.listener.as_fd()),
                    Awaited::readable(self.hellos.as_fd()),
                ];
                ppoll::wait(&mut awaited, Some(TICK.to_duration()))?;
                if awaited[1].has_something() {
                    self.hear_hellos(event);
                }
                if !awaited[0].is_readable() {
                    continue;
                }
                let Ok((stream, peer)) = self.listener.accept() else {
                    continue;
                };
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                if threads.fetch_add(1, Ordering::AcqRel) >= MOST_THREADS {
                    threads.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let work = move || {
                    serving.greet(stream, peer);
                    threads.fetch_sub(1, Ordering::AcqRel);
                };
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    threads.fetch_sub(1, Ordering::AcqRel);
                }
            }
            Ok(())
        });
        let address = self.address;
        served.map_err(|source| ThroughputError::Listen { address, source })
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
        let socket = datagrams_on(active.local)?;
        let sends = !active.ask.is_up(stream);
        let carrier = Carrier::udp(socket, peer, &active.ask, sends)?;
        active.carriers.insert(stream, carrier);
        Ok(())
    }

    /// A connection for a TCP stream that is awaited.
    fn attach_connection(&self, preamble: Preamble, stream: TcpStream, peer: SocketAddr) {
        let mut slot = self.slot.lock();
        let Some(active) = slot.as_mut() else { return };
        let number = preamble.stream;
        if !active.awaits(preamble.token, number, Protocol::Tcp) || !active.is_from(peer.ip()) {
            return;
        }
        let sends = !active.ask.is_up(number);
        // What cannot be prepared is closed, and the client hears that.
        if let Ok(carrier) = Carrier::tcp(stream, &active.ask, sends) {
            active.carriers.insert(number, carrier);
        }
    }
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
    fn greet(&self, mut stream: TcpStream, peer: SocketAddr) {
        let mut first = [0; Preamble::LEN];
        let read = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(FIRST)))
            .and_then(|()| stream.read_exact(&mut first));
        if read.is_err() {
            return;
        }
        if let Some(preamble) = Preamble::decode(&first) {
            self.server.attach_connection(preamble, stream, peer);
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
    listener.set_nonblocking(true)?;
    Ok(listener)
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
