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
pub(crate) const fn is_of_session(replied: u16, requested: u16) -> bool {
    replied == requested || replied == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_another_session_is_not_ours_and_an_old_reflectors_is() {
        assert!(is_of_session(7, 7) && is_of_session(0, 7));
        assert!(!is_of_session(8, 7));
        let made: Vec<u16> = (0..64).map(|_| new_ssid()).collect();
        assert!(made.iter().all(|ssid| *ssid != 0));
        assert!(made.iter().any(|ssid| *ssid != made[0]), "{made:?}");
    }
}
