//! What the analysis of a fleet takes: CPU time of a message, memory of a flow, while it runs and
//! when it is looked at.
//!
//! `cargo bench -p neph-flows --bench digest [-- FLOWS MILLISECONDS SECONDS [FILE]]` digests what so
//! many flows over four paths would tell with a message each so many milliseconds; without numbers
//! 50,000 flows once a second for a minute. CPU time is this thread's own, so that others on the
//! machine do not count. Into FILE goes the whole view as text: two versions of the program have to
//! write the same.

#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]
#![expect(clippy::unwrap_used, reason = "a benchmark may end at the first error")]

use std::collections::BTreeMap;
use std::fs;

use neph_flows::{Digest, Settings};
use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, FleetReply, Instant, PeerReport, ProbeKind,
    ReadBy, Slot, Span,
};
use neph_stats::Random;

const MS: i64 = 1_000_000;
/// Round trips of the paths, milliseconds.
const PATHS: [i64; 4] = [70, 74, 79, 86];
/// A flow is drawn anew this often, nanoseconds; every second one stays where it is.
const RESHUFFLE: i64 = 20_000 * MS;
/// A lost message is known to be after this long, nanoseconds.
const TIMEOUT: i64 = 2_000 * MS;
/// Messages that are pushed between two readings of the clock.
const BATCH: usize = 4096;

fn main() {
    // Cargo passes `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let numbers: Vec<u32> = arguments
        .iter()
        .map_while(|word| word.parse().ok())
        .collect();
    let load = match numbers[..] {
        [flows, millis, seconds] => (flows, millis, seconds),
        _ => (50_000, 1000, 60),
    };
    measure(load, arguments.get(3));
}

fn measure((flows, millis, seconds): (u32, u32, u32), file: Option<&String>) {
    let fleet = Fleet {
        probe: ProbeKind::Udp,
        slots: flows,
        endpoints: vec![FleetEndpoint {
            name: "far".to_owned(),
            address: ([192, 0, 2, 1], 862).into(),
        }],
        interval: Span::from_millis(millis.into()),
        lifetime: None,
        criteria: None,
    };
    let mut stream = Stream::new(&fleet, seconds);
    let mut batch = Vec::with_capacity(BATCH);
    let empty = resident();
    let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
    let (mut messages, mut cpu, mut max_memory) = (0_u64, 0, empty);
    while stream.next(&mut batch) {
        let begun = cpu_time();
        for message in &batch {
            digest.push(message);
        }
        digest.events().for_each(drop);
        cpu += cpu_time() - begun;
        messages += batch.len() as u64;
        max_memory = max_memory.max(resident());
    }
    let begun = cpu_time();
    digest.finish();
    let view = digest.view();
    let looking = cpu_time() - begun;
    let each = |bytes: u64| bytes.saturating_sub(empty) / u64::from(flows);
    println!(
        "{flows} flows every {millis} ms, {messages} messages, {} changes: {:.0} ns a message, \
         {} bytes a flow; the view {:.0} ms, at most {} bytes a flow",
        view.changes.len(),
        cpu as f64 / messages as f64,
        each(max_memory),
        looking as f64 / 1e6,
        each(peak()),
    );
    if let Some(file) = file {
        fs::write(file, format!("{view:#?}\n")).unwrap();
    }
}

/// What the flows' messages say, as a sender tells it: a lost one keeps back its flow's next ones.
struct Stream {
    random: Random,
    flows: Vec<Flow>,
    gap: i64,
    next: i64,
    until: i64,
    /// By the moment at which they are reported.
    reported: BTreeMap<(i64, i64), FleetMessage>,
}

#[derive(Clone, Copy, Default)]
struct Flow {
    path: usize,
    round: i64,
    seq: u32,
    answered: u32,
    reported: i64,
}

impl Stream {
    fn new(fleet: &Fleet, seconds: u32) -> Self {
        let mut random = Random::new(1);
        let mut flow = || Flow {
            path: random.below(PATHS.len()),
            ..Flow::default()
        };
        let flows = (0..fleet.slots).map(|_| flow()).collect();
        Self {
            random,
            flows,
            gap: fleet.interval.nanos() / i64::from(fleet.slots),
            next: 0,
            until: i64::from(seconds) * 1000 * MS,
            reported: BTreeMap::new(),
        }
    }

    /// The next ones that are reported; false at the end.
    fn next(&mut self, batch: &mut Vec<FleetMessage>) -> bool {
        batch.clear();
        while batch.len() < BATCH {
            let sent = self.next * self.gap;
            let due = self.reported.first_key_value().map(|((at, _), _)| *at);
            match due {
                Some(at) if at <= sent || sent >= self.until => {
                    batch.extend(self.reported.pop_first().map(|(_, message)| message));
                }
                None if sent >= self.until => break,
                _ => self.send(sent),
            }
        }
        !batch.is_empty()
    }

    fn send(&mut self, sent: i64) {
        let slot = usize::try_from(self.next).unwrap() % self.flows.len();
        let mut flow = self.flows[slot];
        if sent / RESHUFFLE > flow.round {
            flow.round = sent / RESHUFFLE;
            if slot.is_multiple_of(2) {
                flow.path = self.random.below(PATHS.len());
            }
        }
        let jitter = i64::try_from(self.random.bits() >> 49).unwrap();
        let round_trip = PATHS[flow.path] * MS + jitter * jitter / 16_384;
        let fate = self.random.below(1000);
        let is_lost = fate < 4;
        if !is_lost || fate.is_multiple_of(2) {
            flow.answered += 1;
        }
        let reply = FleetReply {
            round_trip: Span::from_nanos(round_trip + 20_000),
            read_by: ReadBy::Kernel,
            peer_report: Some(PeerReport {
                rx: Instant::from_nanos(77_000 * MS + sent + sent / 50_000 + round_trip / 2),
                residence: Span::from_nanos(20_000),
                count: Some(flow.answered.saturating_sub(1)),
                ttl: Some(60),
            }),
            ttl: Some(60 - u8::try_from(flow.path).unwrap()),
            copies: u8::from(fate == 999),
            answer: None,
        };
        let known = if is_lost { TIMEOUT } else { round_trip };
        flow.reported = flow.reported.max(sent + known);
        let message = FleetMessage {
            slot: Slot(u32::try_from(slot).unwrap()),
            source_port: 1024 + u16::try_from(slot).unwrap(),
            seq: flow.seq,
            sent: Instant::from_nanos(sent),
            late: Span::from_nanos(900),
            outcome: if is_lost {
                FleetOutcome::Lost
            } else {
                FleetOutcome::Reply(reply)
            },
        };
        flow.seq += 1;
        self.reported.insert((flow.reported, self.next), message);
        self.flows[slot] = flow;
        self.next += 1;
    }
}

/// This thread's CPU time so far, nanoseconds.
fn cpu_time() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// The process's resident set, bytes.
fn resident() -> u64 {
    kilobytes("VmRSS:") << 10
}

/// The most that was ever resident, bytes.
fn peak() -> u64 {
    kilobytes("VmHWM:") << 10
}

fn kilobytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}
