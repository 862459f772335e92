//! The policy of an agent: the limits for each order of its controller.
//!
//! Owns the policy as a value, its file (`agent.toml`) and the judgement of an order before it begins. The
//! [`Permit`] that it makes limits what leaves a socket. Admission control checks who may order.

mod hours;
mod kind;
mod read;
mod refusal;
mod summary;

use std::ops::RangeInclusive;

use neph_model::{
    AllowedTargets, BitRate, Budgets, ByteSize, CaptureOrder, ExperimentOrder, LoadWork, Measure,
    Order, Permit, ReflectorCaps, ReflectorIdentity, SecretSource, Span, ThroughputTool, Wall,
};

pub use hours::Hours;
pub use kind::Kind;
use kind::is_for_echoes;
pub use refusal::Refusal;

/// The file that an agent's folder has after its enrolment.
pub const POLICY_FILE: &str = "agent.toml";
/// Its content: probes, traces and transfers to other hosts, within limits that do no harm.
pub const DEFAULT_POLICY: &str = include_str!("default.toml");

/// The largest request or reply: it has to fit into the agent's memory.
const LARGEST_MESSAGE: ByteSize = ByteSize(64 << 20);
/// Maximum number of captured bytes of each packet: enough for neph hops, too few to read the payload.
const MAX_CAPTURED_BYTES: u32 = 256;
/// The largest capture: it lies on the agent's disk until the controller has it.
pub const LARGEST_CAPTURE: ByteSize = ByteSize(500_000_000);
/// The longest capture: an hour, and the time to end it.
pub const LONGEST_CAPTURE: Span = Span::from_secs(3_610);

/// The limits of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Controllers that it may dial, as `wss://HOST:PORT`; any if empty.
    pub controllers: Vec<String>,
    /// Permitted kinds of work.
    pub kinds: Vec<Kind>,
    /// Permitted target addresses and ports.
    pub targets: AllowedTargets,
    /// Maximum rates and bytes.
    pub budgets: Budgets,
    /// The longest order.
    pub longest: Span,
    /// Hours in which it may work; any time if empty.
    pub hours: Vec<Hours>,
    /// Ports at which a reflector may listen; none if empty.
    pub listen: Vec<RangeInclusive<u16>>,
    /// Files that an order may name (keys, certificates), and folders of such; none if empty.
    pub files: Vec<String>,
}

impl Policy {
    /// Whether it allows anything at this moment.
    pub fn is_open(&self, now: Wall) -> bool {
        self.hours.is_empty() || self.hours.iter().any(|hours| hours.include(now))
    }

    /// Whether an order may begin now. Addresses are evaluated when names have become some.
    ///
    /// # Errors
    /// It may not, and why.
    pub fn check(&self, order: &Order, permit: &Permit, now: Wall) -> Result<(), Refusal> {
        if !self.is_open(now) {
            return Err(Refusal::Hours);
        }
        let kinds = Kind::of(order);
        if let Some(kind) = kinds.iter().find(|kind| !self.kinds.contains(kind)) {
            return Err(if is_for_echoes(order, *kind) {
                Refusal::Echoes
            } else {
                Refusal::Kind(kind.name())
            });
        }
        let (requested, limit) = (order.longest(now), self.longest);
        if requested > limit {
            return Err(Refusal::Length { requested, limit });
        }
        self.check_traffic(order, permit)?;
        match order {
            Order::Experiments(orders) => {
                orders.iter().try_for_each(|order| self.check_files(order))
            }
            Order::Reflector(order) => self.check_reflector(order),
            Order::Capture(order) => check_capture(order),
            _ => Ok(()),
        }?;
        if needs_lab(order) {
            Err(Refusal::Lab)
        } else {
            Ok(())
        }
    }

