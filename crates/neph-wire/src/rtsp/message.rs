//! Requests and responses, and their encoding.

use super::RtspError;

const VERSION: &str = "RTSP/1.0";
const LENGTH: &str = "Content-Length";

/// The method of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// Query the methods of the server.
    Options,
    /// Get the description of a presentation.
    Describe,
    /// Set up the transport of a stream.
    Setup,
    /// Start sending.
    Play,
    /// Get parameters; without any it keeps the session alive.
    GetParameter,
    /// End a session.
    Teardown,
    /// Another method.
    Other(String),
}

impl Method {
    /// The method name on the wire.
    pub fn word(&self) -> &str {
        match self {
            Self::Options => "OPTIONS",
            Self::Describe => "DESCRIBE",
            Self::Setup => "SETUP",
            Self::Play => "PLAY",
            Self::GetParameter => "GET_PARAMETER",
            Self::Teardown => "TEARDOWN",
            Self::Other(word) => word,
        }
    }

    /// The method with this name. Methods are case-sensitive.
    pub fn of(word: &str) -> Self {
        match word {
            "OPTIONS" => Self::Options,
            "DESCRIBE" => Self::Describe,
            "SETUP" => Self::Setup,
            "PLAY" => Self::Play,
            "GET_PARAMETER" => Self::GetParameter,
            "TEARDOWN" => Self::Teardown,
            other => Self::Other(other.to_owned()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: String,
    value: String,
}

/// The fields of a head in their order, without Content-Length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<Field>);

impl Headers {
    /// The value of the first field with this name, ignoring case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(&field.value)
    }

    /// Appends a field. Content-Length is derived from the body and is not appended.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        if !name.eq_ignore_ascii_case(LENGTH) {
            self.0.push(Field { name, value });
        }
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `CSeq` number, which a response repeats.
    pub fn cseq(&self) -> Option<u32> {
        self.get("CSeq")?.parse().ok()
    }

    fn write(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), RtspError> {
        for Field { name, value } in &self.0 {
            let is_token = |byte: u8| byte.is_ascii_graphic() && byte != b':';
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(RtspError::Text);
            }
            check_line(value)?;
            if value.trim() != value {
                return Err(RtspError::Text);
            }
            out.extend(format!("{name}: {value}\r\n").bytes());
        }
        if !body.is_empty() {
            out.extend(format!("{LENGTH}: {}\r\n", body.len()).bytes());
        }
        out.extend(b"\r\n");
        out.extend(body);
        Ok(())
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// An absolute URL, or `*`.
    pub url: String,
    /// The fields of its head.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The bytes of the request.
    ///
    /// # Errors
    /// A text has a character that is not allowed in a head.
    pub fn encode(&self) -> Result<Vec<u8>, RtspError> {
        let word = self.method.word();
        let is_one_word =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        // Such a method would be read as a status line or as interleaved data.
        let is_ambiguous = word.starts_with(VERSION) || word.starts_with('$');
        if !is_one_word(word) || !is_one_word(&self.url) || is_ambiguous {
            return Err(RtspError::Text);
        }
        let mut out = format!("{word} {} {VERSION}\r\n", self.url).into_bytes();
        self.headers.write(&self.body, &mut out)?;
        Ok(out)
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, 100 to 999; 2xx is success.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The fields of its head.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The bytes of the response.
    ///
    /// # Errors
    /// A text has a character that is not allowed in a head, or the status has not three digits.
    pub fn encode(&self) -> Result<Vec<u8>, RtspError> {
        check_line(&self.reason)?;
        if !(100..1_000).contains(&self.status) || self.reason.trim() != self.reason {
            return Err(RtspError::Text);
        }
        let mut out = format!("{VERSION} {} {}\r\n", self.status, self.reason).into_bytes();
        self.headers.write(&self.body, &mut out)?;
        Ok(out)
    }

    /// Whether the status is 2xx.
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A request.
    Request(Request),
    /// A response.
    Response(Response),
}

impl Message {
    /// Parses a first line.
    pub(super) fn begin(line: &str) -> Result<Self, RtspError> {
        if let Some(status) = line.strip_prefix(VERSION) {
            let status = status.strip_prefix(' ').ok_or(RtspError::FirstLine)?;
            let (status, reason) = status.split_once(' ').unwrap_or((status, ""));
            let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
            let status = status.parse().ok().filter(|status| *status >= 100);
            return Ok(Self::Response(Response {
                status: status.filter(|_| is_status).ok_or(RtspError::FirstLine)?,
                reason: reason.trim().to_owned(),
                headers: Headers::default(),
                body: Vec::new(),
            }));
        }
        let mut fields = line.split(' ');
        let (method, url, version) = (fields.next(), fields.next(), fields.next());
        let (Some(method), Some(url), Some(VERSION), None) = (method, url, version, fields.next())
        else {
            return Err(RtspError::FirstLine);
        };
        let is_one_word =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_one_word(method) || !is_one_word(url) {
            return Err(RtspError::FirstLine);
        }
        Ok(Self::Request(Request {
            method: Method::of(method),
            url: url.to_owned(),
            headers: Headers::default(),
            body: Vec::new(),
        }))
    }

    pub(super) fn headers_mut(&mut self) -> &mut Headers {
        match self {
            Self::Request(request) => &mut request.headers,
            Self::Response(response) => &mut response.headers,
        }
    }

    pub(super) fn set_body(&mut self, body: Vec<u8>) {
        match self {
            Self::Request(request) => request.body = body,
            Self::Response(response) => response.body = body,
        }
    }
}

fn check_line(text: &str) -> Result<(), RtspError> {
    if text.chars().any(char::is_control) {
        return Err(RtspError::Text);
    }
    Ok(())
}
