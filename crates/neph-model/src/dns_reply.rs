//! The result that a DNS response reports: its response code, and whether it was truncated.
//!
//! Owns the names of response codes. Does not own what the response code means for a message: any
//! response is a reply.

/// The response code of a DNS response, and its TC bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsReply {
    /// From 0 to 15: the four bits of the header.
    pub rcode: u8,
    /// Whether the response was truncated (TC): the rest is available over TCP.
    pub is_truncated: bool,
}

/// The names of response codes (RFC 1035, section 4.1.1; RFC 2136, section 2.2), by number.
const RCODES: [&str; 11] = [
    "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET",
    "NXRRSET", "NOTAUTH", "NOTZONE",
];
/// The end of the name of a truncated response.
const TRUNCATED: &str = "-tc";

impl DnsReply {
    /// One more than the largest [`Self::number`].
    pub(crate) const NUMBERS: u16 = 32;

    /// The response code, and 16 more where the response was truncated.
    pub(crate) fn number(self) -> u16 {
        u16::from(self.rcode & 0x0f) + if self.is_truncated { 16 } else { 0 }
    }

    pub(crate) fn from_number(number: u16) -> Self {
        Self {
            rcode: u8::try_from(number & 0x0f).expect("four bits"),
            is_truncated: number & 0x10 != 0,
        }
    }

    /// `noerror`, `nxdomain-tc`, `rcode-12`.
    pub(crate) fn name(self) -> String {
        let suffix = if self.is_truncated { TRUNCATED } else { "" };
        match RCODES.get(usize::from(self.rcode)) {
            Some(name) => format!("{}{suffix}", name.to_ascii_lowercase()),
            None => format!("rcode-{}{suffix}", self.rcode),
        }
    }

    /// The reply of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut replies = (0..Self::NUMBERS).map(Self::from_number);
        replies.find(|reply| reply.name() == name)
    }

    /// `NOERROR`, `NXDOMAIN, truncated`, `RCODE 12`.
    pub(crate) fn description(self) -> String {
        let suffix = if self.is_truncated { ", truncated" } else { "" };
        match RCODES.get(usize::from(self.rcode)) {
            Some(name) => format!("{name}{suffix}"),
            None => format!("RCODE {}{suffix}", self.rcode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_rcode_is_found_by_name_and_number() {
        for number in 0..DnsReply::NUMBERS {
            let reply = DnsReply::from_number(number);
            assert_eq!(reply.number(), number);
            assert_eq!(DnsReply::from_name(&reply.name()), Some(reply));
        }
        let cut = DnsReply {
            rcode: 3,
            is_truncated: true,
        };
        assert_eq!(
            (cut.name().as_str(), cut.description().as_str()),
            ("nxdomain-tc", "NXDOMAIN, truncated")
        );
        assert_eq!(DnsReply::from_name("rcode-3"), None, "it has a name");
    }
}