    fn check_traffic(&self, order: &Order, permit: &Permit) -> Result<(), Refusal> {
        let traffic = order.traffic();
        if let Some(budget) = self.budgets.messages {
            check_messages(order, traffic.messages, budget)?;
        }
        if let Some(budget) = self.budgets.rate {
            check_rate(order, traffic.bits, budget)?;
        }
        let Some(budget) = self.budgets.day_bytes else {
            return Ok(());
        };
        if is_unmetered(order) {
            return Err(Refusal::Unmetered);
        }
        let left = budget.saturating_sub(permit.spent_today());
        if traffic.bytes > left || left == 0 {
            return Err(Refusal::Bytes {
                requested: traffic.bytes,
                left,
            });
        }
        Ok(())
    }

    fn check_files(&self, order: &ExperimentOrder) -> Result<(), Refusal> {
        let scenario = &order.scenario;
        let largest = scenario.request_size.max(scenario.response_size);
        if largest > LARGEST_MESSAGE {
            let requested = format!("messages of {largest}");
            let limit = LARGEST_MESSAGE.to_string();
            return Err(Refusal::above_limit(requested, limit));
        }
        let parameters = &order.scenario.parameters;
        let files = [parameters.key_file(), parameters.ca_file()];
        files
            .into_iter()
            .flatten()
            .try_for_each(|path| self.check_file(path))
    }

    /// A file that is named, or lies in a folder that is. A path that goes upwards lies nowhere.
    fn check_file(&self, path: &str) -> Result<(), Refusal> {
        let requested = std::path::Path::new(path);
        let has_no_parent_dir = requested
            .components()
            .all(|part| part != std::path::Component::ParentDir);
        if has_no_parent_dir && self.files.iter().any(|file| requested.starts_with(file)) {
            Ok(())
        } else {
            Err(Refusal::File(path.to_owned()))
        }
    }

    fn check_reflector(&self, order: &neph_model::ReflectorOrder) -> Result<(), Refusal> {
        let is_closed = |port: &u16| !self.listen.iter().any(|ports| ports.contains(port));
        if let Some(port) = order.spec.ports().find(is_closed) {
            return Err(Refusal::Port(port));
        }
        if !is_within_default_caps(&order.spec.caps) {
            let requested = "higher caps than the defaults of neph reflect".to_owned();
            let limit = "the default caps".to_owned();
            return Err(Refusal::above_limit(requested, limit));
        }
        if let Some(ReflectorIdentity::Files { certificate, key }) = &order.spec.identity {
            self.check_file(&certificate.to_string_lossy())?;
            self.check_file(&key.to_string_lossy())?;
        }
        match &order.spec.stamp_key {
            Some(SecretSource::File(path)) => self.check_file(path),
            Some(SecretSource::Variable(name)) => Err(Refusal::File(format!("variable {name}"))),
            None => Ok(()),
        }
    }
}

/// `messages` is the number of messages a second that the order sends.
fn check_messages(order: &Order, messages: f64, budget: u32) -> Result<(), Refusal> {
    let key = Budgets::MESSAGES_KEY;
    if messages > f64::from(budget) {
        return Err(Refusal::Rate {
            requested: format!("{messages:.0} messages a second"),
            limit: budget.to_string(),
            key: Some(key),
        });
    }
    match order {
        Order::Experiments(orders) if orders.iter().any(is_transactions) => {
            Err(Refusal::Unlimited {
                requested: "requests as fast as replies come",
                key,
                can_have_rate: false,
            })
        }
        _ => Ok(()),
    }
}

/// `bits` is the number of bits a second that the order sends, as far as it has a limit.
fn check_rate(order: &Order, bits: f64, budget: BitRate) -> Result<(), Refusal> {
    let bits_per_second = budget.bits_per_second();
    let key = Budgets::RATE_KEY;
    let limited = |requested| Refusal::Rate {
        requested,
        limit: budget.to_string(),
        key: Some(key),
    };
    let unlimited = |can_have_rate| Refusal::Unlimited {
        requested: "an unlimited rate",
        key,
        can_have_rate,
    };
    match order {
        #[expect(clippy::cast_precision_loss, reason = "compared with a rate of floats")]
        _ if bits > bits_per_second as f64 => Err(limited(format!("{bits:.0} bit/s"))),
        // It would measure the budget and not the path.
        Order::Throughput(_) => Err(unlimited(false)),
        Order::Experiments(orders) if orders.iter().any(is_without_rate) => Err(unlimited(true)),
        Order::Reflector(_) if is_unmetered(order) => Err(Refusal::Unmetered),
        Order::Load(order) => match rate_of(&order.work) {
            Some(rate) if rate <= bits_per_second => Ok(()),
            Some(rate) => Err(limited(format!("{rate} bit/s"))),
            None => Err(unlimited(true)),
        },
        _ => Ok(()),
    }
}

