//! Layouts according to the RFCs' figures, exact times, symmetric sizes, tags.

use proptest::collection::vec;
use proptest::prelude::*;

use super::tlv::{FLAG_I, FLAG_M, FLAG_U, HEADER_LEN, Tlvs, Type};
use super::*;
use crate::marks::tests::any_marks;
use crate::marks::{LEN, PeerMarks};

const ERROR: ErrorEstimate = ErrorEstimate {
    synchronized: true,
    format: Format::Ntp,
    scale: 3,
    multiplier: 9,
};

fn sender(seq: u32) -> SenderPacket {
    SenderPacket {
        seq,
        timestamp: Timestamp(0x1122_3344_5566_7788),
        error: ERROR,
        ssid: 0xabcd,
    }
}

fn fields(timestamps: PeerMarks) -> ReplyFields {
    ReplyFields {
        seq: 77,
        receive: Timestamp(0x0102_0304_0506_0708),
        timestamp: Timestamp(0x1112_1314_1516_1718),
        error: ERROR,
        sender_ttl: 63,
        timestamps,
        follow_up: Some(FollowUp {
            seq: 76,
            timestamp: Timestamp(5),
            method: 2,
        }),
    }
}

fn key() -> Key {
    Key::new(b"a shared secret").expect("not empty")
}

fn reply_to(bytes: &[u8], auth: Auth<'_>, marks: PeerMarks) -> Vec<u8> {
    let request = decode_request(bytes, auth).expect("a request");
    let mut out = Vec::new();
    reflect(&request, &fields(marks), auth, &mut out);
    out
}

