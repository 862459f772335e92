//! The client's side of one RTSP connection, as a state machine: the next request, and the meaning
//! of an answer. Opens no socket and reads no clock.

use neph_model::Span;
use neph_wire::rtsp::{
    Headers, Media, Method, PortPair, Request, Response, RtpInfo, Sdp, SessionId, Transport, Url,
};

/// Lifetime of a session without requests if the server names none (RFC 2326, section 12.37).
const DEFAULT_TIMEOUT_S: u32 = 60;
/// Maximum number of requests without an answer.
const MAX_AWAITED: usize = 8;

/// Why the dialogue cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The server refused a request.
    Status {
        method: String,
        status: u16,
        reason: String,
    },
    /// The answer lacks a required part.
    MissingPart { method: String, lacks: &'static str },
}

/// Result of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Nothing relevant, or no answer to one of the requests.
    Nothing,
    /// The description of the presentation; the next request is SETUP.
    Described,
    /// The stream is set up.
    SetUp(Transport),
    /// The stream begins, with this packet.
    Playing(Option<RtpInfo>),
    /// The session is over.
    Ended,
}

/// A request without an answer yet.
#[derive(Clone, Debug)]
struct Awaited {
    cseq: u32,
    method: Method,
}

/// One RTSP dialogue.
#[derive(Debug)]
pub(super) struct Dialogue {
    url: String,
    /// URL of the presentation, as the server names it.
    aggregate_url: String,
    /// URL of the stream.
    track: String,
    cseq: u32,
    session: Option<SessionId>,
    has_parameters: bool,
    media: Option<Media>,
    awaited: Vec<Awaited>,
}

