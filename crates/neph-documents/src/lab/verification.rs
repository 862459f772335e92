//! Configured and measured properties of links and guests.

use neph_lab::{LinkCheck, QuantityCheck, ReservedProtocol, UnmeasuredPath};
use neph_model::{BitRate, ByteSize, Span};

use crate::cell::{Cell, OrDash};

crate::rows! {
    /// A direction of a link, one of its paths, or a guest. null: not configured, or not measured.
    pub struct VerifiedRow {
        /// Name of the link; `tap` for a guest.
        link: String => left "LINK",
        /// Site that sends.
        from: String => left "FROM",
        /// Site that receives.
        to: String => left "TO",
        /// Name of the path; null if the link has one path.
        path: Option<String> => left "PATH",
        /// Configured median delay.
        delay_configured_ns: Option<Span> => right "DELAY",
        /// Measured median delay.
        delay_median_ns: Option<Span> => right "MEASURED",
        /// Configured 99th percentile of the delay.
        delay_p99_configured_ns: Option<Span> => right "P99",
        /// Measured 99th percentile of the delay.
        delay_p99_ns: Option<Span> => right "MEASURED",
        /// Kolmogorov-Smirnov distance between the configured and the measured distribution of
        /// delays, 0 to 1.
        jitter_distance: Option<f64> => right "JITTER K-S" by |row| distance_text(row.jitter_distance),
        /// Largest distance that chance explains, 0 to 1.
        jitter_allowed: Option<f64> => right "K-S LIMIT" by |row| distance_text(row.jitter_allowed),
        /// Configured loss, 0 to 1.
        loss_configured: Option<f64> => right "LOSS" by |row| {
            row.loss_configured.or_dash(|loss| format!("{:.2} %", loss * 100.0))
        },
        /// Measured loss, 0 to 1.
        loss_measured: Option<f64> => right "MEASURED" by |row| row.lost_of.cell(),
        /// Configured rate.
        rate_configured_bits_per_s: Option<BitRate> => right "RATE",
        /// Measured rate.
        rate_measured_bits_per_s: Option<BitRate> => right "MEASURED",
        /// Configured queue size.
        queue_configured_bytes: Option<ByteSize> => right "QUEUE",
        /// Measured queue size.
        queue_measured_bytes: Option<ByteSize> => right "MEASURED",
        /// Packets that the link delivered late.
        late_packets: Option<u64> => right "LATE PKTS",
        /// Whether the measurement matches the configuration; null if not measured.
        ok: Option<bool> => left "VERDICT" by |row| row.verdict.clone(),
        ; shown
        /// The verdict in words.
        verdict: String,
        /// Lost packets, and sent packets.
        lost_of: Option<String>,
    }
}

/// The link and direction of a row.
#[derive(Clone, Debug)]
pub struct VerifiedLocation {
    /// The link.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// The path, where the link has several.
    pub path: Option<String>,
}

/// The configured rate of a guest, the measured rate, and the verdict.
#[derive(Clone, Debug)]
pub struct GuestRate {
    /// The configured rate limit.
    pub ceiling: Option<BitRate>,
    /// The measured rate.
    pub measured: Option<BitRate>,
    /// Whether the measurement matches the configuration.
    pub ok: bool,
    /// The verdict in words.
    pub verdict: String,
}

impl VerifiedRow {
    /// A row with only its verdict.
    fn unknown(location: VerifiedLocation, ok: Option<bool>, verdict: String) -> Self {
        Self {
            link: location.link,
            from: location.from,
            to: location.to,
            path: location.path,
            delay_configured_ns: None,
            delay_median_ns: None,
            delay_p99_configured_ns: None,
            delay_p99_ns: None,
            jitter_distance: None,
            jitter_allowed: None,
            loss_configured: None,
            loss_measured: None,
            rate_configured_bits_per_s: None,
            rate_measured_bits_per_s: None,
            queue_configured_bytes: None,
            queue_measured_bytes: None,
            late_packets: None,
            ok,
            verdict,
            lost_of: None,
        }
    }

    /// A guest.
    pub fn guest(location: VerifiedLocation, rate: GuestRate) -> Self {
        Self {
            rate_configured_bits_per_s: rate.ceiling,
            rate_measured_bits_per_s: rate.measured,
            ..Self::unknown(location, Some(rate.ok), rate.verdict)
        }
    }

    /// A configured path that was not measured.
    pub fn unmeasured_path(path: &UnmeasuredPath) -> Self {
        let reason = match path.only {
            Some(ReservedProtocol::Icmp) => "it is for ICMP only".to_owned(),
            Some(ReservedProtocol::Tcp) => "it is for TCP only".to_owned(),
            _ => format!("weight {}", path.weight),
        };
        let location = VerifiedLocation {
            link: path.link.clone(),
            from: path.from.clone(),
            to: path.to.clone(),
            path: Some(path.path.clone()),
        };
        let verdict = format!("not met: no flow of verify's took it ({reason})");
        Self::unknown(location, None, verdict)
    }
}

impl From<&LinkCheck> for VerifiedRow {
    fn from(check: &LinkCheck) -> Self {
        let (delay, loss) = (&check.delay, &check.loss);
        let location = VerifiedLocation {
            link: check.link.clone(),
            from: check.from.clone(),
            to: check.to.clone(),
            path: check.path.clone(),
        };
        Self {
            delay_configured_ns: Some(delay.expected.median),
            delay_median_ns: delay.measured.map(|measured| measured.median),
            delay_p99_configured_ns: Some(delay.expected.p99),
            delay_p99_ns: delay.measured.map(|measured| measured.p99),
            jitter_distance: delay.jitter.map(|jitter| jitter.distance),
            jitter_allowed: delay.jitter.map(|jitter| jitter.allowed),
            loss_configured: Some(loss.expected),
            loss_measured: Some(f64::from(loss.lost) / f64::from(loss.sent.max(1))),
            rate_configured_bits_per_s: configured_value(check.rate),
            rate_measured_bits_per_s: measured_value(check.rate),
            queue_configured_bytes: configured_value(check.queue),
            queue_measured_bytes: measured_value(check.queue),
            late_packets: check.late.map(|late| late.late),
            lost_of: Some(format!("{}/{}", loss.lost, loss.sent)),
            ..Self::unknown(location, Some(check.is_ok()), verdict_text(check))
        }
    }
}

fn configured_value<T: Copy>(check: Option<QuantityCheck<T>>) -> Option<T> {
    check.map(|check| check.expected)
}

fn measured_value<T: Copy>(check: Option<QuantityCheck<T>>) -> Option<T> {
    check.map(|check| check.measured)
}

fn distance_text(share: Option<f64>) -> String {
    share.or_dash(|share| format!("{share:.3}"))
}

/// `ok`, or what does not match.
fn verdict_text(check: &LinkCheck) -> String {
    let checks = [
        ("delay", check.delay.is_ok || check.delay.jitter.is_some()),
        ("jitter", check.delay.is_ok || check.delay.jitter.is_none()),
        ("loss", check.loss.is_ok),
        ("rate", check.rate.is_none_or(|rate| rate.is_ok)),
        ("queue", check.queue.is_none_or(|queue| queue.is_ok)),
    ];
    let mismatches = checks.iter().filter(|(_, ok)| !ok);
    let mismatches: Vec<&str> = mismatches.map(|(part, _)| *part).collect();
    let verdict = match mismatches.as_slice() {
        [] => "ok".to_owned(),
        mismatches => format!("differs from the topology: {}", mismatches.join(", ")),
    };
    if check.is_late() {
        verdict + ", but late"
    } else {
        verdict
    }
}
