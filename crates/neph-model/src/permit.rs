//! Where a process may send, and how much: what an agent's policy allows, as its sockets query it.
//!
//! Owns the rule for an address and the budgets. Reads no clock and no file. Which kinds of orders
//! are allowed, and when, is in the agent.

mod bucket;
mod network;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{BitRate, Span};
pub use bucket::TokenBucket;
pub use network::{Network, ParseNetworkError};

/// Where may be sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTargets {
    /// Networks that may be sent to.
    pub allow: Vec<Network>,
    /// Networks that may not, though they lie in one of those.
    pub deny: Vec<Network>,
    /// Ports of TCP and UDP that may be sent to; any if empty.
    pub ports: Vec<RangeInclusive<u16>>,
}

/// How much may be sent. Traffic that a peer is requested to send counts as sent. `None` is no
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Messages a second, of all orders together.
    pub messages: Option<u32>,
    /// The rate of all orders together, without the headers of packets.
    pub rate: Option<BitRate>,
    /// Bytes a day (UTC).
    pub day_bytes: Option<u64>,
}

impl Budgets {
    /// The key of [`Self::messages`] in a policy file.
    pub const MESSAGES_KEY: &str = "budget.messages_per_second";
    /// The key of [`Self::rate`] in a policy file.
    pub const RATE_KEY: &str = "budget.rate";
}

/// Why an address may not be sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// It is in no network that is allowed.
    #[error(
        "{0} is in no network of targets.allow in the agent's policy file; add a network, and restart the agent"
    )]
    NotAllowed(IpAddr),
    /// It is in one that is denied.
    #[error(
        "{address} is in {network}, a network of targets.deny in the agent's policy file; remove the network, and restart the agent"
    )]
    Denied {
        /// The address.
        address: IpAddr,
        /// The network.
        network: Network,
    },
    /// It is an address of many hosts.
    #[error("{0} is an address of many hosts, which no policy allows")]
    GroupAddress(IpAddr),
    /// The port is not allowed.
    #[error(
        "port {0} is not in targets.ports of the agent's policy file; add the port, and restart the agent"
    )]
    Port(u16),
}

impl AllowedTargets {
    /// Whether this address may be sent to. Port 0 is none (ICMP).
    ///
    /// # Errors
    /// It may not, and why.
    pub fn check(&self, to: SocketAddr) -> Result<(), Forbidden> {
        let address = network::plain(to.ip());
        let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if address.is_multicast() || is_broadcast {
            return Err(Forbidden::GroupAddress(to.ip()));
        }
        if let Some(network) = self.deny.iter().find(|network| network.contains(address)) {
            let (address, network) = (to.ip(), *network);
            return Err(Forbidden::Denied { address, network });
        }
        if !self.allow.iter().any(|network| network.contains(address)) {
            return Err(Forbidden::NotAllowed(to.ip()));
        }
        let has_port = to.port() == 0 || self.ports.is_empty();
        if has_port || self.ports.iter().any(|ports| ports.contains(&to.port())) {
            Ok(())
        } else {
            Err(Forbidden::Port(to.port()))
        }
    }
}

#[derive(Debug)]
struct Limits {
    targets: AllowedTargets,
    messages: Option<TokenBucket>,
    bytes: Option<TokenBucket>,
    day_bytes: Option<u64>,
    spent_today: AtomicU64,
    /// Something did not go since today's bytes are spent.
    is_day_over: AtomicBool,
    forbidden: AtomicU64,
}

/// Asked before each message, at the socket. All clones share one budget; the default allows
/// everything.
#[derive(Clone, Debug, Default)]
pub struct Permit(Option<Arc<Limits>>);

impl Permit {
    /// Everything is allowed.
    pub const ANYTHING: Self = Self(None);

    /// The smallest room that is worth a read or a write of a stream, in bytes: a full segment.
    pub const MIN_ROOM: usize = 1448;

    /// Time before the next attempt of a stream when its room is exhausted.
    pub const REST: Span = Span::from_millis(1);

    /// The permit of a policy; `spent_today` is the number of bytes already sent today.
    pub fn new(targets: AllowedTargets, budgets: Budgets, spent_today: u64) -> Self {
        let bytes = budgets.rate.map(|rate| rate.0 / 8);
        Self(Some(Arc::new(Limits {
            targets,
            messages: budgets.messages.map(|rate| TokenBucket::new(rate.into())),
            bytes: bytes.map(TokenBucket::new),
            day_bytes: budgets.day_bytes,
            spent_today: AtomicU64::new(spent_today),
            is_day_over: AtomicBool::new(false),
            forbidden: AtomicU64::new(0),
        })))
    }

    /// Whether it allows everything.
    pub const fn is_unlimited(&self) -> bool {
        self.0.is_none()
    }

