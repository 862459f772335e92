//! Messages between a controller and an agent: bytes are refused or are a message that comes back as it went.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_agent::remote::{
    LONGEST_FRAME, decode_from_agent, decode_to_agent, encode_from_agent, encode_to_agent,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = decode_to_agent(bytes)
        && let Ok(encoded) = encode_to_agent(&message)
    {
        assert!(encoded.len() <= LONGEST_FRAME);
        assert_eq!(decode_to_agent(&encoded).expect("it was one"), message);
    }
    if let Ok(message) = decode_from_agent(bytes)
        && let Ok(encoded) = encode_from_agent(&message)
    {
        assert_eq!(decode_from_agent(&encoded).expect("it was one"), message);
    }
});
