//! Third-party servers: their replies to received bytes.

use neph_model::{ProbeKind, Target};
use neph_wire::dns::next_message;
use neph_wire::http::parse_request;

use super::{Event, Packet, World};

/// Bytes that a server writes at once.
pub(super) struct ServerBytes {
    pub(super) bytes: Vec<u8>,
    /// Whether it is the reply to a request, not part of an opening.
    pub(super) is_reply: bool,
}

/// Takes complete requests from a connection's bytes, and replies to them.
pub(super) type Serve = fn(&mut Vec<u8>) -> Vec<ServerBytes>;

/// A target of each kind that third-party servers answer, and its server.
const SERVERS: &[(&str, Serve)] = &[
    ("http://h:9/", http),
    ("dns-tcp://h:9/example.org", dns),
    ("mqtt://h:9", mqtt),
];

/// The targets at third-party servers.
pub(in crate::sim) fn targets() -> impl Iterator<Item = &'static str> {
    SERVERS.iter().map(|(url, _)| *url)
}

/// The server of a kind.
pub(super) fn server(kind: ProbeKind) -> Option<Serve> {
    let of_kind = |url| Target::parse(url).is_ok_and(|target| target.kind() == kind);
    let server = SERVERS.iter().find(|(url, _)| of_kind(url));
    server.map(|(_, serve)| *serve)
}

fn http(inbox: &mut Vec<u8>) -> Vec<ServerBytes> {
    let mut written = Vec::new();
    while let Ok(Some(head)) = parse_request(inbox) {
        let taken = head.len();
        inbox.drain(..taken);
        written.push(ServerBytes {
            bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            is_reply: true,
        });
    }
    written
}

/// Sends each query back as its response.
fn dns(inbox: &mut Vec<u8>) -> Vec<ServerBytes> {
    let mut written = Vec::new();
    while let Some((taken, _)) = next_message(inbox) {
        let mut bytes: Vec<u8> = inbox.drain(..taken).collect();
        bytes[4] |= 0x80;
        written.push(ServerBytes {
            bytes,
            is_reply: true,
        });
    }
    written
}

/// Accepts every client, and answers every ping.
fn mqtt(inbox: &mut Vec<u8>) -> Vec<ServerBytes> {
    let mut written = Vec::new();
    while let [kind, len, ..] = **inbox
        && inbox.len() >= 2 + usize::from(len)
    {
        inbox.drain(..2 + usize::from(len));
        written.push(ServerBytes {
            bytes: match kind {
                0x10 => vec![0x20, 2, 0, 0],
                _ => vec![0xd0, 0],
            },
            is_reply: kind == 0xc0,
        });
    }
    written
}

impl World {
    /// Passes received bytes to the server, and sends its output.
    pub(super) fn serve(&mut self, number: u32, packet: &Packet, serve: Serve) {
        let kernel = self.random.up_to(self.net.kernel);
        let link = self.links.get_mut(&number).expect("looked for");
        link.inbox.extend_from_slice(&packet.bytes);
        link.busy = (packet.arrives + kernel).max(link.busy) + self.net.think;
        let from = link.busy;
        for written in serve(&mut link.inbox) {
            self.send_back(number, from, written);
        }
    }

    fn send_back(&mut self, number: u32, from: i64, written: ServerBytes) {
        let mut rest = written.bytes;
        while !rest.is_empty() {
            let mut count = rest.len();
            if self.random.chance(self.net.partial) {
                let max = i64::try_from(count).expect("small") - 1;
                count = usize::try_from(self.random.up_to(max)).expect("not negative") + 1;
            }
            let bytes: Vec<u8> = rest.drain(..count).collect();
            let nic_tx = from + self.random.up_to(self.net.kernel);
            let delay = self.net.reverse_delay + self.random.up_to(self.net.jitter) + self.stall();
            let link = self.links.get_mut(&number).expect("looked for");
            link.reverse_delay = (nic_tx + delay).max(link.reverse_delay + 1);
            let arrives = link.reverse_delay;
            let ends = (written.is_reply && rest.is_empty()).then(|| {
                link.answered += 1;
                link.answered - 1
            });
            if let Some(exchange) = ends {
                let truth = self.outcomes.truth.get_mut(&number).expect("dialled");
                truth[exchange].nic_rx = arrives;
            }
            let packet = Packet {
                bytes,
                arrives,
                ends,
            };
            self.schedule_event(arrives, number, Event::ToUs(packet));
        }
    }
}

#[test]
fn each_third_party_connection_protocol_has_a_simulated_server() {
    // For a kind with timestamps in its payload, the server is the reflector.
    let served =
        |kind: &ProbeKind| kind.uses_connection() && !kind.properties().has_marks_in_payload;
    let kinds = ProbeKind::ALL.iter().copied().filter(served);
    let missing: Vec<_> = kinds.filter(|kind| server(*kind).is_none()).collect();
    assert_eq!(missing, [], "give them a row of SERVERS");
}
