//! DNS over TCP (RFC 7766), client side, and the part that queries over UDP share with it.
//!
//! A response answers the query with the same number and question; others are ignored. With any response code
//! it is a reply.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use neph_model::{Answer, DnsQuestion, DnsReply, Outcome};
use neph_wire::dns::{Question, encode_framed_query, next_message, parse_response};

use super::{Arrival, Codec, Opening, Replied, Step};
use crate::spec::FlowSpec;
use crate::unguessable::unguessable_bytes;

/// The queries of one socket: their question, and their numbers.
#[derive(Debug)]
pub(crate) struct Queries {
    question: Question,
    /// The message of each number, and the numbers from the oldest query on.
    messages: HashMap<u16, u64>,
    numbers: VecDeque<u16>,
}

impl Queries {
    /// Queries that are remembered, so that half of the 65,536 numbers stay free for the next one. A response
    /// to an older query is ignored.
    const MAXIMUM: usize = 1 << 15;

    pub(crate) fn new(spec: &FlowSpec) -> Self {
        let requested = DnsQuestion::parse(spec.target.path());
        let requested = requested.expect("it was checked when the target was read");
        Self {
            question: Question::new(&requested.name, requested.record.number)
                .expect("the name was checked when the target was read"),
            messages: HashMap::new(),
            numbers: VecDeque::new(),
        }
    }

    /// A number for message `seq` that no remembered query has and that cannot be guessed (RFC 5452, section
    /// 4.3).
    fn number(&mut self, seq: u64) -> u16 {
        if self.numbers.len() == Self::MAXIMUM
            && let Some(oldest) = self.numbers.pop_front()
        {
            self.messages.remove(&oldest);
        }
        loop {
            let number = u16::from_le_bytes(unguessable_bytes());
            if let Entry::Vacant(free) = self.messages.entry(number) {
                free.insert(seq);
                self.numbers.push_back(number);
                return number;
            }
        }
    }

    /// Appends the query of message `seq`.
    pub(crate) fn request(&mut self, seq: u64, out: &mut Vec<u8>) {
        let number = self.number(seq);
        self.question.encode_query(number, out);
    }

    /// The message that a response answers, and its answer.
    pub(crate) fn answer(&self, message: &[u8]) -> Option<(u64, Answer)> {
        let response = parse_response(message).ok()?;
        let seq = *self.messages.get(&response.id)?;
        let reply = DnsReply {
            rcode: response.rcode,
            is_truncated: response.is_truncated,
        };
        response
            .repeats(&self.question)
            .then_some((seq, Answer::Dns(reply)))
    }

    /// The message of a query that begins with these bytes.
    pub(crate) fn quoted(&self, query: &[u8]) -> Option<u64> {
        let number = query.first_chunk().copied().map(u16::from_be_bytes)?;
        self.messages.get(&number).copied()
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct DnsTcp(Queries);

impl DnsTcp {
    pub(crate) fn new(spec: &FlowSpec) -> Self {
        Self(Queries::new(spec))
    }
}

impl Codec for DnsTcp {
    fn open(&mut self, _out: &mut Vec<u8>) -> Opening {
        Opening::Ready
    }

    fn request(&mut self, seq: u64, out: &mut Vec<u8>) {
        let number = self.0.number(seq);
        encode_framed_query(&self.0.question, number, out);
    }

    fn step(&mut self, input: &mut [u8]) -> Result<Step, String> {
        let Some((taken, message)) = next_message(input) else {
            return Ok(Step::More);
        };
        let arrival = match self.0.answer(message) {
            None => Arrival::Nothing,
            Some((seq, answer)) => Arrival::Reply(Replied {
                seq: Some(seq),
                marks: None,
                answer: Some(answer),
                outcome: Outcome::Reply,
            }),
        };
        Ok(Step::Consumed(taken, arrival))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use neph_model::Target;

    use super::*;

    fn queries() -> Queries {
        let target = Target::parse("dns-tcp://h/example.org?type=A").expect("a target");
        Queries::new(&FlowSpec::plain(target, ([192, 0, 2, 1], 53).into()))
    }

    /// The query as its response.
    fn reply(query: &[u8], flags: [u8; 2]) -> Vec<u8> {
        let mut reply = query.to_vec();
        reply[2..4].copy_from_slice(&flags);
        reply
    }

    #[test]
    fn a_response_matches_the_query_with_its_id_and_question() {
        let mut queries = queries();
        let mut sent = Vec::new();
        for seq in 0..3 {
            let mut query = Vec::new();
            queries.request(seq, &mut query);
            sent.push(query);
        }
        let nxdomain = Answer::from_name("dns-nxdomain").expect("a name");
        let answer = reply(&sent[1], [0x81, 0x83]);
        assert_eq!(queries.answer(&answer), Some((1, nxdomain)));
        assert_eq!(queries.answer(&answer), Some((1, nxdomain)), "a duplicate");
        let truncated = queries.answer(&reply(&sent[2], [0x83, 0x80]));
        assert_eq!(
            truncated.map(|(seq, answer)| (seq, answer.name())),
            Some((2, "dns-noerror-tc".into()))
        );
        assert_eq!(queries.answer(&sent[1]), None, "a query is no response");
        let mut other = answer.clone();
        other[13] = b'x';
        assert_eq!(queries.answer(&other), None, "another question");
        let mut foreign = answer;
        foreign[0] ^= 0xff;
        let is_known = queries
            .messages
            .contains_key(&u16::from_be_bytes([foreign[0], foreign[1]]));
        assert_eq!(
            queries.answer(&foreign).is_some(),
            is_known,
            "another number"
        );
        assert_eq!(queries.quoted(&sent[2][..8]), Some(2));
    }

    #[test]
    fn pending_query_ids_are_distinct_and_not_sequential() {
        let mut queries = queries();
        let maximum = u64::try_from(Queries::MAXIMUM).expect("it fits");
        let first = (0..maximum).map(|seq| queries.number(seq));
        let numbers: Vec<u16> = first.collect();
        let distinct: BTreeSet<&u16> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len());
        let successors = numbers
            .windows(2)
            .filter(|pair| pair[1] == pair[0].wrapping_add(1));
        assert!(successors.count() < 20, "one in 65,536 by chance");
        queries.number(maximum);
        assert_eq!(queries.messages.len(), Queries::MAXIMUM);
        assert_ne!(
            queries.messages.get(&numbers[0]),
            Some(&0),
            "the oldest is forgotten"
        );
    }
}