    /// The key of the policy file that limits messages or bytes per second; `None` without such a
    /// budget.
    pub fn rate_budget(&self) -> Option<&'static str> {
        let limits = self.0.as_ref()?;
        if limits.messages.is_some() {
            return Some(Budgets::MESSAGES_KEY);
        }
        limits.bytes.as_ref().map(|_| Budgets::RATE_KEY)
    }

    /// Whether this address may be sent to.
    ///
    /// # Errors
    /// It may not, and why. That is counted.
    pub fn check(&self, to: SocketAddr) -> Result<(), Forbidden> {
        let Some(limits) = &self.0 else {
            return Ok(());
        };
        let checked = limits.targets.check(to);
        if checked.is_err() {
            limits.forbidden.fetch_add(1, Ordering::Relaxed);
        }
        checked
    }

    /// How often an address was forbidden.
    pub fn forbidden(&self) -> u64 {
        let limits = self.0.as_ref();
        limits.map_or(0, |limits| limits.forbidden.load(Ordering::Relaxed))
    }

    /// Takes a message with this number of bytes from the budget at `now` (nanoseconds of
    /// `CLOCK_MONOTONIC_RAW`); 0 bytes if [`Self::spend`] takes them when they are sent. Returns
    /// whether it may be sent.
    pub fn message(&self, bytes: u64, now: i64) -> bool {
        let Some(limits) = &self.0 else {
            return true;
        };
        let messages = limits.messages.as_ref();
        if !limits.is_in_day(bytes.max(1))
            || !messages.is_none_or(|token_bucket| token_bucket.take(1, now))
        {
            return false;
        }
        let is_allowed = limits
            .bytes
            .as_ref()
            .is_none_or(|token_bucket| token_bucket.take(bytes, now));
        if is_allowed {
            limits.spent_today.fetch_add(bytes, Ordering::Relaxed);
        } else if let Some(messages) = messages {
            messages.give_back(1);
        }
        is_allowed
    }

    /// The number of bytes of a stream that may be sent at `now`; [`Self::spend`] takes what is
    /// sent.
    pub fn room(&self, now: i64) -> usize {
        let Some(limits) = &self.0 else {
            return usize::MAX;
        };
        let by_rate = limits
            .bytes
            .as_ref()
            .map_or(u64::MAX, |token_bucket| token_bucket.room(now));
        let spent = limits.spent_today.load(Ordering::Relaxed);
        let by_day = limits
            .day_bytes
            .map_or(u64::MAX, |max| max.saturating_sub(spent));
        if by_day < Self::MIN_ROOM as u64 {
            limits.is_day_over.store(true, Ordering::Relaxed);
        }
        usize::try_from(by_rate.min(by_day)).unwrap_or(usize::MAX)
    }

    /// Takes bytes of a stream that were sent at `now`.
    pub fn spend(&self, bytes: usize, now: i64) {
        self.count(bytes, |bucket, bytes| bucket.spend(bytes, now));
    }

    /// Takes bytes of a datagram that a peer sent, at `now`. They count as today's, but nothing here can
    /// slow the peer down: so they delay other traffic by a tenth of a second at most.
    pub fn spend_received(&self, bytes: usize, now: i64) {
        self.count(bytes, |bucket, bytes| bucket.spend_within_burst(bytes, now));
    }

    /// Counts bytes as today's, and takes them from the budget of the rate.
    fn count(&self, bytes: usize, take: impl FnOnce(&TokenBucket, u64)) {
        let Some(limits) = &self.0 else { return };
        let bytes = bytes as u64;
        limits.spent_today.fetch_add(bytes, Ordering::Relaxed);
        if let Some(bucket) = &limits.bytes {
            take(bucket, bytes);
        }
    }

    /// Number of bytes sent today.
    pub fn spent_today(&self) -> u64 {
        let limits = self.0.as_ref();
        limits.map_or(0, |limits| limits.spent_today.load(Ordering::Relaxed))
    }

    /// A day has begun.
    pub fn begin_day(&self) {
        if let Some(limits) = &self.0 {
            limits.spent_today.store(0, Ordering::Relaxed);
            limits.is_day_over.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the bytes of today are spent: something did not go for want of them.
    pub fn is_spent(&self) -> bool {
        let is_over = |limits: &Arc<Limits>| {
            limits.is_day_over.load(Ordering::Relaxed) || !limits.has_in_day(1)
        };
        self.0.as_ref().is_some_and(is_over)
    }
}

impl Limits {
    fn is_in_day(&self, bytes: u64) -> bool {
        let is_in = self.has_in_day(bytes);
        if !is_in {
            self.is_day_over.store(true, Ordering::Relaxed);
        }
        is_in
    }

    fn has_in_day(&self, bytes: u64) -> bool {
        let spent = self.spent_today.load(Ordering::Relaxed);
        self.day_bytes
            .is_none_or(|max| spent.saturating_add(bytes) <= max)
    }
}

#[cfg(test)]
mod tests;
