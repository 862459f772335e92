//! What links and guests were asked to do, and what they do.

use neph_lab::{Check, LinkCheck, NotMet, Reserved};
use neph_model::{BitRate, ByteSize, Span};

use crate::cell::{Cell, OrDash};

crate::rows! {
    /// A direction of a link, one of its paths, or a guest. Null: not asked, or not measured.
    pub struct VerifiedRow {
        /// The link; `tap` of a guest.
        link: String => left "LINK",
        /// The site that sends.
        from: String => left "FROM",
        /// The site that receives.
        to: String => left "TO",
        /// The path, where the link has several.
        path: Option<String> => left "PATH",
        /// The median delay that was asked, in nanoseconds.
        delay_configured_ns: Option<Span> => right "DELAY",
        /// The median delay that was measured, in nanoseconds.
        delay_median_ns: Option<Span> => right "IS",
        /// The 99th percentile of the delay that was asked, in nanoseconds.
        delay_p99_configured_ns: Option<Span> => right "P99",
        /// The 99th percentile of the delay that was measured, in nanoseconds.
        delay_p99_ns: Option<Span> => right "IS",
        /// The distance of the distribution of delays from that asked (Kolmogorov-Smirnov).
        jitter_distance: Option<f64> => right "JITTER OFF" by |row| share(row.jitter_distance),
        /// The distance that chance explains.
        jitter_allowed: Option<f64> => right "AT MOST" by |row| share(row.jitter_allowed),
        /// The loss that was asked: a share.
        loss_configured: Option<f64> => right "LOSS" by |row| {
            row.loss_configured.or_dash(|loss| format!("{:.2} %", loss * 100.0))
        },
        /// The loss that was measured: a share.
        loss_measured: Option<f64> => right "IS" by |row| row.lost_of.cell(),
        /// The rate that was asked, in bit/s.
        rate_configured_bits_per_s: Option<BitRate> => right "RATE",
        /// The rate that was measured, in bit/s.
        rate_measured_bits_per_s: Option<BitRate> => right "IS",
        /// The queue that was asked, in bytes.
        queue_configured_bytes: Option<ByteSize> => right "QUEUE",
        /// The queue that was measured, in bytes.
        queue_measured_bytes: Option<ByteSize> => right "IS",
        /// Packets that the emulation delivered late.
        late_packets: Option<u64> => right "LATE",
        /// Whether it does as asked; null where it was not measured.
        ok: Option<bool> => left "VERDICT" by |row| row.verdict.clone(),
        ; shown
        /// The verdict in words.
        verdict: String,
        /// Lost packets of how many.
        lost_of: Option<String>,
    }
}

/// Which link and direction a row is about.
#[derive(Clone, Debug)]
pub struct VerifiedWhere {
    /// The link.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// The path, where the link has several.
    pub path: Option<String>,
}

/// A rate that was asked of a guest, what it took, and the verdict.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The ceiling.
    pub ceiling: Option<BitRate>,
    /// What was measured.
    pub measured: Option<BitRate>,
    /// Whether it does as asked.
    pub ok: bool,
    /// The same in words.
    pub verdict: String,
}

impl VerifiedRow {
    /// A row of which nothing is known but the verdict.
    fn unknown(place: VerifiedWhere, ok: Option<bool>, verdict: String) -> Self {
        Self {
            link: place.link,
            from: place.from,
            to: place.to,
            path: place.path,
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
    pub fn guest(place: VerifiedWhere, asked: Asked) -> Self {
        Self {
            rate_configured_bits_per_s: asked.ceiling,
            rate_measured_bits_per_s: asked.measured,
            ..Self::unknown(place, Some(asked.ok), asked.verdict)
        }
    }

    /// A path that is in the topology and was not measured.
    pub fn not_met(path: &NotMet) -> Self {
        let why = match path.only {
            Some(Reserved::Icmp) => "it is for ICMP only".to_owned(),
            Some(Reserved::Tcp) => "it is for TCP only".to_owned(),
            _ => format!("weight {}", path.weight),
        };
        let place = VerifiedWhere {
            link: path.link.clone(),
            from: path.from.clone(),
            to: path.to.clone(),
            path: Some(path.path.clone()),
        };
        let verdict = format!("not met: no flow of verify's took it ({why})");
        Self::unknown(place, None, verdict)
    }
}

impl From<&LinkCheck> for VerifiedRow {
    fn from(check: &LinkCheck) -> Self {
        let (delay, loss) = (&check.delay, &check.loss);
        let place = VerifiedWhere {
            link: check.link.clone(),
            from: check.from.clone(),
            to: check.to.clone(),
            path: check.path.clone(),
        };
        Self {
            delay_configured_ns: Some(delay.asked.median),
            delay_median_ns: delay.measured.map(|is| is.median),
            delay_p99_configured_ns: Some(delay.asked.p99),
            delay_p99_ns: delay.measured.map(|is| is.p99),
            jitter_distance: delay.jitter.map(|jitter| jitter.distance),
            jitter_allowed: delay.jitter.map(|jitter| jitter.allowed),
            loss_configured: Some(loss.asked),
            loss_measured: Some(f64::from(loss.lost) / f64::from(loss.sent.max(1))),
            rate_configured_bits_per_s: asked(check.rate),
            rate_measured_bits_per_s: measured(check.rate),
            queue_configured_bytes: asked(check.queue),
            queue_measured_bytes: measured(check.queue),
            late_packets: check.late.map(|late| late.late),
            lost_of: Some(format!("{}/{}", loss.lost, loss.sent)),
            ..Self::unknown(place, Some(check.is_ok()), verdict(check))
        }
    }
}

fn asked<T: Copy>(check: Option<Check<T>>) -> Option<T> {
    check.map(|check| check.asked)
}

fn measured<T: Copy>(check: Option<Check<T>>) -> Option<T> {
    check.map(|check| check.measured)
}

fn share(share: Option<f64>) -> String {
    share.or_dash(|share| format!("{share:.3}"))
}

/// `ok`, or what is not.
fn verdict(check: &LinkCheck) -> String {
    let parts = [
        ("delay", check.delay.ok || check.delay.jitter.is_some()),
        ("jitter", check.delay.ok || check.delay.jitter.is_none()),
        ("loss", check.loss.ok),
        ("rate", check.rate.is_none_or(|rate| rate.ok)),
        ("queue", check.queue.is_none_or(|queue| queue.ok)),
    ];
    let wrong = parts.iter().filter(|(_, ok)| !ok);
    let wrong: Vec<&str> = wrong.map(|(what, _)| *what).collect();
    let verdict = match wrong.as_slice() {
        [] => "ok".to_owned(),
        wrong => format!("not as asked: {}", wrong.join(", ")),
    };
    if check.is_late() {
        verdict + ", but late"
    } else {
        verdict
    }
}
