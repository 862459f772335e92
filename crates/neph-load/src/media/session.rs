//! The server's side of one RTSP connection, as a state machine: maps requests to responses and to
//! actions of the caller. Opens no socket and reads no clock.
//!
//! A connection has one session with one stream. RTP goes only to the address that the connection
//! comes from; a request for another destination is refused. Ports below 1024 are refused too:
//! services of that host listen there.

use std::net::IpAddr;

use neph_wire::rtsp::{
    Headers, Media, Method, PortPair, Request, Response, RtpInfo, Sdp, SessionId, Transport, Url,
};

use super::source::{ENCODING, OFFSET_ID, PAYLOAD_TYPE, RtpStart};
use super::trace::{CLOCK_HZ, Trace};

/// Seconds without a request or an RTCP report after which a session is over.
pub(super) const TIMEOUT_S: u32 = 10;
/// The path of the presentation.
pub(super) const PATH: &str = "/video";
/// The stream, relative to the presentation.
const TRACK: &str = "track0";
const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN";
/// The lowest port that RTP is sent to.
const MIN_PORT: u16 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Init,
    Ready,
    Playing,
}

/// The action for a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Send the response.
    Reply(Response),
    /// Open ports, then send the result of [`Session::granted`] or [`Session::refused`].
    Setup(RequestedStream),
    /// Send the response, then the stream.
    Play(Response),
    /// Send the response and stop the stream.
    End(Response),
}

/// A requested stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestedStream {
    cseq: String,
    /// Receive ports of the client.
    pub(super) ports: PortPair,
}

/// The session of a connection.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    peer: IpAddr,
    first: RtpStart,
    media: Media,
    state: State,
}

impl Session {
    /// A session of a connection from this address.
    pub(super) fn new(peer: IpAddr, id: String, first: RtpStart, trace: &Trace) -> Self {
        let kbit = trace.mean_rate().bits_per_second().div_ceil(1_000);
        let media = Media {
            kind: "video".to_owned(),
            payload_type: PAYLOAD_TYPE,
            encoding: Some(ENCODING.to_owned()),
            clock_hz: Some(CLOCK_HZ),
            bandwidth_kbit: u32::try_from(kbit).ok(),
            frames_per_1000_s: Some(trace.frames_per_1000_s()),
            offset_extension_id: Some(OFFSET_ID),
            control: Some(TRACK.to_owned()),
        };
        Self {
            id,
            peer,
            first,
            media,
            state: State::Init,
        }
    }

    /// Whether the stream is playing.
    pub(super) fn is_playing(&self) -> bool {
        self.state == State::Playing
    }

    /// The answer to a request.
    pub(super) fn answer(&mut self, request: &Request) -> Answer {
        let Some(cseq) = request.headers.get("CSeq").map(str::to_owned) else {
            return Answer::Reply(reply("0", 400, "Bad Request"));
        };
        let fail = |status, reason| Answer::Reply(reply(&cseq, status, reason));
        let session_id = request.headers.get("Session").and_then(SessionId::parse);
        let is_ours = session_id
            .as_ref()
            .map(|session_id| session_id.id == self.id);
        if is_ours == Some(false) {
            return fail(454, "Session Not Found");
        }
        match &request.method {
            Method::Options => {
                let mut response = reply(&cseq, 200, "OK");
                response.headers.push("Public", METHODS);
                Answer::Reply(response)
            }
            Method::Describe if is_known(&request.url) => {
                Answer::Reply(self.describe(&cseq, &request.url))
            }
            Method::Describe | Method::Setup if !is_known(&request.url) => fail(404, "Not Found"),
            Method::Setup if self.state != State::Init => {
                fail(455, "Method Not Valid In This State")
            }
            Method::Setup => self.setup(cseq, request),
            Method::Play | Method::Teardown if is_ours.is_none() => fail(454, "Session Not Found"),
            Method::Play if self.state == State::Ready => self.play(&cseq, &request.url),
            Method::Play => fail(455, "Method Not Valid In This State"),
            Method::GetParameter if request.body.is_empty() => {
                Answer::Reply(reply(&cseq, 200, "OK"))
            }
            Method::GetParameter => fail(451, "Parameter Not Understood"),
            Method::Teardown => {
                self.state = State::Init;
                Answer::End(reply(&cseq, 200, "OK"))
            }
            Method::Describe | Method::Other(_) => {
                let mut response = reply(&cseq, 501, "Not Implemented");
                response.headers.push("Public", METHODS);
                Answer::Reply(response)
            }
        }
    }

