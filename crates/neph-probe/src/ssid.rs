//! Identifiers of STAMP sessions (RFC 8972, 3): a reply with another one belongs to another session.
//!
//! Owns making and comparing them. Does not own packets (`neph_wire::stamp`).

use crate::unguessable::unguessable_bytes;

/// The identifier of a session: it cannot be guessed without its packets.
pub(crate) fn new_ssid() -> u16 {
    u16::from_le_bytes(unguessable_bytes()).max(1)
}

/// Whether a reply with this identifier belongs to the session with that one. A reflector of RFC 8762 alone
/// leaves the field zero (RFC 8972, 3).
pub(crate) const fn matches_session(replied: u16, requested: u16) -> bool {
    replied == requested || replied == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_with_the_requested_ssid_or_zero_match() {
        assert!(matches_session(7, 7) && matches_session(0, 7));
        assert!(!matches_session(8, 7));
        let ssids: Vec<u16> = (0..64).map(|_| new_ssid()).collect();
        assert!(ssids.iter().all(|ssid| *ssid != 0));
        assert!(ssids.iter().any(|ssid| *ssid != ssids[0]), "{ssids:?}");
    }
}
