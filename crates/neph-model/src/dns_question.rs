//! The question of a DNS target: `/name?type=A`.
//!
//! Owns the text and the names of record types. Messages are `neph_wire`'s.

use std::fmt;

use crate::authority::InvalidTargetPart;

/// A name, and the type of the requested records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuestion {
    /// The name with dots; `.` for the root.
    pub name: String,
    /// The type of its records.
    pub record: DnsRecord,
}

/// A type of records (RFC 1035, section 3.2.2; RFC 3596; RFC 2782).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsRecord {
    /// As it is written.
    pub name: &'static str,
    /// Its number in messages.
    pub number: u16,
}

/// All record types that can be requested; the first is the default.
#[rustfmt::skip]
const RECORDS: [DnsRecord; 9] = [
    DnsRecord { name: "A",     number: 1 },
    DnsRecord { name: "AAAA",  number: 28 },
    DnsRecord { name: "NS",    number: 2 },
    DnsRecord { name: "MX",    number: 15 },
    DnsRecord { name: "TXT",   number: 16 },
    DnsRecord { name: "SOA",   number: 6 },
    DnsRecord { name: "PTR",   number: 12 },
    DnsRecord { name: "SRV",   number: 33 },
    DnsRecord { name: "CNAME", number: 5 },
];

/// Maximum number of characters of a name: 255 bytes in a message contain 253 (RFC 1035, section
/// 2.3.4).
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;
const EXAMPLE: &str = "write for example /example.org?type=A behind the resolver";

impl DnsQuestion {
    /// Reads the path of a target.
    ///
    /// # Errors
    /// There is no name, or it can be none, or the type is not known.
    pub fn parse(path: &str) -> Result<Self, InvalidTargetPart> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (name, query) = match path.split_once('?') {
            Some((name, query)) => (name, Some(query)),
            None => (path, None),
        };
        if name.is_empty() {
            return Err(InvalidTargetPart::new("it has no name to ask for", EXAMPLE));
        }
        if !is_name(name) {
            let message = format!("'{name}' is no DNS name");
            return Err(InvalidTargetPart::new(message, EXAMPLE));
        }
        let record = match query {
            None => RECORDS[0],
            Some(query) => record(query)?,
        };
        Ok(Self {
            name: name.to_owned(),
            record,
        })
    }

    /// Whether the path of a target is a question.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn check(path: &str) -> Result<(), InvalidTargetPart> {
        Self::parse(path).map(drop)
    }
}

impl fmt::Display for DnsQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.record.name)
    }
}

/// Whether this is the root, or labels of 1 to 63 letters, digits, hyphens, underscores and stars.
fn is_name(name: &str) -> bool {
    let relative = name.strip_suffix('.').unwrap_or(name);
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_*".contains(&byte);
    let is_label =
        |label: &str| (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(is_allowed);
    name == "." || (relative.len() <= LONGEST_NAME && relative.split('.').all(is_label))
}

fn record(query: &str) -> Result<DnsRecord, InvalidTargetPart> {
    let Some(typed) = query.strip_prefix("type=") else {
        let message = format!("'?{query}' is no part of a DNS question");
        return Err(InvalidTargetPart::new(message, EXAMPLE));
    };
    let mut records = RECORDS.iter();
    let found = records.find(|record| record.name.eq_ignore_ascii_case(typed));
    found.copied().ok_or_else(|| {
        let names = RECORDS.map(|record| record.name).join(", ");
        let message = format!("DNS record type '{typed}' is not known");
        InvalidTargetPart::new(message, format!("use one of {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn a_dns_question_is_parsed_with_its_type_and_defaults_to_a() {
        for (path, question) in [
            ("/example.org", "example.org A"),
            ("/example.org?type=aaaa", "example.org AAAA"),
            (
                "/_sip._udp.example.org.?type=SRV",
                "_sip._udp.example.org. SRV",
            ),
            ("/.?type=NS", ". NS"),
            ("/4.3.2.1.in-addr.arpa?type=PTR", "4.3.2.1.in-addr.arpa PTR"),
        ] {
            let read = DnsQuestion::parse(path).expect(path);
            assert_eq!(read.to_string(), question);
        }
    }

    #[test]
    fn an_invalid_dns_question_is_reported_with_a_remedy() {
        let label = format!("dns://h/{}", "a".repeat(64));
        let name = format!("dns://h/{}", "a.".repeat(128));
        for (text, part) in [
            (
                "dns://h",
                "it has no name to ask for; write for example /example.org",
            ),
            ("dns-tcp://h/?type=A", "it has no name to ask for"),
            ("dns://h/a..b", "'a..b' is no DNS name"),
            ("dns://h/a/b", "'a/b' is no DNS name"),
            (&label, "is no DNS name"),
            (&name, "is no DNS name"),
            (
                "dns://h/a?type=B",
                "record type 'B' is not known; use one of A, AAAA, NS",
            ),
            (
                "dns://h/a?class=CH",
                "'?class=CH' is no part of a DNS question",
            ),
            ("dns://me@h/a", "dns has no user names"),
        ] {
            let message = Target::parse(text).expect_err(text).to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_dns_target_displays_its_question() {
        let target = Target::parse("dns://[::1]/example.org?type=MX").expect("a target");
        assert_eq!(target.to_string(), "dns://[::1]:53/example.org?type=MX");
        let shown = Target::parse(&target.to_string());
        assert_eq!(shown, Ok(target));
    }
}
