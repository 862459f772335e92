//! Whether an order may begin, and whether it may still go on: signature, lease, policy.
//!
//! Owns the leases of the running orders, the usage of today, and the number of refusals. Reads no clock.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use neph_model::{AgentName, ClockReading, Order, OrderId, Permit, Span, Wall};
use neph_sys::clock::{self, RawNanos};
use neph_text::{DiskError, Existing, write_whole};

use super::grant::{Grant, Verifier};
use super::message::AgentClockOffset;
use super::status::AgentStatus;
use crate::policy::{Policy, Refusal};

/// Maximum number of orders that run at the same time: each has separate threads.
pub const MAX_RUNNING: usize = 64;
/// Captures among these, at most: `neph hops` makes no more, and each may fill the disk.
const MAX_CAPTURES: usize = 8;
const DAY_NANOS: i64 = 86_400_000_000_000;
/// Minimum time between two writes of the usage, nanoseconds.
const WRITE_INTERVAL_NS: i64 = 1_000_000_000;
/// A clock was set if it moved by more than this, and than the 500 ppm by which a kernel slews it.
const MAX_SLEW: Span = Span::from_millis(1);
/// A lease longer than the order can take is no reason to let it run on.
const LEASE_MARGIN: Span = Span::from_secs(120);

/// Now, by the clocks of this host.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time of day.
    pub wall: Wall,
    /// The monotonic clock.
    pub raw: RawNanos,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        let now = clock::pair();
        Self {
            wall: Wall::from_unix_nanos(now.wall.0),
            raw: now.raw,
        }
    }
}

/// Admission control of an agent: its policy, its leases and its usage of today.
#[derive(Debug)]
pub struct AdmissionControl {
    name: AgentName,
    verifier: Verifier,
    policy: Policy,
    permit: Permit,
    daily_usage: DailyUsage,
    /// The leases of the running orders.
    leases: BTreeMap<OrderId, Lease>,
    /// How far this host's clock is from the controller's, once that is known, and when that was measured.
    clock_offset: Option<(AgentClockOffset, Moment)>,
    refusals: BTreeMap<String, u64>,
}

/// An order that runs.
#[derive(Clone, Copy, Debug)]
struct Lease {
    /// When it has to be over.
    until: RawNanos,
    is_capture: bool,
}

/// Result of the admission of an order.
#[derive(Debug)]
pub(super) enum Admission {
    /// It may begin, and this is how far the clock was from the controller's then.
    Granted(Order, AgentClockOffset),
    /// It is the controller's and may not begin: its result is the reason.
    Refused(Order, Refusal),
    /// It is not the controller's, or its time is over: as if it had not come.
    Ignored(Refusal),
}

