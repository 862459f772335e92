//! RTSP: the same messages however the bytes are cut, within the caps; what is read can be written and read
//! as the same, and so can a description and the headers of a stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::rtsp::{
    Headers, Inbox, MAX_BODY, MAX_FIELDS, Message, RtpInfo, RtspError, Sdp, SessionId, Transport, Url,
};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, 1));
    for message in &whole.messages {
        let (headers, body, written) = match message {
            Message::Request(one) => (&one.headers, &one.body, one.encode()),
            Message::Response(one) => (&one.headers, &one.body, one.encode()),
        };
        assert!(headers.len() <= MAX_FIELDS && body.len() <= MAX_BODY);
        read_headers(headers);
        let written = written.expect("what was read can be written");
        assert_eq!(read(&written, 7).messages.iter().collect::<Vec<_>>(), [message]);
        survives(&String::from_utf8_lossy(body));
    }
    survives(&String::from_utf8_lossy(bytes));
});

#[derive(Debug, PartialEq)]
struct Read {
    messages: Vec<Message>,
    error: Option<RtspError>,
}

/// The messages of these bytes until the first that is none, in pieces of this size.
fn read(bytes: &[u8], piece: usize) -> Read {
    let (mut inbox, mut messages) = (Inbox::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        inbox.push(piece);
        loop {
            match inbox.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return Read { messages, error: Some(error) },
            }
        }
    }
    Read { messages, error: None }
}

fn read_headers(headers: &Headers) {
    let one = |name| headers.get(name).unwrap_or_default();
    for way in Transport::parse_all(one("Transport")) {
        let reparsed = Transport::parse_all(&way.to_string());
        // A text with a comma or a semicolon in it is cut there; there is none after the first reading.
        assert_eq!(reparsed, [way]);
    }
    for info in RtpInfo::parse_all(one("RTP-Info")) {
        assert_eq!(RtpInfo::parse_all(&info.to_string()), [info]);
    }
    if let Some(session) = SessionId::parse(one("Session")) {
        assert_eq!(SessionId::parse(&session.to_string()), Some(session));
    }
}

/// A description, or a URL, is the same once it was written.
fn survives(text: &str) {
    let sdp = Sdp::parse(text);
    assert!(sdp.media.len() <= 32);
    let reparsed = Sdp::parse(&sdp.to_string());
    assert_eq!(reparsed.media.len(), sdp.media.len());
    assert_eq!(reparsed.control, sdp.control);
    if let Ok(url) = text.parse::<Url>() {
        assert_eq!(url.to_string().parse(), Ok(url.clone()));
        Url::control(text, &url.path);
    }
}
