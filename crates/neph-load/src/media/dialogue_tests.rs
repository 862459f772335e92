use super::*;

fn response(cseq: u32, status: u16, fields: &[[&str; 2]], body: &str) -> Response {
    let mut headers = Headers::default();
    headers.push("CSeq", cseq.to_string());
    for [name, value] in fields {
        headers.push(*name, *value);
    }
    Response {
        status,
        reason: "Why".to_owned(),
        headers,
        body: body.as_bytes().to_vec(),
    }
}

const SDP: &str = "v=0\r\na=control:*\r\nm=audio 0 RTP/AVP 0\r\na=control:a\r\n\
    m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:stream=0\r\n";

#[test]
fn a_client_describes_sets_up_and_plays_a_stream() {
    let mut dialogue = Dialogue::new("rtsp://camera/live");
    let options = dialogue.options();
    assert_eq!(options.headers.cseq(), Some(1));
    let public = [["Public", "OPTIONS, GET_PARAMETER, PLAY"]];
    assert_eq!(
        dialogue.process_response(&response(1, 200, &public, "")),
        Ok(Received::Nothing)
    );
    dialogue.describe();
    let base = [["Content-Base", "rtsp://camera/live/"]];
    assert_eq!(
        dialogue.process_response(&response(2, 200, &base, SDP)),
        Ok(Received::Described)
    );
    let ports = PortPair {
        rtp: 5_000,
        rtcp: Some(5_001),
    };
    let setup = dialogue.setup(ports);
    assert_eq!(setup.url, "rtsp://camera/live/stream=0");
    let fields = [
        ["Session", "a1;timeout=30"],
        [
            "Transport",
            "RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001",
        ],
    ];
    let received = dialogue
        .process_response(&response(3, 200, &fields, ""))
        .expect("granted");
    assert!(matches!(received, Received::SetUp(way) if way.server_port.is_some()));
    assert_eq!(dialogue.interval(), Span::from_secs(15));
    assert_eq!(dialogue.keep_alive().method, Method::GetParameter);
    let play = dialogue.play();
    assert_eq!(
        (play.url.as_str(), play.headers.get("Session")),
        ("rtsp://camera/live/", Some("a1"))
    );
    let info = "url=rtsp://camera/live/a;seq=1,url=rtsp://camera/live/stream=0;seq=7;rtptime=9";
    let received = dialogue.process_response(&response(5, 200, &[["RTP-Info", info]], ""));
    let Ok(Received::Playing(Some(info))) = received else {
        panic!("{received:?}")
    };
    assert_eq!(info.sequence, Some(7));
    dialogue.teardown();
    assert_eq!(
        dialogue.process_response(&response(6, 200, &[], "")),
        Ok(Received::Ended)
    );
    // The answer to the keep-alive comes last; a parameter may be refused.
    assert_eq!(
        dialogue.process_response(&response(4, 451, &[], "")),
        Ok(Received::Nothing)
    );
    assert_eq!(
        dialogue.process_response(&response(4, 454, &[], "")),
        Ok(Received::Nothing)
    );
}

#[test]
fn a_refusal_names_the_request_or_the_missing_field() {
    let mut dialogue = Dialogue::new("rtsp://camera/live");
    dialogue.describe();
    let refused = dialogue.process_response(&response(1, 404, &[], ""));
    let expected = Refusal::Status {
        method: "DESCRIBE".to_owned(),
        status: 404,
        reason: "Why".to_owned(),
    };
    assert_eq!(refused, Err(expected));
    dialogue.describe();
    let lacking = dialogue.process_response(&response(2, 200, &[], "v=0\r\n"));
    assert!(matches!(lacking, Err(Refusal::MissingPart { .. })));
    dialogue.setup(PortPair { rtp: 1, rtcp: None });
    let fields = [
        ["Session", "a"],
        ["Transport", "RTP/AVP/TCP;unicast;interleaved=0-1"],
    ];
    let lacking = dialogue.process_response(&response(3, 200, &fields, ""));
    assert!(matches!(lacking, Err(Refusal::MissingPart { lacks, .. }) if lacks.contains("UDP")));
    // An answer without a request changes nothing.
    assert_eq!(
        dialogue.process_response(&response(99, 500, &[], "")),
        Ok(Received::Nothing)
    );
}
