//! RTSP: the same messages however the bytes are cut, within the caps; what is read can be written and read
//! as the same, and so can a description and the headers of a stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::rtsp::{
    Headers, Inbox, MAX_BODY, MAX_FIELDS, Message, RtpInfo, RtspError, Sdp, SessionId, Transport,
    Url,
};

fuzz_target!(|bytes: &[u8]| {
    let uncut = parse(bytes, bytes.len().max(1));
    assert_eq!(uncut, parse(bytes, 1));
    for message in &uncut.messages {
        let (headers, body, encoded) = match message {
            Message::Request(message) => (&message.headers, &message.body, message.encode()),
            Message::Response(message) => (&message.headers, &message.body, message.encode()),
        };
        assert!(headers.len() <= MAX_FIELDS && body.len() <= MAX_BODY);
        read_headers(headers);
        let encoded = encoded.expect("what was read can be written");
        assert_eq!(
            parse(&encoded, 7).messages.iter().collect::<Vec<_>>(),
            [message]
        );
        assert_round_trip(&String::from_utf8_lossy(body));
    }
    assert_round_trip(&String::from_utf8_lossy(bytes));
});

#[derive(Debug, PartialEq)]
struct Parsed {
    messages: Vec<Message>,
    error: Option<RtspError>,
}

/// The messages of these bytes until the first that is none, in pieces of this size.
fn parse(bytes: &[u8], piece: usize) -> Parsed {
    let (mut inbox, mut messages) = (Inbox::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        inbox.push(piece);
        loop {
            match inbox.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    return Parsed {
                        messages,
                        error: Some(error),
                    };
                }
            }
        }
    }
    Parsed {
        messages,
        error: None,
    }
}

fn read_headers(headers: &Headers) {
    let header = |name| headers.get(name).unwrap_or_default();
    for transport in Transport::parse_all(header("Transport")) {
        let reparsed = Transport::parse_all(&transport.to_string());
        // A text with a comma or a semicolon in it is cut there; there is none after the first reading.
        assert_eq!(reparsed, [transport]);
    }
    for info in RtpInfo::parse_all(header("RTP-Info")) {
        assert_eq!(RtpInfo::parse_all(&info.to_string()), [info]);
    }
    if let Some(session) = SessionId::parse(header("Session")) {
        assert_eq!(SessionId::parse(&session.to_string()), Some(session));
    }
}

/// A description, or a URL, is the same once it was written.
fn assert_round_trip(text: &str) {
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
