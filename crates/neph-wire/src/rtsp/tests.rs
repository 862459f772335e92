use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

/// The messages of these bytes up to the first error, read in pieces of this size.
fn read(bytes: &[u8], piece: usize) -> (Vec<Message>, Option<RtspError>) {
    let (mut inbox, mut messages) = (Inbox::default(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        inbox.push(piece);
        loop {
            match inbox.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// RFC 2326, section 10.4.
const SETUP: &[u8] = b"SETUP rtsp://example.com/foo/bar/baz.rm RTSP/1.0\r\nCSeq: 302\r\n\
    Transport: RTP/AVP;unicast;client_port=4588-4589\r\n\r\n";
const ANSWER: &[u8] = b"RTSP/1.0 200 OK\r\nCSeq: 302\r\nDate: 23 Jan 1997 15:35:06 GMT\r\n\
    Session: 47112344\r\nTransport: RTP/AVP;unicast;\r\n\r\n";

#[test]
fn the_example_messages_of_the_rfc_are_parsed() {
    let (messages, error) = read(&[SETUP, ANSWER].concat(), 1);
    assert_eq!(error, None);
    let [Message::Request(request), Message::Response(response)] = &messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!(request.method, Method::Setup);
    assert_eq!(request.url, "rtsp://example.com/foo/bar/baz.rm");
    assert_eq!(request.headers.cseq(), Some(302));
    assert_eq!(request.encode().as_deref(), Ok(SETUP));
    let transport = Transport::parse_all(request.headers.get("transport").expect("a field"));
    let ports = PortPair {
        rtp: 4588,
        rtcp: Some(4589),
    };
    assert_eq!(transport[0].client_port, Some(ports));
    assert!(transport[0].is_udp && transport[0].is_unicast);
    assert!(response.is_success());
    let session = SessionId::parse(response.headers.get("Session").expect("a field"));
    assert_eq!(
        session.map(|session| session.id).as_deref(),
        Some("47112344")
    );
}

#[test]
fn a_body_has_the_content_length_of_its_header() {
    let text =
        b"RTSP/1.0 200 OK\nCSeq: 2\nContent-length: 4\n\nv=0\nOPTIONS * RTSP/1.0\nCSeq: 3\n\n";
    let (messages, error) = read(text, 5);
    assert_eq!(error, None);
    let [Message::Response(first), Message::Request(second)] = &messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!(first.body, b"v=0\n");
    assert_eq!(
        (&second.method, second.url.as_str()),
        (&Method::Options, "*")
    );
}

#[test]
fn invalid_or_too_long_rtsp_messages_are_refused() {
    let refused = |bytes: &[u8]| read(bytes, bytes.len()).1;
    assert_eq!(
        refused(b"GET / HTTP/1.1\r\n\r\n"),
        Some(RtspError::FirstLine)
    );
    assert_eq!(
        refused(b"RTSP/1.0 99 x\r\n\r\n"),
        Some(RtspError::FirstLine)
    );
    assert_eq!(refused(b"$\x00\x00\x04abcd"), Some(RtspError::Interleaved));
    assert_eq!(
        refused(b"PLAY * RTSP/1.0\r\nnonsense\r\n\r\n"),
        Some(RtspError::Field)
    );
    for length in ["65537", "-1", "1\r\nContent-Length: 1", "+1", ""] {
        let text = format!("PLAY * RTSP/1.0\r\nContent-Length: {length}\r\n\r\n");
        let error = refused(text.as_bytes());
        assert_eq!(error, Some(RtspError::BodyLength(MAX_BODY)), "{length}");
    }
    let long = vec![b'a'; MAX_HEAD + 1];
    assert_eq!(refused(&long), Some(RtspError::HeadTooLong(MAX_HEAD)));
    let many = format!(
        "PLAY * RTSP/1.0\r\n{}\r\n",
        "a: b\r\n".repeat(MAX_FIELDS + 1)
    );
    assert_eq!(
        refused(many.as_bytes()),
        Some(RtspError::TooManyFields(MAX_FIELDS))
    );
}

#[test]
fn a_field_value_cannot_inject_another_field() {
    let mut headers = Headers::default();
    headers.push("Session", "1\r\nX: 2");
    let request = Request {
        method: Method::Play,
        url: "*".to_owned(),
        headers,
        body: Vec::new(),
    };
    assert_eq!(request.encode(), Err(RtspError::Text));
}

#[test]
fn urls_are_parsed_and_control_urls_resolved() {
    let url: Url = "rtsp://[fd00::1]:8554/video".parse().expect("a URL");
    assert_eq!((url.host.as_str(), url.port), ("fd00::1", Some(8554)));
    assert_eq!(url.to_string(), "rtsp://[fd00::1]:8554/video");
    let url: Url = "RTSP://camera".parse().expect("a URL");
    assert_eq!(
        (url.host.as_str(), url.port, url.path.as_str()),
        ("camera", None, "")
    );
    for wrong in [
        "http://a/",
        "rtsp://",
        "rtsp://a:0",
        "rtsp://a:b",
        "rtsp://user:secret@a/",
        "rtsp://a b",
        "rtsp://a:70000",
        "rtsp://[::1",
        "rtsp://[::1]x",
        "rtsp://::1",
    ] {
        assert_eq!(wrong.parse::<Url>(), Err(RtspError::Url), "{wrong}");
    }
    assert_eq!(Url::control("rtsp://a/v", "track0"), "rtsp://a/v/track0");
    assert_eq!(Url::control("rtsp://a/v/", "track0"), "rtsp://a/v/track0");
    assert_eq!(Url::control("rtsp://a/v", "*"), "rtsp://a/v");
    assert_eq!(Url::control("rtsp://a/v", "rtsp://b/x"), "rtsp://b/x");
}

/// The description of a test stream by `GStreamer` 1.22.
#[test]
fn an_sdp_of_a_third_party_server_is_parsed() {
    let sdp = Sdp::parse(
        "v=0\r\no=- 1188340656180883 1 IN IP4 127.0.0.1\r\ns=Session\r\nt=0 0\r\n\
         a=control:*\r\na=range:npt=now-\r\nm=video 0 RTP/AVP 96 97\r\nc=IN IP4 0.0.0.0\r\n\
         b=AS:2048\r\na=rtpmap:97 VP8/90000\r\na=rtpmap:96 H264/90000\r\na=framerate:29.97\r\n\
         a=fmtp:96 packetization-mode=1\r\na=extmap:3/recvonly urn:ietf:params:rtp-hdrext:toffset\r\n\
         a=control:stream=0\r\nm=audio 0 RTP/AVP 0\r\na=control:stream=1\r\n",
    );
    assert_eq!(sdp.control.as_deref(), Some("*"));
    let [video, audio] = &sdp.media[..] else {
        panic!("{sdp:?}")
    };
    let expected = Media {
        kind: "video".to_owned(),
        payload_type: 96,
        encoding: Some("H264".to_owned()),
        clock_hz: Some(90_000),
        bandwidth_kbit: Some(2_048),
        frames_per_1000_s: Some(29_970),
        offset_extension_id: Some(3),
        control: Some("stream=0".to_owned()),
    };
    assert_eq!(*video, expected);
    assert_eq!((audio.payload_type, audio.clock_hz), (0, None));
}

#[test]
fn the_start_of_a_stream_is_parsed_from_rtp_info() {
    let text = "url=rtsp://a/v/track0;seq=9810092;rtptime=3450012,url=rtsp://a/v/track1;seq=7";
    let infos = RtpInfo::parse_all(text);
    assert_eq!(
        (infos[0].sequence, infos[0].timestamp),
        (None, Some(3_450_012))
    );
    assert_eq!((infos[1].sequence, infos[1].timestamp), (Some(7), None));
    let session = SessionId::parse("a7 ; timeout=10").expect("a session");
    assert_eq!((session.id.as_str(), session.timeout), ("a7", Some(10)));
    assert_eq!(SessionId::parse(";timeout=10"), None);
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9._-]{1,12}"
}

prop_compose! {
    fn headers()(fields in vec(("[A-Za-z-]{1,12}", "([!-~]([ -~]{0,20}[!-~])?)?"), 0..8)) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in fields {
            headers.push(name, value);
        }
        headers
    }
}

prop_compose! {
    fn ports()(rtp in 1u16.., rtcp in option::of(1u16..)) -> PortPair {
        PortPair { rtp, rtcp }
    }
}

proptest! {
    #[test]
    fn messages_roundtrip_however_the_bytes_are_split(
        method in "[A-Z_]{1,16}", url in "[!-~]{1,30}", status in 100u16..1_000,
        reason in "([!-~]([ -~]{0,20}[!-~])?)?", headers in headers(),
        body in vec(any::<u8>(), 0..40), piece in 1usize..60,
    ) {
        let request = Request {
            method: Method::of(&method), url, headers: headers.clone(), body: body.clone(),
        };
        let response = Response { status, reason, headers, body };
        let bytes = [request.encode().expect("plain"), response.encode().expect("plain")].concat();
        let messages = vec![Message::Request(request), Message::Response(response)];
        prop_assert_eq!(read(&bytes, piece), (messages, None));
    }

    #[test]
    fn arbitrary_bytes_are_parsed_the_same_however_they_are_split(
        bytes in vec(any::<u8>(), 0..200), piece in 1usize..20,
    ) {
        prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len()));
    }

    #[test]
    fn transport_headers_roundtrip(
        is_udp: bool, is_unicast: bool, destination in option::of(word()),
        source in option::of(word()), client_port in option::of(ports()),
        server_port in option::of(ports()), ssrc: Option<u32>,
    ) {
        let transport = Transport {
            is_udp, is_unicast, destination, source, client_port, server_port, ssrc,
        };
        let two = vec![transport.clone(), transport.clone()];
        prop_assert_eq!(Transport::parse_all(&format!("{transport},{transport}")), two);
    }

    #[test]
    fn session_and_rtp_info_headers_roundtrip(
        id in word(), timeout: Option<u32>, sequence: Option<u16>, timestamp: Option<u32>,
    ) {
        let session = SessionId { id: id.clone(), timeout };
        prop_assert_eq!(SessionId::parse(&session.to_string()), Some(session));
        let info = RtpInfo { url: format!("rtsp://a/{id}"), sequence, timestamp };
        prop_assert_eq!(RtpInfo::parse_all(&info.to_string()), vec![info]);
    }

    #[test]
    fn sdp_roundtrips(
        presentation in option::of(word()), payload_type in 0u8..128, encoding in word(),
        clock in 1u32.., bandwidth_kbit: Option<u32>, frames_per_1000_s: Option<u32>,
        offset_extension_id in option::of(1u8..15), control in option::of(word()),
    ) {
        let media = Media {
            kind: "video".to_owned(), payload_type, encoding: Some(encoding), clock_hz: Some(clock),
            bandwidth_kbit, frames_per_1000_s, offset_extension_id, control,
        };
        let sdp = Sdp { control: presentation, media: vec![media.clone(), media] };
        prop_assert_eq!(Sdp::parse(&sdp.to_string()), sdp);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,80}") {
        Sdp::parse(&text);
        Transport::parse_all(&text);
        RtpInfo::parse_all(&text);
        SessionId::parse(&text);
        if let Ok(url) = text.parse::<Url>() {
            prop_assert_eq!(url.to_string().parse(), Ok(url));
        }
    }
}
