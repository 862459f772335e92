//! Determines the limit of a throughput from the counts of both ends, with its evidence. A pure
//! function.

use neph_model::BitRate;
use neph_text::counted::counted;

use super::rates::ratio;
use super::totals::{TcpTotals, Totals, UdpTotals};
use super::usage::Usage;

/// A requested rate counts as reached from this share on.
const MIN_MET_RATE_SHARE: f64 = 0.99;
/// A saturated thread or core.
const FULL_LOAD_SHARE: f64 = 0.97;
/// A nearly saturated core: further work for it waits.
const BUSY_SHARE: f64 = 0.90;
/// Share of a core from which the test counts as active on it, as a thread or in soft interrupts.
const MIN_WORK_SHARE: f64 = 0.25;
/// A thread that waits less for its socket always has work.
const MAX_IDLE_WAIT_SHARE: f64 = 0.10;
/// A thread that waits more for its socket is mostly idle.
const MIN_WAIT_SHARE: f64 = 0.30;
/// Share of TCP's busy time from which a window or buffer counts as the limit.
const MIN_RWND_LIMITED_SHARE: f64 = 0.30;
/// Loss from which UDP is limited by it.
const MIN_LOSS_SHARE: f64 = 0.005;
/// Drops at the receiver's socket, as a share of the sent datagrams, from which it is the limit.
const MIN_DROP_SHARE: f64 = 0.001;

/// The limiting part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// The sending application or its host.
    Sender,
    /// The receiving application or its host.
    Receiver,
    /// The network between them, with its queues and losses.
    Path,
    /// The receive window: the receiver's buffer is too small for the path's delay.
    ReceiveWindow,
    /// The requested rate.
    TargetRate,
    /// The rate that the policy of an end's agent allows.
    Policy,
    /// No counter shows it.
    Unknown,
}

/// The limit and its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limiting part.
    pub kind: LimitKind,
    /// One sentence: the limit and its evidence.
    pub sentence: String,
}

impl LimitKind {
    /// Start of the sentence.
    const fn sentence(self) -> &'static str {
        match self {
            Self::Sender => "The sender is the limit",
            Self::Receiver => "The receiver is the limit",
            Self::Path => "The path is the limit",
            Self::ReceiveWindow => "The receive window is the limit",
            Self::TargetRate => "The requested rate is the limit",
            Self::Policy => "The policy of an agent is the limit",
            Self::Unknown => "The limit is not known",
        }
    }

    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Path => "path",
            Self::ReceiveWindow => "receive_window",
            Self::TargetRate => "target_rate",
            Self::Policy => "policy",
            Self::Unknown => "unknown",
        }
    }
}

fn limit(kind: LimitKind, evidence: &str) -> Limit {
    Limit {
        kind,
        sentence: format!("{}: {evidence}.", kind.sentence()),
    }
}

/// Determines the limit: the first rule that applies.
pub(super) fn find_limit(totals: &Totals) -> Limit {
    if totals.sent_bytes == 0 {
        return limit(LimitKind::Unknown, "nothing was sent");
    }
    let known_limit = requested_limit(totals)
        .or_else(|| policy_limit(totals))
        .or_else(|| match (&totals.tcp, &totals.udp) {
            (Some(tcp), _) => of_tcp(totals, tcp),
            (None, Some(udp)) => Some(of_udp(totals, udp)),
            (None, None) => None,
        });
    known_limit.unwrap_or_else(|| {
        let (sender, receiver) = (work(&totals.sender), work(&totals.receiver));
        let evidence = format!("the sender's {sender}; the receiver's {receiver}");
        limit(LimitKind::Unknown, &evidence)
    })
}

