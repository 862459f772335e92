//! DNS messages (RFC 1035): a query with one question, and the header and question of a response.
//!
//! Owns the header, the question and the length prefix of DNS over TCP (RFC 7766). Does not read
//! the records of a response: header and question decide whether it answers a query.

use thiserror::Error;

use crate::bytes::Reader;

/// Length of a header, bytes.
pub const HEADER_LEN: usize = 12;
/// Maximum length of a name, with the length byte of each label and the root (RFC 1035, 2.3.4).
const MAX_NAME_LEN: usize = 255;
/// Maximum length of a label.
const MAX_LABEL_LEN: usize = 63;
/// Class IN.
const CLASS_IN: u16 = 1;

/// The response flag.
const QR: u16 = 0x8000;
/// The query type; 0 is a standard query.
const OPCODE: u16 = 0x7800;
/// The response was truncated.
const TC: u16 = 0x0200;
/// Recursion desired.
const RD: u16 = 0x0100;

/// Why bytes are no response to a query with one question, or are no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DnsError {
    /// The message ends within its question.
    #[error("the DNS message is cut off")]
    TooShort,
    /// A query, or a response to another kind of query.
    #[error("the DNS message is no response to a standard query")]
    NotResponse,
    /// The response has not exactly one question.
    #[error("the DNS response has {0} questions")]
    WrongQuestionCount(u16),
    /// A label or name that is too long, or a compression pointer, which a question cannot have.
    #[error("the DNS name is malformed")]
    InvalidName,
}

/// A question in its encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The labels of the name, each after its length.
    name: Vec<u8>,
    /// The record type.
    record: u16,
}

impl Question {
    /// A question for records of type `record` at `name`, in dotted form; `.` is the root.
    ///
    /// # Errors
    /// A label is empty or too long, or the name is too long.
    pub fn new(name: &str, record: u16) -> Result<Self, DnsError> {
        let mut encoded = Vec::with_capacity(name.len() + 2);
        let relative = name.strip_suffix('.').unwrap_or(name);
        for label in relative.split('.').filter(|_| !relative.is_empty()) {
            let len = u8::try_from(label.len()).map_err(|_| DnsError::InvalidName)?;
            if len == 0 || label.len() > MAX_LABEL_LEN {
                return Err(DnsError::InvalidName);
            }
            encoded.push(len);
            encoded.extend_from_slice(label.as_bytes());
        }
        encoded.push(0);
        if name.is_empty() || encoded.len() > MAX_NAME_LEN {
            return Err(DnsError::InvalidName);
        }
        Ok(Self {
            name: encoded,
            record,
        })
    }

    /// Appends the query with this `id` and recursion desired.
    pub fn encode_query(&self, id: u16, out: &mut Vec<u8>) {
        for number in [id, RD, 1, 0, 0, 0] {
            out.extend(number.to_be_bytes());
        }
        out.extend_from_slice(&self.name);
        out.extend(self.record.to_be_bytes());
        out.extend(CLASS_IN.to_be_bytes());
    }

    /// Length of a query, bytes.
    pub fn query_len(&self) -> usize {
        HEADER_LEN + self.name.len() + 4
    }
}

/// The parts of a response that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// The ID of the query.
    pub id: u16,
    /// The response code: 0 to 15.
    pub rcode: u8,
    /// The TC bit: the response was truncated; the query may be repeated over TCP.
    pub is_truncated: bool,
    name: &'a [u8],
    record: u16,
    class: u16,
}

impl Response<'_> {
    /// Whether the response has this question; names are compared ignoring case (RFC 1035, 2.3.3).
    pub fn repeats(&self, question: &Question) -> bool {
        // Label lengths are below every letter: the comparison ignoring case does not change them.
        self.name.eq_ignore_ascii_case(&question.name)
            && self.record == question.record
            && self.class == CLASS_IN
    }
}

/// Reads the header and the question of a response.
///
/// # Errors
/// It is no response to a standard query with one question.
pub fn parse_response(message: &[u8]) -> Result<Response<'_>, DnsError> {
    let mut reader = Reader::new(message);
    let mut number = || reader.u16().ok_or(DnsError::TooShort);
    let (id, flags, questions) = (number()?, number()?, number()?);
    reader.skip(6).ok_or(DnsError::TooShort)?;
    if flags & QR == 0 || flags & OPCODE != 0 {
        return Err(DnsError::NotResponse);
    }
    if questions != 1 {
        return Err(DnsError::WrongQuestionCount(questions));
    }
    let name = take_name(&mut reader)?;
    let mut number = || reader.u16().ok_or(DnsError::TooShort);
    Ok(Response {
        id,
        rcode: rcode(flags),
        is_truncated: flags & TC != 0,
        name,
        record: number()?,
        class: number()?,
    })
}

/// The lower four bits of the flags.
const fn rcode(flags: u16) -> u8 {
    let [_, low] = flags.to_be_bytes();
    low & 0x0f
}

/// The bytes of a name without compression pointers.
fn take_name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DnsError> {
    let remaining = reader.remaining();
    loop {
        let len = usize::from(reader.u8().ok_or(DnsError::TooShort)?);
        if len > MAX_LABEL_LEN {
            return Err(DnsError::InvalidName);
        }
        reader.skip(len).ok_or(DnsError::TooShort)?;
        let taken = remaining.len() - reader.remaining().len();
        if taken > MAX_NAME_LEN {
            return Err(DnsError::InvalidName);
        }
        if len == 0 {
            return Ok(&remaining[..taken]);
        }
    }
}