impl Dialogue {
    /// A dialogue about the presentation with this URL.
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            aggregate_url: url.to_owned(),
            track: url.to_owned(),
            cseq: 0,
            session: None,
            has_parameters: false,
            media: None,
            awaited: Vec::new(),
        }
    }

    /// The chosen stream.
    pub(super) const fn media(&self) -> Option<&Media> {
        self.media.as_ref()
    }

    fn request(&mut self, method: Method, url: String) -> Request {
        self.cseq += 1;
        let mut headers = Headers::default();
        headers.push("CSeq", self.cseq.to_string());
        headers.push("User-Agent", "nephoscope");
        if let Some(session) = &self.session {
            headers.push("Session", session.id.clone());
        }
        if self.awaited.len() == MAX_AWAITED {
            self.awaited.remove(0);
        }
        self.awaited.push(Awaited {
            cseq: self.cseq,
            method: method.clone(),
        });
        Request {
            method,
            url,
            headers,
            body: Vec::new(),
        }
    }

    /// OPTIONS: asks for the server's methods.
    pub(super) fn options(&mut self) -> Request {
        self.request(Method::Options, self.url.clone())
    }

    /// DESCRIBE: asks for the presentation.
    pub(super) fn describe(&mut self) -> Request {
        let mut request = self.request(Method::Describe, self.url.clone());
        request.headers.push("Accept", "application/sdp");
        request
    }

    /// SETUP: asks for the stream on these ports.
    pub(super) fn setup(&mut self, ports: PortPair) -> Request {
        let mut request = self.request(Method::Setup, self.track.clone());
        let transport = Transport {
            is_udp: true,
            is_unicast: true,
            client_port: Some(ports),
            ..Transport::default()
        };
        request.headers.push("Transport", transport.to_string());
        request
    }

    /// PLAY: starts the stream.
    pub(super) fn play(&mut self) -> Request {
        let mut request = self.request(Method::Play, self.aggregate_url.clone());
        request.headers.push("Range", "npt=0.000-");
        request
    }

    /// Keeps the session alive.
    pub(super) fn keep_alive(&mut self) -> Request {
        let method = if self.has_parameters {
            Method::GetParameter
        } else {
            Method::Options
        };
        self.request(method, self.aggregate_url.clone())
    }

    /// TEARDOWN: ends the session.
    pub(super) fn teardown(&mut self) -> Request {
        self.request(Method::Teardown, self.aggregate_url.clone())
    }

    /// Interval of keep-alives: half of the session's lifetime.
    pub(super) fn interval(&self) -> Span {
        let timeout = self.session.as_ref().and_then(|session| session.timeout);
        let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT_S).max(2);
        Span::from_millis(i64::from(timeout) * 500)
    }

    /// Processes an answer.
    ///
    /// # Errors
    /// The server refuses, or its answer lacks a part that the next request needs.
    pub(super) fn process_response(&mut self, response: &Response) -> Result<Received, Refusal> {
        // 1xx responses precede the final one.
        let cseq = response.headers.cseq().filter(|_| response.status >= 200);
        let mut awaited = self.awaited.iter();
        let Some(index) = awaited.position(|awaited| Some(awaited.cseq) == cseq) else {
            return Ok(Received::Nothing);
        };
        let method = self.awaited.remove(index).method;
        // A server may refuse a parameter; the request still keeps the session alive.
        let is_parameter = matches!(method, Method::GetParameter | Method::Options);
        let is_done = response.is_success() || (is_parameter && response.status != 454);
        if !is_done {
            return Err(Refusal::Status {
                method: method.word().to_owned(),
                status: response.status,
                reason: response.reason.clone(),
            });
        }
        match method {
            Method::Options => {
                let public = response.headers.get("Public").unwrap_or_default();
                let mut methods = public.split(',').map(str::trim);
                self.has_parameters = methods.any(|method| method == Method::GetParameter.word());
                Ok(Received::Nothing)
            }
            Method::Describe => self.described(response),
            Method::Setup => self.set_up(response),
            Method::Play => {
                let infos = response.headers.get("RTP-Info").map(RtpInfo::parse_all);
                let mut infos = infos.unwrap_or_default().into_iter();
                Ok(Received::Playing(infos.find(|info| self.is_ours(info))))
            }
            Method::Teardown => Ok(Received::Ended),
            Method::GetParameter | Method::Other(_) => Ok(Received::Nothing),
        }
    }

    /// Whether it belongs to this stream. Servers send an absolute URL or one relative to the
    /// presentation.
    fn is_ours(&self, info: &RtpInfo) -> bool {
        info.url.is_empty() || self.track == info.url || self.track.ends_with(&info.url)
    }

    fn described(&mut self, response: &Response) -> Result<Received, Refusal> {
        let method = || Method::Describe.word().to_owned();
        let text = String::from_utf8_lossy(&response.body);
        let sdp = Sdp::parse(&text);
        let mut media = sdp.media.iter();
        let media = media.find(|media| media.kind == "video");
        let Some(media) = media.or_else(|| sdp.media.first()) else {
            return Err(Refusal::MissingPart {
                method: method(),
                lacks: "a stream over RTP",
            });
        };
        let base = response.headers.get("Content-Base");
        let base = base.or_else(|| response.headers.get("Content-Location"));
        let base = base.unwrap_or(&self.url).to_owned();
        let of = |control: Option<&str>| Url::control(&base, control.unwrap_or("*"));
        self.aggregate_url = of(sdp.control.as_deref());
        self.track = of(media.control.as_deref());
        self.media = Some(media.clone());
        Ok(Received::Described)
    }

    fn set_up(&mut self, response: &Response) -> Result<Received, Refusal> {
        let lacks = |lacks| Refusal::MissingPart {
            method: Method::Setup.word().to_owned(),
            lacks,
        };
        let session = response.headers.get("Session").and_then(SessionId::parse);
        self.session = Some(session.ok_or_else(|| lacks("a session"))?);
        let header = response.headers.get("Transport").unwrap_or_default();
        let mut transports = Transport::parse_all(header).into_iter();
        let transport = transports.find(|transport| transport.is_udp && transport.is_unicast);
        Ok(Received::SetUp(
            transport.ok_or_else(|| lacks("a transport over UDP"))?,
        ))
    }
}

#[cfg(test)]
#[path = "dialogue_tests.rs"]
mod tests;