/// The requested rate was sent and arrived.
fn requested_limit(totals: &Totals) -> Option<Limit> {
    let requested = totals.requested?;
    let is_rate_met = |rate: BitRate| ratio(rate.0, requested.0) >= MIN_MET_RATE_SHARE;
    let is_met = is_rate_met(totals.sent) && is_rate_met(totals.goodput);
    is_met.then(|| {
        let mut evidence = format!("{requested} requested, {} received", totals.goodput);
        if let Some(udp) = totals.udp.filter(|udp| udp.lost > 0) {
            evidence.push_str(&format!(" ({} of datagrams lost)", percent(udp.loss())));
        }
        limit(LimitKind::TargetRate, &evidence)
    })
}

/// An end waited because its agent's policy allows no higher rate.
fn policy_limit(totals: &Totals) -> Option<Limit> {
    let ends = [("sender", &totals.sender), ("receiver", &totals.receiver)];
    let (end, usage) = ends
        .into_iter()
        .max_by(|(_, usage), (_, other)| usage.policy.total_cmp(&other.policy))?;
    (usage.policy >= MIN_WAIT_SHARE).then(|| {
        let evidence = format!(
            "budget.rate in the policy file of the {end} held it back {} of the time",
            percent(usage.policy)
        );
        limit(LimitKind::Policy, &evidence)
    })
}

fn of_udp(totals: &Totals, udp: &UdpTotals) -> Limit {
    let drops = ratio(udp.socket_drops, udp.sent);
    if drops >= MIN_DROP_SHARE && udp.socket_drops >= udp.lost_on_the_path() {
        let evidence = format!(
            "its socket dropped {} of what was sent; its {}",
            percent(drops),
            work(&totals.receiver)
        );
        return limit(LimitKind::Receiver, &evidence);
    }
    if udp.loss() >= MIN_LOSS_SHARE {
        let lost = counted(udp.lost_on_the_path(), "datagram");
        let evidence = format!(
            "{lost} of {} ({}) were lost on the path, none at the receiver's socket",
            udp.sent,
            percent(ratio(udp.lost_on_the_path(), udp.sent))
        );
        return limit(LimitKind::Path, &evidence);
    }
    if udp.refused > udp.sent / 100 {
        let evidence = format!(
            "its kernel refused {} because its buffers were full",
            counted(udp.refused, "datagram")
        );
        return limit(LimitKind::Sender, &evidence);
    }
    if totals.sender.waited >= MIN_WAIT_SHARE {
        let evidence = format!(
            "the sender waited {} of the time for room in its send buffer, and all that it sent arrived",
            percent(totals.sender.waited)
        );
        return limit(LimitKind::Path, &evidence);
    }
    let arrived = if udp.lost == 0 {
        "all of it arrived".to_owned()
    } else {
        format!("only {} of it was lost", percent(udp.loss()))
    };
    let evidence = format!(
        "it sent {} although {}, and {arrived}; its {}",
        totals.sent,
        wanted(totals.requested),
        work(&totals.sender)
    );
    limit(LimitKind::Sender, &evidence)
}

fn of_tcp(totals: &Totals, tcp: &TcpTotals) -> Option<Limit> {
    let (sender, receiver) = (&totals.sender, &totals.receiver);
    if tcp.rwnd_limited >= MIN_RWND_LIMITED_SHARE {
        return Some(by_window(tcp, receiver));
    }
    let never_waits = sender.waited < MAX_IDLE_WAIT_SHARE && sender.paced < MAX_IDLE_WAIT_SHARE;
    if sender.thread >= FULL_LOAD_SHARE || never_waits {
        let evidence = format!(
            "it waited only {} of the time for room in its send buffer; its {}",
            percent(sender.waited),
            work(sender)
        );
        return Some(limit(LimitKind::Sender, &evidence));
    }
    let has_no_time = |end: &Usage| {
        end.thread >= FULL_LOAD_SHARE
            || is_full(end, FULL_LOAD_SHARE) && end.waited < MIN_WAIT_SHARE
    };
    if has_no_time(receiver) {
        return Some(limit(
            LimitKind::Receiver,
            &format!("its {}", work(receiver)),
        ));
    }
    if has_no_time(sender) {
        return Some(limit(LimitKind::Sender, &format!("its {}", work(sender))));
    }
    for (end, kind) in [(receiver, LimitKind::Receiver), (sender, LimitKind::Sender)] {
        if is_full(end, BUSY_SHARE) && is_at_work(end) {
            return Some(limit(kind, &format!("its {}", work(end))));
        }
    }
    if tcp.sndbuf_limited >= 0.5 && tcp.retransmissions == 0 {
        let evidence = format!(
            "its send buffer (net.ipv4.tcp_wmem) was full {} of the time while the congestion window \
             had room",
            percent(tcp.sndbuf_limited)
        );
        return Some(limit(LimitKind::Sender, &evidence));
    }
    (sender.waited >= MIN_WAIT_SHARE).then(|| limit(LimitKind::Path, &path(sender, tcp)))
}