    fn describe(&self, cseq: &str, url: &str) -> Response {
        let sdp = Sdp {
            control: Some("*".to_owned()),
            media: vec![self.media.clone()],
        };
        let mut response = reply(cseq, 200, "OK");
        let base = presentation(url);
        response.headers.push("Content-Base", format!("{base}/"));
        response.headers.push("Content-Type", "application/sdp");
        response.body = sdp.to_string().into_bytes();
        response
    }

    fn setup(&self, cseq: String, request: &Request) -> Answer {
        let header = request.headers.get("Transport").unwrap_or_default();
        let transports = Transport::parse_all(header);
        let udp = transports
            .iter()
            .filter(|transport| transport.is_udp && transport.is_unicast);
        let mut udp = udp.filter_map(|transport| Some((transport, transport.client_port?)));
        let Some((transport, ports)) = udp.next() else {
            return Answer::Reply(reply(&cseq, 461, "Unsupported Transport"));
        };
        let is_elsewhere = transport.destination.as_ref().is_some_and(|destination| {
            destination.parse::<IpAddr>().map(|ip| ip.to_canonical()) != Ok(self.peer)
        });
        if is_elsewhere || ports.rtp < MIN_PORT {
            return Answer::Reply(reply(&cseq, 403, "Forbidden"));
        }
        Answer::Setup(RequestedStream { cseq, ports })
    }

    /// The response for a granted stream, which is sent from these ports.
    pub(super) fn granted(&mut self, requested: &RequestedStream, ports: PortPair) -> Response {
        self.state = State::Ready;
        let mut response = reply(&requested.cseq, 200, "OK");
        let transport = Transport {
            is_udp: true,
            is_unicast: true,
            client_port: Some(requested.ports),
            server_port: Some(ports),
            ssrc: Some(self.first.ssrc),
            ..Transport::default()
        };
        response.headers.push("Transport", transport.to_string());
        let session = SessionId {
            id: self.id.clone(),
            timeout: Some(TIMEOUT_S),
        };
        response.headers.push("Session", session.to_string());
        response
    }

    /// The response for a refused stream.
    pub(super) fn refused(requested: &RequestedStream) -> Response {
        reply(&requested.cseq, 453, "Not Enough Bandwidth")
    }

    fn play(&mut self, cseq: &str, url: &str) -> Answer {
        self.state = State::Playing;
        let mut response = reply(cseq, 200, "OK");
        response.headers.push("Session", self.id.clone());
        response.headers.push("Range", "npt=0.000-");
        let info = RtpInfo {
            url: format!("{}/{TRACK}", presentation(url)),
            sequence: Some(self.first.sequence),
            timestamp: Some(self.first.timestamp),
        };
        response.headers.push("RTP-Info", info.to_string());
        Answer::Play(response)
    }
}

/// Whether a URL is that of the presentation or of its stream.
fn is_known(url: &str) -> bool {
    let Ok(url) = url.parse::<Url>() else {
        return false;
    };
    let path = url.path.trim_end_matches('/');
    let path = path.strip_suffix(&format!("/{TRACK}")).unwrap_or(path);
    path.is_empty() || path == PATH
}

/// The URL of the presentation: without the stream and without a trailing slash.
fn presentation(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(TRACK).unwrap_or(url).trim_end_matches('/')
}

fn reply(cseq: &str, status: u16, reason: &str) -> Response {
    let mut headers = Headers::default();
    headers.push("CSeq", cseq);
    headers.push("Server", "nephoscope");
    Response {
        status,
        reason: reason.to_owned(),
        headers,
        body: Vec::new(),
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
