//! Opens the connection of a transfer, and greets a reflector on it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use neph_model::{Span, Stop};
use neph_wire::frame::{FrameError, HELLO_LEN, Hello, HelloReply};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::driver::now;

/// Connects from any port.
pub(crate) fn connect(address: SocketAddr, timeout: Span) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, timeout.to_duration())
}

/// An unconnected socket with this source port (0: any). It will be closed by a RST: the port
/// cannot be reused while its last connection is in `TIME_WAIT`.
pub(crate) fn bind_source_port(address: SocketAddr, source_port: u16) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    socket.set_reuse_address(true)?;
    let unspecified: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, source_port).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, source_port).into(),
    };
    socket.bind(&SockAddr::from(unspecified))?;
    socket.set_linger(Some(Duration::ZERO))?;
    Ok(socket)
}

/// Connects a bound socket.
pub(crate) fn connect_from(
    socket: Socket,
    address: SocketAddr,
    timeout: Span,
) -> io::Result<TcpStream> {
    socket.connect_timeout(&SockAddr::from(address), timeout.to_duration())?;
    Ok(socket.into())
}

/// Why a reflector did not answer a greeting.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The connection failed, or no answer arrived in time.
    Io(io::Error),
    /// The answer is not that of a reflector.
    Frame(FrameError),
}

/// Sends a greeting to a reflector of neph on a blocking socket, and waits for its answer.
pub(crate) fn greet(
    stream: &mut TcpStream,
    hello: &Hello,
    timeout: Span,
    stop: &Stop,
) -> Result<HelloReply, Unanswered> {
    let mut bytes = Vec::with_capacity(HELLO_LEN);
    hello.encode(&mut bytes);
    let mut reply = [0; HELLO_LEN];
    stream
        .set_read_timeout(Some(Stop::POLL_INTERVAL.to_duration()))
        .and_then(|()| stream.write_all(&bytes))
        .and_then(|()| read_reply(stream, &mut reply, timeout, stop))
        .map_err(Unanswered::Io)?;
    HelloReply::decode(&reply).map_err(Unanswered::Frame)
}

fn read_reply(
    stream: &mut TcpStream,
    reply: &mut [u8],
    timeout: Span,
    stop: &Stop,
) -> io::Result<()> {
    let deadline = now() + timeout;
    let mut filled = 0;
    while filled < reply.len() {
        match stream.read(&mut reply[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_late(&error) && stop.is_set() => {
                return Err(ErrorKind::Interrupted.into());
            }
            Err(error) if is_late(&error) && now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a socket timed out.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