/// The receive window was closed: the receiving application does not read, or the window is small.
fn by_window(tcp: &TcpTotals, receiver: &Usage) -> Limit {
    let share = percent(tcp.rwnd_limited);
    if receiver.waited < MIN_WAIT_SHARE || receiver.thread >= BUSY_SHARE {
        let evidence = format!(
            "its window was closed {share} of the time and it waited for data {}; its {}",
            percent(receiver.waited),
            work(receiver)
        );
        return limit(LimitKind::Receiver, &evidence);
    }
    let evidence = format!(
        "it was full {share} of the time although the receiver took all data at once; raise \
         net.ipv4.tcp_rmem there (round-trip time {})",
        tcp.srtt_mean
    );
    limit(LimitKind::ReceiveWindow, &evidence)
}

fn path(sender: &Usage, tcp: &TcpTotals) -> String {
    let mut evidence = format!(
        "the sender waited {} of the time for acknowledgements, and neither end was short of CPU",
        percent(sender.waited)
    );
    if tcp.retransmissions > 0 {
        evidence.push_str(&format!(
            "; {} retransmitted ({})",
            counted(tcp.retransmissions, "segment"),
            percent(ratio(tcp.retransmissions, tcp.segments))
        ));
    }
    if tcp.srtt_mean.nanos() > tcp.min_rtt.nanos().saturating_mul(3) / 2 {
        evidence.push_str(&format!(
            "; the round-trip time rose from {} to {}",
            tcp.min_rtt, tcp.srtt_mean
        ));
    }
    evidence
}

fn is_full(end: &Usage, min: f64) -> bool {
    end.core_busy.is_some_and(|busy| busy >= min)
}

/// Whether this test causes a large part of its core's load; other programs may use the core too.
fn is_at_work(end: &Usage) -> bool {
    end.thread >= MIN_WORK_SHARE
        || end
            .core_softirq
            .is_some_and(|share| share >= MIN_WORK_SHARE)
}

fn wanted(requested: Option<BitRate>) -> String {
    requested.map_or_else(
        || "the maximum rate was requested".to_owned(),
        |bit_rate| format!("{bit_rate} was requested"),
    )
}

/// Use of an end's thread and core.
fn work(end: &Usage) -> String {
    let mut sentence = format!("thread was busy {} of the time", percent(end.thread));
    if let (Some(core), Some(busy)) = (end.core, end.core_busy) {
        sentence.push_str(&format!(", its core {core} was busy {}", percent(busy)));
    }
    if let Some(steal) = end.core_steal.filter(|steal| *steal >= 0.05) {
        sentence.push_str(&format!(" ({} taken by the hypervisor)", percent(steal)));
    }
    sentence
}

/// A share in percent, with one decimal if it is small.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.1 {
        return "less than 0.1 %".to_owned();
    }
    if percent < 10.0 && percent > 0.0 {
        return format!("{percent:.1} %");
    }
    format!("{percent:.0} %")
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
