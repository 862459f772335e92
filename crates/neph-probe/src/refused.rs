//! What a reflector's caps refused to one address and what its kernel dropped, as a header of the response to
//! HEAD.

use std::fmt;

/// The response header.
pub(crate) const REFUSED_HEADER: &str = "Neph-Refused";

/// Refusals to the address of the client, since the reflector knows it, and the caps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Messages beyond the rate.
    pub messages: u64,
    /// That rate: messages per second from one address.
    pub messages_per_second: u32,
    /// Connections beyond the number.
    pub connections: u64,
    /// That number: connections at the same time from one address.
    pub connections_per_peer: u32,
    /// Datagrams of all addresses that its kernel dropped unread; 0 if it does not report them.
    pub dropped: u64,
}

impl fmt::Display for Refusals {
    /// The header's form: five numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (messages, rate) = (self.messages, self.messages_per_second);
        let (connections, max) = (self.connections, self.connections_per_peer);
        let dropped = self.dropped;
        write!(f, "{messages} {rate} {connections} {max} {dropped}")
    }
}

impl Refusals {
    /// Reads the header. `None` if it is invalid. Older reflectors send four numbers.
    pub(crate) fn read(header: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(header).ok()?.split(' ');
        let read = Self {
            messages: parts.next()?.parse().ok()?,
            messages_per_second: parts.next()?.parse().ok()?,
            connections: parts.next()?.parse().ok()?,
            connections_per_peer: parts.next()?.parse().ok()?,
            dropped: parts.next().map_or(Some(0), |number| number.parse().ok())?,
        };
        parts.next().is_none().then_some(read)
    }

    /// Refusals since `earlier`.
    pub(crate) const fn since(self, earlier: &Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(earlier.messages),
            connections: self.connections.saturating_sub(earlier.connections),
            dropped: self.dropped.saturating_sub(earlier.dropped),
            ..self
        }
    }
}