#[test]
fn layouts_are_those_of_rfc_8762() {
    let (key, mut open, mut keyed) = (key(), Vec::new(), Vec::new());
    sender(0x0a0b_0c0d).encode(Auth::Open, &mut open);
    let start = [
        0x0a, 0x0b, 0x0c, 0x0d, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    ];
    assert_eq!((open.len(), &open[..12]), (44, &start[..]));
    assert_eq!(open[12..16], [0x83, 9, 0xab, 0xcd]);
    assert_eq!(open[16..], [0; 28]);
    sender(1).encode(Auth::Keyed(&key), &mut keyed);
    assert_eq!(
        (keyed.len(), &keyed[16..18], &keyed[26..28]),
        (112, &[0x11, 0x22][..], &[0xab, 0xcd][..])
    );

    let reply = reply_to(&open, Auth::Open, PeerMarks::default());
    assert_eq!(reply[16..24], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(reply[24..28], open[..4]);
    assert_eq!(reply[28..38], open[4..14]);
    assert_eq!(reply[38..], [0, 0, 63, 0, 0, 0]);
    let reply = reply_to(&keyed, Auth::Keyed(&key), PeerMarks::default());
    assert_eq!(reply[32..40], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(reply[48..52], keyed[..4]);
    assert_eq!(reply[64..74], keyed[16..26]);
    assert_eq!((reply.len(), reply[80]), (112, 63));
}

#[test]
fn a_tag_is_hmac_sha_256_of_rfc_4231_cut_to_16_bytes() {
    let key = Key::new(b"Jefe").expect("not empty");
    let tag = key.tag(&[b"what do ya want ", b"for nothing?"]);
    let known = [
        0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75,
        0xc7,
    ];
    assert_eq!(tag, known);
    assert_eq!(
        key.verify(&[b"what do ya want for nothing?"], &known),
        Ok(())
    );
    assert_eq!(
        key.verify(&[b"what do ya want for nothing?"], &known[..15]),
        Err(StampError::Tag)
    );
    assert_eq!(Key::new(b"").map(|_| ()), Err(StampError::EmptyKey));
    assert_eq!(format!("{key:?}"), "Key(hidden)");
}

#[test]
fn ntp_time_crosses_2036() {
    // RFC 8877 and NTP's own tables: era 1 begins at 2036-02-07T06:28:16Z.
    let era = 2_085_978_496_000_000_000;
    let stamp = |nanos| Timestamp::from_unix(nanos, Format::Ntp);
    assert_eq!(stamp(era), Ok(Timestamp(0)));
    assert_eq!(stamp(era - 1_000_000_000), Ok(Timestamp(0xffff_ffff << 32)));
    assert_eq!(stamp(0), Ok(Timestamp(2_208_988_800 << 32)));
    assert_eq!(
        stamp(500_000_000),
        Ok(Timestamp(2_208_988_800 << 32 | 1 << 31))
    );
    for outside in [i64::MIN, i64::MAX, -61_505_153_000_000_000] {
        assert_eq!(stamp(outside), Err(StampError::TimeRange(outside)));
    }
    let broken = Timestamp(1_000_000_000).to_unix(Format::Ptp);
    assert_eq!(broken, Err(StampError::Nanoseconds(1_000_000_000)));
    assert!(Timestamp::from_unix(-1, Format::Ptp).is_err());
}

#[test]
fn unknown_and_malformed_tlvs_are_reflected_with_their_flags() {
    let mut request = Vec::new();
    sender(1).encode(Auth::Open, &mut request);
    request.extend_from_slice(&[FLAG_U | FLAG_M, 200, 0, 3, 1, 2, 3]);
    request.extend_from_slice(&[FLAG_U | FLAG_M, 7, 0, 2, 9, 9]);
    request.extend_from_slice(&[FLAG_U | FLAG_M, 7, 0, 16]);
    request.extend_from_slice(&[0; 16]);
    request.extend_from_slice(&[FLAG_U | FLAG_M, 252, 0, 56, 1, 1]);
    let reply = reply_to(&request, Auth::Open, PeerMarks::default());
    assert_eq!(reply.len(), request.len());
    let tlvs: Vec<_> = Tlvs::new(&reply[44..]).collect();
    assert_eq!((tlvs[0].flags, tlvs[0].value), (FLAG_U, &[1, 2, 3][..]));
    assert_eq!((tlvs[1].flags, tlvs[1].value), (FLAG_M, &[9, 9][..]));
    assert_eq!(tlvs[2].flags, 0);
    assert_eq!(tlvs.len(), 3);
    assert_eq!(reply[reply.len() - 6..], [FLAG_M, 252, 0, 56, 1, 1]);
    let decoded = decode_reply(&reply, Auth::Open).expect("a reply");
    assert_eq!(decoded.follow_up, fields(PeerMarks::default()).follow_up);
    assert_eq!(decoded.timestamps, None);
}

#[test]
fn forged_tlvs_are_flagged_and_not_answered() {
    let key = key();
    let auth = Auth::Keyed(&key);
    let mut request = Vec::new();
    encode_request(&sender(1), auth, 300, &mut request).expect("small");
    request[112 + HEADER_LEN] ^= 1;
    let reply = reply_to(&request, auth, PeerMarks::default());
    assert!(Tlvs::new(&reply[112..]).all(|tlv| tlv.flags & FLAG_I != 0));
    assert_eq!(
        decode_reply(&reply, auth).map(|reply| reply.timestamps),
        Ok(None)
    );

    request[112 + HEADER_LEN] ^= 1;
    let mut reply = reply_to(&request, auth, PeerMarks::default());
    reply[112 + HEADER_LEN + 20] ^= 1;
    assert_eq!(decode_reply(&reply, auth), Err(StampError::TlvTag));
    reply[0] ^= 1;
    assert_eq!(decode_reply(&reply, auth), Err(StampError::Tag));
    let other = Key::new(b"another secret").expect("not empty");
    assert_eq!(
        decode_request(&request, Auth::Keyed(&other)).map(|_| ()),
        Err(StampError::Tag)
    );
}

proptest! {
    #[test]
    fn times_roundtrip_to_the_nanosecond(nanos in -61_505_152_000_000_000i64..=4_233_462_143_999_999_999) {
        let stamp = Timestamp::from_unix(nanos, Format::Ntp).expect("in range");
        prop_assert_eq!(stamp.to_unix(Format::Ntp), Ok(nanos));
        if (0..4_294_967_296_000_000_000).contains(&nanos) {
            let stamp = Timestamp::from_unix(nanos, Format::Ptp).expect("in range");
            prop_assert_eq!(stamp.to_unix(Format::Ptp), Ok(nanos));
        }
    }

    #[test]
    fn any_ntp_timestamp_is_converted(raw: u64) {
        let nanos = Timestamp(raw).to_unix(Format::Ntp).expect("NTP has no invalid bits");
        // Half a nanosecond is 2.15 units of 2^-32 s; the last fractions may round up.
        let back = Timestamp::from_unix(nanos, Format::Ntp).map_or(raw, |back| back.0);
        prop_assert!(back.wrapping_sub(raw).cast_signed().abs() <= 3);
    }

    #[test]
    fn an_error_estimate_is_never_too_small(nanos in 1u64..=u64::MAX / 2) {
        let estimate = ErrorEstimate::from_nanos(nanos, Format::Ptp);
        prop_assert!(estimate.nanos() >= nanos);
        prop_assert!(u128::from(estimate.nanos()) <= u128::from(nanos) * 129 / 128 + 2);
        prop_assert_eq!(ErrorEstimate::from_wire(estimate.to_wire()), Ok(estimate));
    }

    #[test]
    fn a_reply_has_the_length_of_its_request_and_the_timestamps(
        seq: u32,
        size in 0usize..2000,
        marks in any_marks(),
        with_key: bool,
    ) {
        let key = key();
        let auth = if with_key { Auth::Keyed(&key) } else { Auth::Open };
        let mut request = Vec::new();
        encode_request(&sender(seq), auth, size, &mut request).expect("fits");
        prop_assert_eq!(request.len(), request_size(auth, size));
        prop_assert!(request.len() <= size.max(auth.base_len()) + 3);
        let bytes = reply_to(&request, auth, marks);
        prop_assert_eq!(bytes.len(), request.len());
        let reply = decode_reply(&bytes, auth).expect("a reply");
        let tag = if with_key { 20 } else { 0 };
        let has_room = size >= auth.base_len() + HEADER_LEN + LEN + tag;
        prop_assert_eq!(reply.timestamps, has_room.then_some(marks));
        prop_assert_eq!((reply.packet.sender_seq, reply.packet.seq), (seq, 77));
        prop_assert_eq!(reply.packet.ssid, 0xabcd);
        for keep in 0..auth.base_len() {
            prop_assert_eq!(decode_reply(&bytes[..keep], auth), Err(StampError::Short(keep)));
        }
    }

    #[test]
    fn arbitrary_bytes_are_answered_symmetrically_or_not_at_all(
        mut bytes in vec(any::<u8>(), 0..400),
        kinds in vec(prop::sample::select(vec![1u8, 7, 8, 252, 99]), 8),
    ) {
        if let Some(tlvs) = bytes.get_mut(44..) {
            for (tlv, kind) in tlvs.chunks_mut(20).zip(kinds) {
                if let [_, code, high, low, ..] = tlv {
                    (*code, *high, *low) = (kind, 0, 16);
                }
            }
        }
        if let Ok(request) = decode_request(&bytes, Auth::Open) {
            let mut out = vec![1];
            reflect(&request, &fields(PeerMarks::default()), Auth::Open, &mut out);
            prop_assert_eq!(out.len(), bytes.len() + 1);
            prop_assert!(decode_reply(&out[1..], Auth::Open).is_ok());
        }
        let _ = decode_reply(&bytes, Auth::Open);
    }
}

#[test]
fn types_have_their_registered_numbers() {
    for (of, code) in [
        (Type::ExtraPadding, 1),
        (Type::FollowUp, 7),
        (Type::Hmac, 8),
        (Type::Marks, 252),
    ] {
        assert_eq!((of.code(), Type::from_code(code)), (code, Some(of)));
    }
    assert_eq!(Type::from_code(2), None);
}
