//! How many bytes of each packet are enough, and what to do where fewer were kept.
//!
//! Owns the one number that commands keep unasked and that they advise. Does not own what is cut.

/// Headers and 16 bytes of payload: all that a packet is told and known again by. The longest that are
/// met: Ethernet with two VLAN tags (22), IPv6 (40), UDP (8), VXLAN or Geneve (8), Ethernet with a tag
/// (18), IPv6 (40) and TCP with all the options it can have (60) are 196 bytes; cooked captures begin
/// with 20, options of Geneve and a second tunnel want their part of the rest.
pub const ENOUGH: u32 = 256;

/// What helps those whose capture kept too little.
pub fn advice() -> String {
    format!(
        "keep at least {ENOUGH} bytes of each (tcpdump -s {ENOUGH}, or --snaplen {ENOUGH} of neph watch and neph hops)"
    )
}

/// What is told of packets that cannot be known again.
pub fn too_short() -> String {
    format!("cut too short to be known again: {}", advice())
}
