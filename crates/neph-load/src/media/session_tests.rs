use super::*;

const FIRST: RtpStart = RtpStart {
    sequence: 100,
    timestamp: 200,
    ssrc: 300,
};

fn session() -> Session {
    let trace = Trace::parse("fps 25\n4785\n").expect("a trace");
    let peer = IpAddr::from([10, 0, 0, 1]);
    Session::new(peer, "5e55".to_owned(), FIRST, &trace)
}

fn request(method: Method, path: &str, fields: &[[&str; 2]]) -> Request {
    let mut headers = Headers::default();
    headers.push("CSeq", "7");
    for [name, value] in fields {
        headers.push(*name, *value);
    }
    Request {
        method,
        url: format!("rtsp://10.0.0.2:8554{path}"),
        headers,
        body: Vec::new(),
    }
}

fn status(answer: &Answer) -> u16 {
    match answer {
        Answer::Reply(response) | Answer::Play(response) | Answer::End(response) => response.status,
        Answer::Setup(_) => 0,
    }
}

const UDP: [&str; 2] = ["Transport", "RTP/AVP;unicast;client_port=5000-5001"];
const OURS: [&str; 2] = ["Session", "5e55"];

#[test]
fn an_rtsp_session_goes_from_describe_to_teardown() {
    let mut session = session();
    let Answer::Reply(described) = session.answer(&request(Method::Describe, "/video", &[])) else {
        panic!("described")
    };
    let sdp = Sdp::parse(&String::from_utf8(described.body).expect("text"));
    assert_eq!(sdp.media[0].bandwidth_kbit, Some(957));
    let base = described.headers.get("Content-Base");
    assert_eq!(base, Some("rtsp://10.0.0.2:8554/video/"));
    let setup = session.answer(&request(Method::Setup, "/video/track0", &[UDP]));
    let Answer::Setup(requested) = setup else {
        panic!("{setup:?}")
    };
    assert_eq!(requested.ports.rtp, 5_000);
    let ports = PortPair {
        rtp: 6_000,
        rtcp: Some(6_001),
    };
    let granted = session.granted(&requested, ports);
    assert_eq!(granted.headers.cseq(), Some(7));
    assert_eq!(granted.headers.get("Session"), Some("5e55;timeout=10"));
    let played = session.answer(&request(Method::Play, "/video/", &[OURS]));
    let Answer::Play(played) = played else {
        panic!("{played:?}")
    };
    let info = RtpInfo::parse_all(played.headers.get("RTP-Info").expect("a field"));
    assert_eq!(
        (info[0].sequence, info[0].timestamp),
        (Some(100), Some(200))
    );
    assert_eq!(info[0].url, "rtsp://10.0.0.2:8554/video/track0");
    assert!(session.is_playing());
    let ended = session.answer(&request(Method::Teardown, "/video/", &[OURS]));
    assert!(matches!(ended, Answer::End(_)));
    assert!(!session.is_playing());
}

#[test]
fn media_are_sent_only_to_the_client_and_to_unprivileged_ports() {
    for header in [
        "RTP/AVP;unicast;destination=10.0.0.3;client_port=5000-5001",
        "RTP/AVP;unicast;destination=victim;client_port=5000-5001",
        "RTP/AVP;unicast;client_port=53-54",
    ] {
        let answer = session().answer(&request(Method::Setup, "/video", &[["Transport", header]]));
        assert_eq!(status(&answer), 403, "{header}");
    }
    for header in [
        "RTP/AVP/TCP;unicast;interleaved=0-1",
        "RTP/AVP;multicast;client_port=5000-5001",
        "RTP/AVP;unicast",
        "",
    ] {
        let answer = session().answer(&request(Method::Setup, "/video", &[["Transport", header]]));
        assert_eq!(status(&answer), 461, "{header}");
    }
    let same =
        "RTP/AVP/TCP;unicast;interleaved=0-1,RTP/AVP;unicast;destination=10.0.0.1;client_port=5000";
    let answer = session().answer(&request(Method::Setup, "/video", &[["Transport", same]]));
    assert!(matches!(answer, Answer::Setup(_)), "{answer:?}");
}

#[test]
fn rtsp_requests_out_of_order_or_unknown_are_refused() {
    let answer = |method, path: &str, fields: &[[&str; 2]]| {
        status(&session().answer(&request(method, path, fields)))
    };
    assert_eq!(answer(Method::Describe, "/other", &[]), 404);
    assert_eq!(answer(Method::Setup, "/other", &[UDP]), 404);
    assert_eq!(answer(Method::Play, "/video", &[]), 454);
    assert_eq!(answer(Method::Play, "/video", &[OURS]), 455);
    assert_eq!(
        answer(Method::Options, "/video", &[["Session", "other"]]),
        454
    );
    assert_eq!(answer(Method::Teardown, "/video", &[]), 454);
    assert_eq!(
        answer(Method::Other("RECORD".to_owned()), "/video", &[]),
        501
    );
    let mut without = request(Method::Options, "/", &[]);
    without.headers = Headers::default();
    assert_eq!(status(&session().answer(&without)), 400);
}