/// Why admission control cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenAdmissionError {
    /// The certificate of the controller's authority.
    #[error("the certificate of the controller's authority: {0}")]
    Authority(String),
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl AdmissionControl {
    /// The policy that it checks orders against.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// For the agent of this name, whose controller's authority has this certificate (PEM). What was
    /// spent today is in `folder`.
    ///
    /// # Errors
    /// The certificate is none, or the disk refuses.
    pub fn open(
        folder: &Path,
        name: AgentName,
        authority_certificate: &str,
        policy: Policy,
        now: Wall,
    ) -> Result<Self, OpenAdmissionError> {
        let verifier =
            Verifier::of(authority_certificate).map_err(OpenAdmissionError::Authority)?;
        let daily_usage = DailyUsage::open(folder, now)?;
        let permit = Permit::new(policy.targets.clone(), policy.budgets, daily_usage.bytes);
        Ok(Self {
            name,
            verifier,
            policy,
            permit,
            daily_usage,
            leases: BTreeMap::new(),
            clock_offset: None,
            refusals: BTreeMap::new(),
        })
    }

    /// The agent's name.
    pub(super) const fn name(&self) -> &AgentName {
        &self.name
    }

    /// The permit that limits the sockets of this agent.
    pub const fn permit(&self) -> &Permit {
        &self.permit
    }

    /// How often something was refused, by the reason.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        let mut counts = self.refusals.clone();
        let forbidden_targets = self.permit.forbidden();
        if forbidden_targets > 0 {
            counts.insert("target".to_owned(), forbidden_targets);
        }
        counts
    }

    /// Counts something that was refused before it was an order.
    pub(super) fn count_refusal(&mut self, reason: &str) {
        *self.refusals.entry(reason.to_owned()).or_default() += 1;
    }

    /// How far this host's clock is from the controller's at `now`. No order begins before that is known.
    pub const fn set_clock_offset(&mut self, clock_offset: AgentClockOffset, now: Moment) {
        self.clock_offset = Some((clock_offset, now));
    }

    /// The same as a reading at `now`.
    pub(super) fn clock_reading(&self, now: Moment) -> Option<ClockReading> {
        let (clock_offset, measured_at) = self.clock_offset?;
        let age = Span::from_nanos(now.raw.0.saturating_sub(measured_at.raw.0));
        let AgentClockOffset { offset, bound } = clock_offset.after(age);
        let wall_elapsed = now
            .wall
            .unix_nanos()
            .saturating_sub(measured_at.wall.unix_nanos());
        let clock_step = Span::from_nanos(wall_elapsed) - age;
        let is_stepped = clock_step.abs() > MAX_SLEW + Span::from_nanos(age.nanos().max(0) / 2_000);
        Some(ClockReading {
            at: now.wall,
            // The next heartbeat would show it seconds later.
            offset: if is_stepped {
                offset + clock_step
            } else {
                offset
            },
            bound,
        })
    }

    /// Its share of the status: usage of today, refusals, and the clock offset.
    pub(super) fn status(&self) -> AgentStatus {
        AgentStatus {
            spent_today: self.permit.spent_today(),
            day_bytes: self.policy.budgets.day_bytes,
            refusals: self.refusals(),
            clock: self
                .clock_offset
                .map(|(clock_offset, measured_at)| (clock_offset, measured_at.raw)),
            ..AgentStatus::default()
        }
    }

    /// Judges an order that came under this id.
    pub(super) fn admit(&mut self, id: OrderId, grant: &Grant, now: Moment) -> Admission {
        let Some(granted) = self.verifier.open(grant).filter(|granted| granted.id == id) else {
            return self.ignore(Refusal::Signature);
        };
        if granted.agent != self.name {
            return self.ignore(Refusal::OtherAgent(granted.agent));
        }
        let Some((clock_offset, _)) = self.clock_offset else {
            // The answer to the first heartbeat takes one round trip, and the controller repeats the order.
            return Admission::Ignored(Refusal::Clock);
        };
        let remaining = remaining_lease(granted.until, clock_offset, now);
        if remaining <= Span::ZERO {
            return self.ignore(Refusal::Expired(-remaining));
        }
        if self.leases.len() >= MAX_RUNNING {
            return self.ignore(Refusal::Busy(MAX_RUNNING));
        }
        let order = granted.order.by_clock_ahead(clock_offset.offset);
        let is_capture = matches!(order, Order::Capture(_));
        let captures = self.leases.values().filter(|lease| lease.is_capture);
        if is_capture && captures.count() >= MAX_CAPTURES {
            // Those of a command that was killed end in a moment, and the order comes a second time.
            return self.ignore(Refusal::Captures(MAX_CAPTURES));
        }
        if let Err(refusal) = self.policy.check(&order, &self.permit, now.wall) {
            self.count_refusal(refusal.code());
            return Admission::Refused(order, refusal);
        }
        let max = order.longest(now.wall).min(self.policy.longest) + LEASE_MARGIN;
        let until = RawNanos(now.raw.0.saturating_add(remaining.min(max).nanos()));
        let lease = Lease { until, is_capture };
        self.leases.insert(id, lease);
        Admission::Granted(order, clock_offset)
    }

    fn ignore(&mut self, refusal: Refusal) -> Admission {
        self.count_refusal(refusal.code());
        Admission::Ignored(refusal)
    }

    /// An order is over.
    pub(super) fn remove_lease(&mut self, id: OrderId) {
        self.leases.remove(&id);
    }

    /// Orders that may not go on, each with the reason.
    pub(super) fn remove_lapsed(&mut self, now: Moment) -> Vec<(OrderId, &'static str)> {
        if self.leases.is_empty() {
            return Vec::new();
        }
        let common_reason = if !self.policy.is_open(now.wall) {
            Some("the hours of its policy are over")
        } else if self.permit.is_spent() {
            Some("the bytes of its policy for today are spent")
        } else {
            None
        };
        let lapsed = self.leases.iter().filter_map(|(id, lease)| {
            let expired = (lease.until.0 <= now.raw.0).then_some("its lease is over");
            Some((*id, common_reason.or(expired)?))
        });
        let lapsed: Vec<_> = lapsed.collect();
        for (id, _) in &lapsed {
            self.leases.remove(id);
            self.count_refusal("lapsed");
        }
        lapsed
    }

    /// The controller has revoked this agent: nothing may go on.
    pub(super) fn revoke_leases(&mut self) -> Vec<OrderId> {
        let order_ids: Vec<_> = std::mem::take(&mut self.leases).into_keys().collect();
        for _ in &order_ids {
            self.count_refusal("lapsed");
        }
        order_ids
    }

    /// Saves the usage of today, and begins a new day.
    pub(super) fn save(&mut self, now: Moment) -> Result<(), DiskError> {
        let day = day_of(now.wall);
        if day != self.daily_usage.day {
            self.permit.begin_day();
            self.daily_usage.day = day;
        }
        self.daily_usage.save(self.permit.spent_today(), now.raw)
    }
}

