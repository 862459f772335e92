//! Assignment of ICMP errors to datagrams, and their meaning.
//!
//! Owns the reading of ICMP types and codes (RFC 792, RFC 4443). Does not own the socket's queue.

use std::net::SocketAddr;

use neph_model::IcmpKind;
use neph_sys::icmp_error::IcmpError;

/// The meaning of an error for a request to `target`. `None` if it is no verdict about it.
pub(super) fn kind_of(target: SocketAddr, error: &IcmpError) -> Option<IcmpKind> {
    Some(match (target, error.kind, error.code) {
        (SocketAddr::V4(_), 3, 1 | 7 | 12) | (SocketAddr::V6(_), 1, 3) => IcmpKind::HostUnreachable,
        (SocketAddr::V4(_), 3, 2) | (SocketAddr::V6(_), 4, 1) => IcmpKind::ProtocolUnreachable,
        (SocketAddr::V4(_), 3, 3) | (SocketAddr::V6(_), 1, 4) => IcmpKind::PortUnreachable,
        (SocketAddr::V4(_), 3, 4) | (SocketAddr::V6(_), 2, _) => IcmpKind::TooBig,
        (SocketAddr::V4(_), 3, 9 | 10 | 13) | (SocketAddr::V6(_), 1, 1 | 5 | 6) => {
            IcmpKind::Prohibited
        }
        (SocketAddr::V4(_), 3, _) | (SocketAddr::V6(_), 1, _) => IcmpKind::NetUnreachable,
        (SocketAddr::V4(_), 11, 0) | (SocketAddr::V6(_), 3, 0) => IcmpKind::TimeExceeded,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_errors_of_both_ip_versions_map_to_the_same_kinds() {
        let icmp_kind = |target: &str, kind, code| {
            let error = IcmpError {
                to: None,
                from: None,
                kind,
                code,
                at: None,
            };
            kind_of(target.parse().expect("an address"), &error)
        };
        let (v4, v6) = ("192.0.2.1:9", "[2001:db8::1]:9");
        for (of_v4, of_v6, kind) in [
            ((3, 3), (1, 4), IcmpKind::PortUnreachable),
            ((3, 1), (1, 3), IcmpKind::HostUnreachable),
            ((3, 0), (1, 0), IcmpKind::NetUnreachable),
            ((3, 2), (4, 1), IcmpKind::ProtocolUnreachable),
            ((3, 13), (1, 1), IcmpKind::Prohibited),
            ((3, 4), (2, 0), IcmpKind::TooBig),
            ((11, 0), (3, 0), IcmpKind::TimeExceeded),
        ] {
            assert_eq!(icmp_kind(v4, of_v4.0, of_v4.1), Some(kind));
            assert_eq!(icmp_kind(v6, of_v6.0, of_v6.1), Some(kind));
        }
        assert_eq!(icmp_kind(v4, 5, 1), None, "a redirect is no verdict");
        assert_eq!(icmp_kind(v4, 4, 0), None, "source quench is none");
    }
}
