//! How many bytes of each packet are needed, and the remedy where fewer were captured.
//!
//! Owns the snapshot length that commands use by default and recommend. Does not own the truncation.

/// Headers and 16 bytes of payload: all bytes that are evaluated. The longest usual headers have 196 bytes.
/// The outer ones are Ethernet with two VLAN tags (22), IPv6 (40), UDP (8), and VXLAN or Geneve (8). The
/// inner ones are Ethernet with a tag (18), IPv6 (40) and TCP with all options (60). Cooked captures begin
/// with 20. The rest is for options of Geneve and a second tunnel.
pub const DEFAULT_SNAPLEN: u32 = 256;

/// The remedy if a capture kept too few bytes.
pub fn snaplen_remedy() -> String {
    let snaplen = DEFAULT_SNAPLEN;
    format!(
        "keep at least {snaplen} bytes of each (tcpdump -s {snaplen}, or --snaplen {snaplen} of neph watch and neph hops)"
    )
}

/// The message about packets that cannot be recognized.
pub fn truncated_message() -> String {
    format!("cut too short to be known again: {}", snaplen_remedy())
}
