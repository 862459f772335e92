//! The sizes that neph-model knows are those that neph-wire builds.

use neph_model::{Authenticated, MIN_REPLY, StampSizes, stamp_sizes};
use neph_wire::echo::REPLY_MIN;
use neph_wire::stamp::{Auth, Key, TIMESTAMPS_TLV_LEN};

/// Header, and an HMAC of 16 bytes.
const HMAC_TLV_LEN: usize = 20;

#[test]
fn a_stamp_packet_has_its_declared_size() {
    let key = Key::new(b"any").expect("it is not empty");
    for (auth, authenticated, hmac_tlv_len) in [
        (Auth::Open, Authenticated::No, 0),
        (Auth::Keyed(&key), Authenticated::Yes, HMAC_TLV_LEN),
    ] {
        let built = StampSizes {
            bare: auth.base_len() as u64,
            with_marks: (auth.base_len() + TIMESTAMPS_TLV_LEN + hmac_tlv_len) as u64,
        };
        assert_eq!(stamp_sizes(authenticated), built);
    }
}

#[test]
fn a_reply_with_timestamps_has_its_declared_size() {
    assert_eq!(MIN_REPLY, REPLY_MIN as u64);
}
