//! The reflector's marks: one meaning has exactly one form, binary and hexadecimal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::marks::PeerMarks;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(marks) = PeerMarks::decode(bytes) {
        assert_eq!(marks.to_bytes(), bytes);
        let mut text = Vec::new();
        marks.encode_hex(&mut text);
        assert_eq!(PeerMarks::decode_hex(&text), Ok(marks));
    }
    if let Ok(marks) = PeerMarks::decode_hex(bytes) {
        let mut text = Vec::new();
        marks.encode_hex(&mut text);
        assert!(text.eq_ignore_ascii_case(bytes));
    }
});
