//! Sets up a client's streams concurrently, each with its RTSP connection and ports.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::thread;

use neph_model::{Span, Stop};
use neph_sys::{bulk, clock, stamp};
use neph_wire::rtsp::{Inbox, Message, Request, Transport};

use super::dialogue::{Dialogue, Received};
use super::error::MediaError;
use super::measured::MediaRequest;
use super::ports::{self, Pair};
use super::receiver::Receiver;
use super::track::{Track, TrackSpec};
use crate::transfer::connect;

/// Timeout of each step at the server.
const STEP_TIMEOUT: Span = Span::from_secs(10);
/// Maximum delay until a set stop flag is noticed.
const TICK: Span = Span::from_millis(50);
/// Receive buffer in bytes: enough for a second at 10 Mbit/s.
const RECEIVE_BUFFER_BYTES: i32 = 4 << 20;

/// Sets up all streams.
///
/// # Errors
/// The first error, in the order of the streams.
pub(super) fn open_all(
    server: SocketAddr,
    media_request: &MediaRequest,
    stop: &Stop,
) -> Result<Vec<Receiver>, MediaError> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..media_request.streams {
            let work = move || Opening::begin(server, stop)?.open(media_request);
            let thread = thread::Builder::new().spawn_scoped(scope, work);
            threads.push(thread.map_err(MediaError::Thread)?);
        }
        let opened = threads.into_iter().map(|thread| match thread.join() {
            Ok(opened) => opened,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        opened.collect()
    })
}

struct Opening<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    inbox: Inbox,
    stop: &'a Stop,
}

impl<'a> Opening<'a> {
    fn begin(server: SocketAddr, stop: &'a Stop) -> Result<Self, MediaError> {
        let stream =
            connect(server, STEP_TIMEOUT).map_err(MediaError::socket("connect to", server))?;
        let prepared = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(TICK.to_duration())))
            .and_then(|()| stream.set_write_timeout(Some(STEP_TIMEOUT.to_duration())));
        prepared.map_err(MediaError::socket("set up the connection to", server))?;
        Ok(Self {
            stream,
            peer: server,
            inbox: Inbox::default(),
            stop,
        })
    }

    fn open(mut self, media_request: &MediaRequest) -> Result<Receiver, MediaError> {
        let mut dialogue = Dialogue::new(&media_request.url);
        let request = dialogue.options();
        self.exchange(&mut dialogue, &request)?;
        let request = dialogue.describe();
        self.exchange(&mut dialogue, &request)?;
        let pair = self.ports()?;
        let request = dialogue.setup(pair.ports);
        let Received::SetUp(transport) = self.exchange(&mut dialogue, &request)? else {
            return Err(self.silent_error(&request));
        };
        self.connect_ports(&pair, &transport)?;
        let Some(media) = dialogue.media() else {
            return Err(self.silent_error(&request));
        };
        let spec = TrackSpec::new(media, media_request);
        Ok(Receiver {
            stream: self.stream,
            peer: self.peer,
            inbox: self.inbox,
            alive_at: Span::ZERO,
            report_at: Span::ZERO,
            track: Track::new(spec, transport.ssrc),
            dialogue,
            pair,
            fault: None,
            is_ended: false,
        })
    }

    /// Sends a request and waits for its answer.
    fn exchange(
        &mut self,
        dialogue: &mut Dialogue,
        request: &Request,
    ) -> Result<Received, MediaError> {
        let (peer, awaited) = (self.peer, request.method.word());
        let invalid_message = |source| MediaError::InvalidMessage { peer, source };
        let bytes = request.encode().map_err(invalid_message)?;
        let written = self.stream.write_all(&bytes);
        written.map_err(MediaError::socket("write to", peer))?;
        let deadline = clock::raw().0 + STEP_TIMEOUT.nanos();
        let mut buffer = [0; 4096];
        loop {
            while let Some(message) = self.inbox.next_message().map_err(invalid_message)? {
                let Message::Response(response) = message else {
                    continue;
                };
                let is_answer = response.headers.cseq() == request.headers.cseq();
                let received = dialogue.process_response(&response);
                let received =
                    received.map_err(|refusal| Receiver::refusal_error(peer, refusal))?;
                if is_answer && response.status >= 200 {
                    return Ok(received);
                }
            }
            if self.stop.is_set() {
                return Err(MediaError::Stopped);
            }
            if clock::raw().0 >= deadline {
                return Err(self.silent_error(request));
            }
            let awaited = awaited.to_owned();
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(MediaError::Closed { peer, awaited }),
                Ok(count) => self.inbox.push(&buffer[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset => {
                        return Err(MediaError::Closed { peer, awaited });
                    }
                    _ => return Err(MediaError::socket("read from", peer)(error)),
                },
            }
        }
    }

    fn silent_error(&self, request: &Request) -> MediaError {
        MediaError::Silent {
            peer: self.peer,
            awaited: request.method.word().to_owned(),
        }
    }

    /// Opens ports on the address of the RTSP connection: the server sends to no other.
    fn ports(&self) -> Result<Pair, MediaError> {
        let failed = MediaError::socket("open UDP ports towards", self.peer);
        let local = self.stream.local_addr().map_err(&failed)?;
        let pair = ports::open(ports::plain(local)).map_err(&failed)?;
        stamp::make_room(pair.rtp.as_fd(), RECEIVE_BUFFER_BYTES).map_err(&failed)?;
        bulk::enable_stamps(pair.rtp.as_fd()).map_err(&failed)?;
        Ok(pair)
    }

    /// Connects the ports, so that the kernel delivers only packets of the server. Sends a byte to
    /// each of the server's ports to open firewalls on the path.
    fn connect_ports(&self, pair: &Pair, transport: &Transport) -> Result<(), MediaError> {
        let Some(ports) = transport.server_port else {
            return Ok(());
        };
        let failed = MediaError::socket("connect a UDP port to", self.peer);
        let mut to = ports::plain(self.peer);
        to.set_port(ports.rtp);
        pair.rtp.connect(to).map_err(&failed)?;
        // The loss of this datagram does not matter unless a firewall needs it.
        let _ = pair.rtp.send(&[0]);
        if let Some(rtcp) = ports.rtcp {
            to.set_port(rtcp);
            pair.rtcp.connect(to).map_err(&failed)?;
            let _ = pair.rtcp.send(&[0]);
        }
        Ok(())
    }
}