/// How much of a lease is left: it ends by the controller's clock.
fn remaining_lease(until: Wall, clock_offset: AgentClockOffset, now: Moment) -> Span {
    let local_until = until
        .unix_nanos()
        .saturating_add(clock_offset.offset.nanos());
    Span::from_nanos(local_until.saturating_sub(now.wall.unix_nanos()))
}

fn day_of(now: Wall) -> i64 {
    now.unix_nanos().div_euclid(DAY_NANOS)
}

/// Usage of today, on the disk: a restart does not refill a budget.
#[derive(Debug)]
struct DailyUsage {
    path: PathBuf,
    /// Days since 1970-01-01 UTC.
    day: i64,
    bytes: u64,
    last_written: Option<RawNanos>,
}

impl DailyUsage {
    fn open(folder: &Path, now: Wall) -> Result<Self, DiskError> {
        let path = folder.join("spent");
        let today = day_of(now);
        let bytes = match fs::read_to_string(&path) {
            Ok(text) => match parse_usage(&text) {
                Some((day, bytes)) if day == today => bytes,
                Some(_) => 0,
                // An unreadable file allows nothing until the day is over.
                None => u64::MAX,
            },
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(DiskError::of("read", &path)(error)),
        };
        Ok(Self {
            path,
            day: today,
            bytes,
            last_written: None,
        })
    }

    fn save(&mut self, bytes: u64, now: RawNanos) -> Result<(), DiskError> {
        let is_due = self
            .last_written
            .is_none_or(|last| now.0 - last.0 >= WRITE_INTERVAL_NS);
        if bytes == self.bytes || !is_due {
            return Ok(());
        }
        (self.bytes, self.last_written) = (bytes, Some(now));
        let text = format!("{} {bytes}\n", self.day);
        let result = write_whole(&self.path, text.as_bytes(), Existing::Replace);
        result.map_err(DiskError::of("write", &self.path))
    }
}

fn parse_usage(text: &str) -> Option<(i64, u64)> {
    let (day, bytes) = text.trim_end().split_once(' ')?;
    Some((day.parse().ok()?, bytes.parse().ok()?))
}
