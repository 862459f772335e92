//! A network for tests: paths of known latency, reshuffles at known times, and what a fleet's
//! messages over it would be. Seeded; nothing waits.

use std::net::SocketAddr;

use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, FleetReply, Instant, Local, PeerReport,
    ProbeKind, ReadBy, Slot, Span,
};
use neph_stats::Random;

use crate::digest::Digest;
use crate::settings::Settings;

const MS: i64 = 1_000_000;

/// What the network does.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) slots: u32,
    pub(crate) interval: Span,
    pub(crate) seconds: i64,
    /// Round trips of the paths, microseconds, half of it each way.
    pub(crate) paths: Vec<i64>,
    /// Chances of the paths; as many.
    pub(crate) weights: Vec<f64>,
    /// Every so many seconds each flow gets a random path; 0: never.
    pub(crate) reshuffle_seconds: i64,
    /// The share of flows that gets a random path then.
    pub(crate) reshuffled_share: f64,
    /// Uniform jitter of a round trip, microseconds, above the base.
    pub(crate) jitter: f64,
    /// A slot of which nothing comes back from this second on.
    pub(crate) dead_slot: Option<(u32, i64)>,
    /// A path that loses each message whose number, and its slot's, make a multiple of this.
    pub(crate) lossy_path: Option<(usize, u32)>,
    /// The second in which the reflector restarts, and its counter begins at zero.
    pub(crate) restart_second: Option<i64>,
    /// All round trips grow by so many nanoseconds in a second.
    pub(crate) drift: i64,
    pub(crate) seed: u64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            slots: 64,
            interval: Span::from_millis(200),
            seconds: 120,
            paths: vec![70_000, 74_000, 79_000, 86_000],
            weights: vec![0.25; 4],
            reshuffle_seconds: 20,
            reshuffled_share: 1.0,
            jitter: 30.0,
            dead_slot: None,
            lossy_path: None,
            restart_second: None,
            drift: 0,
            seed: 1,
        }
    }
}

/// What really happened: by slot, moments and paths.
pub(crate) type Truth = Vec<Vec<(i64, usize)>>;

impl World {
    pub(crate) fn fleet(&self) -> Fleet {
        Fleet {
            probe: ProbeKind::Udp,
            slots: self.slots,
            endpoints: vec![FleetEndpoint {
                name: "peer".to_owned(),
                address: SocketAddr::from(([192, 0, 2, 1], 862)),
            }],
            interval: self.interval,
            lifetime: None,
            criteria: None,
        }
    }

    /// Paths of all flows over time.
    pub(crate) fn truth(&self) -> Truth {
        let mut random = Random::new(self.seed);
        let mut slots: Truth = Vec::new();
        for _ in 0..self.slots {
            let mut steps = vec![(0, self.draw_path(&mut random))];
            let reshuffle_interval = if self.reshuffle_seconds == 0 {
                self.seconds
            } else {
                self.reshuffle_seconds
            };
            for round in 1..self.seconds / reshuffle_interval.max(1) {
                let path = self.draw_path(&mut random);
                let has_moved = uniform(&mut random) < self.reshuffled_share;
                if has_moved && steps.last().is_some_and(|(_, last)| *last != path) {
                    steps.push((round * reshuffle_interval * 1000 * MS, path));
                }
            }
            slots.push(steps);
        }
        slots
    }

    fn draw_path(&self, random: &mut Random) -> usize {
        let mut remaining_weight = uniform(random) * self.weights.iter().sum::<f64>();
        let index = self.weights.iter().position(|weight| {
            remaining_weight -= weight;
            remaining_weight < 0.0
        });
        index.unwrap_or(self.weights.len() - 1)
    }

    /// All messages, in the order of sending.
    pub(crate) fn messages(&self, truth: &Truth, mut receive: impl FnMut(&FleetMessage)) {
        let mut random = Random::new(self.seed + 1_000_000);
        let interval = self.interval.nanos();
        let rounds = self.seconds * 1000 * MS / interval;
        for seq in 0..rounds {
            for slot in 0..self.slots {
                let sent = seq * interval + interval * i64::from(slot) / i64::from(self.slots);
                let steps = &truth[slot as usize];
                let step_count = steps.partition_point(|(at, _)| *at <= sent);
                let path = steps[step_count - 1].1;
                let base = self.paths[path] * 1000 + self.drift * (sent / (1000 * MS));
                #[expect(clippy::cast_possible_truncation, reason = "a test's jitter")]
                let jitter = (uniform(&mut random) * self.jitter * 1000.0) as i64;
                let mut message = message(slot, u32::try_from(seq).unwrap(), sent, base + jitter);
                self.apply_faults(&mut message);
                if self.is_lost(path, &message) {
                    message.outcome = FleetOutcome::Lost;
                }
                receive(&message);
            }
        }
    }

    fn is_lost(&self, path: usize, message: &FleetMessage) -> bool {
        let position = message.seq.wrapping_mul(7) + message.slot.0;
        self.lossy_path
            .is_some_and(|(lossy, every)| path == lossy && position.is_multiple_of(every))
    }

    /// What happens to a message besides.
    fn apply_faults(&self, message: &mut FleetMessage) {
        let seconds = |seconds: i64| Instant::<Local>::from_nanos(seconds * 1000 * MS);
        let is_dead =
            |(slot, from): (u32, i64)| message.slot.0 == slot && message.sent >= seconds(from);
        if self.dead_slot.is_some_and(is_dead) {
            message.outcome = FleetOutcome::Lost;
        }
        let restart_time = self
            .restart_second
            .map(seconds)
            .filter(|restart| message.sent >= *restart);
        if let (Some(restart), FleetOutcome::Reply(reply)) = (restart_time, &mut message.outcome)
            && let Some(peer) = &mut reply.peer_report
        {
            let messages_before_restart =
                (restart - Instant::from_nanos(0)).nanos() / self.interval.nanos();
            peer.count = peer
                .count
                .map(|count| count - u32::try_from(messages_before_restart).unwrap());
        }
    }

    /// The digest of everything.
    pub(crate) fn digest(&self) -> (Digest, Truth) {
        let truth = self.truth();
        let mut digest = Digest::new(&self.fleet(), Settings::default()).unwrap();
        self.messages(&truth, |message| digest.push(message));
        digest.finish();
        (digest, truth)
    }
}

/// Port of a slot.
pub(crate) fn port(slot: u32) -> u16 {
    1024 + u16::try_from(slot % 64_000).unwrap()
}

/// A reply after `round_trip` nanoseconds, half of them each way.
pub(crate) fn message(slot: u32, seq: u32, sent: i64, round_trip: i64) -> FleetMessage {
    FleetMessage {
        slot: Slot(slot),
        source_port: port(slot),
        seq,
        sent: Instant::<Local>::from_nanos(sent),
        late: Span::ZERO,
        outcome: FleetOutcome::Reply(FleetReply {
            round_trip: Span::from_nanos(round_trip),
            read_by: ReadBy::Kernel,
            peer_report: Some(PeerReport {
                rx: Instant::from_nanos(77_000 * MS + sent + round_trip / 2),
                residence: Span::ZERO,
                count: Some(seq),
                ttl: Some(60),
            }),
            ttl: Some(60),
            copies: 0,
            answer: None,
        }),
    }
}

fn uniform(random: &mut Random) -> f64 {
    random.unit()
}