/// Whether a capture is of headers, and ends by itself.
fn check_capture(order: &CaptureOrder) -> Result<(), Refusal> {
    let refused = |requested, limit| Err(Refusal::above_limit(requested, limit));
    if order.snaplen > MAX_CAPTURED_BYTES {
        let requested = format!("{} bytes of each packet", order.snaplen);
        return refused(requested, MAX_CAPTURED_BYTES.to_string());
    }
    if let Some(length) = order.duration.filter(|length| *length > LONGEST_CAPTURE) {
        return refused(
            format!("a capture of {length}"),
            LONGEST_CAPTURE.to_string(),
        );
    }
    match order.limit.filter(|_| order.duration.is_some()) {
        Some(limit) if limit <= LARGEST_CAPTURE => Ok(()),
        Some(limit) => refused(format!("a capture of {limit}"), LARGEST_CAPTURE.to_string()),
        None => refused(
            "a capture without end".to_owned(),
            LARGEST_CAPTURE.to_string(),
        ),
    }
}

/// Whether no cap of a reflector is above its default: its replies are limited by its caps, and by no budget.
fn is_within_default_caps(caps: &ReflectorCaps) -> bool {
    let default_caps = ReflectorCaps::default();
    caps.reply_size <= default_caps.reply_size
        && caps.request_size <= default_caps.request_size
        && caps.memory <= default_caps.memory
        && caps.messages_per_second <= default_caps.messages_per_second
        && caps.reply_rate <= default_caps.reply_rate
        && caps.connections <= default_caps.connections
        && caps.connections_per_peer <= default_caps.connections_per_peer
        && caps.idle <= default_caps.idle
        && caps.handshake <= default_caps.handshake
        && caps.bulk <= default_caps.bulk
}

/// Rate of a load in both directions, bit/s; `None` is unlimited.
fn rate_of(work: &LoadWork) -> Option<u64> {
    match work {
        LoadWork::Cpu { .. } => Some(0),
        LoadWork::Flow { rate, .. } => rate.map(BitRate::bits_per_second),
        // The reflector sends each packet back.
        LoadWork::Stream { rate, .. } => Some(rate.bits_per_second().saturating_mul(2)),
    }
}

/// Whether it sends transactions: each request as soon as the reply to the previous one arrived.
fn is_transactions(order: &ExperimentOrder) -> bool {
    matches!(order.scenario.measure(), Measure::Transactions(_))
}

/// Whether it is a transfer without a rate limit.
fn is_without_rate(order: &ExperimentOrder) -> bool {
    let measure = order.scenario.measure();
    measure.is_transfer() && measure.target_rate().is_none()
}

fn needs_lab(order: &Order) -> bool {
    let experiment_needs_lab = |experiment: &ExperimentOrder| {
        let scenario = &experiment.scenario;
        experiment.site.is_some() || scenario.season().is_some() || scenario.stress().is_some()
    };
    match order {
        Order::Experiments(orders) => orders.iter().any(experiment_needs_lab),
        _ => order.site().is_some(),
    }
}

/// Whether an order has its traffic sent by a program, or a server of media streams, that no permit limits.
const fn is_unmetered(order: &Order) -> bool {
    match order {
        Order::Throughput(order) => matches!(order.tool, ThroughputTool::Iperf3),
        Order::Reflector(order) => order.spec.media.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