/// Appends the query with this `id` after its length, as over TCP (RFC 7766, section 8).
pub fn encode_framed_query(question: &Question, id: u16, out: &mut Vec<u8>) {
    // A name has at most 255 bytes: the length fits two bytes.
    let [.., high, low] = question.query_len().to_be_bytes();
    out.extend([high, low]);
    question.encode_query(id, out);
}

/// The first message of a TCP stream and the bytes that it used; `None` while it is incomplete.
pub fn next_message(stream: &[u8]) -> Option<(usize, &[u8])> {
    let mut reader = Reader::new(stream);
    let len = usize::from(reader.u16()?);
    let message = reader.slice(len)?;
    Some((2 + len, message))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question(name: &str) -> Question {
        Question::new(name, 1).expect(name)
    }

    /// A response to the query with this `id`: its bytes with these flags.
    fn answered(question: &Question, id: u16, flags: u16) -> Vec<u8> {
        let mut message = Vec::new();
        question.encode_query(id, &mut message);
        message[2..4].copy_from_slice(&(QR | flags).to_be_bytes());
        message
    }

    /// The names of RFC 1035, section 4.1.4: F.ISI.ARPA and the root.
    #[test]
    fn a_question_is_encoded_as_the_rfc_shows() {
        let mut query = Vec::new();
        question("F.ISI.ARPA").encode_query(0x1234, &mut query);
        assert_eq!(
            query,
            b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x01F\x03ISI\x04ARPA\0\0\x01\0\x01"
        );
        assert_eq!(query.len(), question("F.ISI.ARPA.").query_len());
        assert_eq!(question(".").name, [0]);
        for invalid in ["", "a..b", ".a", "..", &"a".repeat(64), &"a.".repeat(128)] {
            assert_eq!(
                Question::new(invalid, 1),
                Err(DnsError::InvalidName),
                "{invalid}"
            );
        }
    }

    #[test]
    fn a_response_repeats_its_question_in_any_case() {
        let message = b"\xbe\xef\x81\x83\0\x01\0\0\0\x01\0\0\x07eXample\x03ORG\0\0\x01\0\x01";
        let response = parse_response(message).expect("a response");
        assert_eq!((response.id, response.rcode), (0xbeef, 3));
        assert!(!response.is_truncated);
        assert!(response.repeats(&question("example.org")));
        assert!(!response.repeats(&question("example.com")));
        assert!(!response.repeats(&Question::new("example.org", 28).expect("a name")));
        let mut chaos = message.to_vec();
        *chaos.last_mut().expect("it has a class") = 3;
        let response = parse_response(&chaos).expect("a response");
        assert!(!response.repeats(&question("example.org")));
    }

    #[test]
    fn an_invalid_dns_response_is_refused() {
        let requested = question("example.org");
        let full = answered(&requested, 7, TC);
        assert!(parse_response(&full).is_ok_and(|response| response.is_truncated));
        for cut in 0..full.len() {
            assert_eq!(
                parse_response(&full[..cut]),
                Err(DnsError::TooShort),
                "{cut}"
            );
        }
        let mut query = Vec::new();
        requested.encode_query(7, &mut query);
        assert_eq!(parse_response(&query), Err(DnsError::NotResponse));
        let update = answered(&requested, 7, 5 << 11);
        assert_eq!(parse_response(&update), Err(DnsError::NotResponse));
        let mut many = full.clone();
        many[4..6].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(
            parse_response(&many),
            Err(DnsError::WrongQuestionCount(0xffff))
        );
        let mut pointer = full;
        pointer[HEADER_LEN..HEADER_LEN + 2].copy_from_slice(&[0xc0, 12]);
        assert_eq!(
            parse_response(&pointer),
            Err(DnsError::InvalidName),
            "a loop"
        );
    }

    proptest! {
        #[test]
        fn a_response_that_repeats_a_query_answers_it(
            name in "([a-z0-9_-]{1,20}\\.){0,5}[a-z]{1,10}\\.?",
            (record, id, rcode) in (any::<u16>(), any::<u16>(), 0_u8..16),
            cut in 0_usize..40,
        ) {
            let requested = Question::new(&name, record).expect("a name");
            let message = answered(&requested, id, u16::from(rcode));
            let response = parse_response(&message).expect("a response");
            prop_assert!(response.repeats(&requested));
            prop_assert_eq!((response.id, response.rcode), (id, rcode));
            let mut stream = Vec::new();
            encode_framed_query(&requested, id, &mut stream);
            let part = &stream[..cut.min(stream.len() - 1)];
            prop_assert_eq!(next_message(part), None);
            let (taken, framed) = next_message(&stream).expect("it is whole");
            prop_assert_eq!((taken, framed.len()), (stream.len(), requested.query_len()));
        }

        #[test]
        fn arbitrary_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(response) = parse_response(&bytes) {
                prop_assert!(response.rcode < 16 && response.name.len() <= MAX_NAME_LEN);
            }
            if let Some((taken, message)) = next_message(&bytes) {
                prop_assert_eq!(taken, message.len() + 2);
            }
        }
    }
}
