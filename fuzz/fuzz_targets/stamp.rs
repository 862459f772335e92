//! STAMP in both modes: a reply is exactly as long as its request, is readable, and repeats the
//! request's number; without the key nothing is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::reported_by_peer;
use neph_wire::marks::PeerMarks;
use neph_wire::stamp::{
    Auth, ErrorEstimate, FollowUp, Format, Key, ReplyFields, Timestamp, decode_reply,
    decode_request, encode_request, reflect,
};

fn reply_fields() -> ReplyFields {
    ReplyFields {
        seq: 9,
        receive: Timestamp(1),
        timestamp: Timestamp(2),
        error: ErrorEstimate {
            synchronized: false,
            format: Format::Ntp,
            scale: 0,
            multiplier: 1,
        },
        sender_ttl: 255,
        timestamps: PeerMarks {
            rx: Some(1),
            wall_offset: 5,
            ..PeerMarks::default()
        },
        follow_up: Some(FollowUp {
            seq: 8,
            timestamp: Timestamp(1),
            method: 2,
        }),
    }
}

fn check_exchange(bytes: &[u8], auth: Auth<'_>) {
    let Ok(request) = decode_request(bytes, auth) else {
        return;
    };
    let mut reply = Vec::new();
    reflect(&request, &reply_fields(), auth, &mut reply);
    assert_eq!(reply.len(), bytes.len());
    let decoded = decode_reply(&reply, auth).expect("our own reply");
    assert_eq!(decoded.packet.sender_seq, request.packet.seq);
    assert!(decoded.timestamps.is_none() || decoded.timestamps == Some(reply_fields().timestamps));
    assert!(decoded.follow_up.is_none() || decoded.follow_up == reply_fields().follow_up);
}

fuzz_target!(|bytes: &[u8]| {
    let key = Key::new(b"fuzz").expect("not empty");
    check_exchange(bytes, Auth::Open);
    assert!(
        decode_request(bytes, Auth::Keyed(&key)).is_err(),
        "a forged tag"
    );
    assert!(
        decode_reply(bytes, Auth::Keyed(&key)).is_err(),
        "a forged tag"
    );
    assert!(reported_by_peer(bytes).is_none() || decode_reply(bytes, Auth::Open).is_ok());
    // The tag cannot be guessed: lay the input behind a base packet that is properly tagged.
    if let Ok(request) = decode_request(bytes, Auth::Open) {
        let mut authenticated = Vec::new();
        let size = request.tlvs.len() % 400;
        encode_request(&request.packet, Auth::Keyed(&key), size, &mut authenticated)
            .expect("small");
        authenticated.extend_from_slice(request.tlvs);
        check_exchange(&authenticated, Auth::Keyed(&key));
    }
    for format in [Format::Ntp, Format::Ptp] {
        let Some(input_bytes) = bytes.first_chunk::<8>() else {
            return;
        };
        let nanos = i64::from_be_bytes(*input_bytes);
        if let Ok(stamp) = Timestamp::from_unix(nanos, format) {
            assert_eq!(stamp.to_unix(format), Ok(nanos));
        }
    }
});
