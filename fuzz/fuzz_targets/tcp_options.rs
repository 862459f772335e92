//! TCP options: what is read of them is what a plain walk over them finds, also by the short way that
//! most segments take; and a segment's parts lie within it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::ip::{TcpOptions, parse_tcp, tcp_options};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// By indices, option by option (RFC 9293, 3.1).
fn walk(options: &[u8]) -> TcpOptions {
    let (mut found, mut at) = (TcpOptions::default(), 0);
    while at < options.len() {
        let length = match options[at] {
            0 => break,
            1 => 1,
            _ if at + 1 >= options.len() => break,
            _ => usize::from(options[at + 1]),
        };
        let value = at + 2;
        if options[at] == 1 {
            at += 1;
            continue;
        }
        if length < 2 || at + length > options.len() {
            break;
        }
        match (options[at], length) {
            (2, 4) => found.largest_segment = Some(u16::from_be_bytes([options[value], options[value + 1]])),
            (3, 3) => found.window_scale = Some(options[value]),
            (5, 10..) => {
                found.sack = Some((word(options, value), word(options, value + 4)));
                // A second block only where the option has one as a whole.
                let second = length >= 18;
                found.second_sack = second.then(|| (word(options, value + 8), word(options, value + 12)));
            }
            (8, 10) => found.timestamps = Some((word(options, value), word(options, value + 4))),
            _ => {}
        }
        at += length;
    }
    found
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(tcp_options(bytes), walk(bytes));
    let Ok(header) = parse_tcp(bytes) else { return };
    assert!((20..=60).contains(&header.header_len));
    assert!(20 + header.options.len() <= header.header_len);
    assert_eq!(20 + header.options.len() + header.payload.len(), bytes.len());
    assert_eq!(tcp_options(header.options), walk(header.options));
});
