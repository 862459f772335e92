//! The host's properties that matter for probes: clocks, interfaces, namespaces.

use std::collections::BTreeMap;

use neph_model::{Anchor, Local, Span};
use neph_sys::place::Placement;
use neph_sys::{awake, clock, offload};

use crate::ProbeError;
use crate::stamp_clock::StampClock;

/// The current reading of both clocks.
pub fn anchor() -> Anchor<Local> {
    StampClock::new().anchor()
}

/// The kernel's state of its wall clock, in words.
pub fn clock_sync() -> String {
    match clock::sync_status() {
        None => "unknown: adjtimex is forbidden here".to_owned(),
        Some(status) => believed(&status),
    }
}

/// An error of 16 s means unknown (`NTP_PHASE_LIMIT`).
fn believed(status: &clock::SyncStatus) -> String {
    const UNKNOWN_US: i64 = 16_000_000;
    let is = if status.synchronised {
        "synchronised"
    } else {
        "not synchronised"
    };
    let [estimated, max] = [status.estimated_error_us, status.max_error_us];
    if estimated >= UNKNOWN_US {
        return format!("{is}, error unknown");
    }
    let [estimated, max] = [estimated, max].map(|micros| Span::from_micros(micros).exact());
    format!("{is}, estimated error {estimated}, at most {max}")
}

/// The permitted wake-up time of a core, as a setting with its name; `None` where it cannot be read.
pub fn core_wake() -> Option<(String, String)> {
    let wakefulness = match awake::permitted_us().ok()? {
        0 => "0 us: cores are kept awake".to_owned(),
        permitted => format!("{permitted} us"),
    };
    Some(("cpu_dma_latency".to_owned(), wakefulness))
}

/// Offloads of the calling thread's interfaces: `interface.offload` to `on` or `off`.
pub fn offloads() -> BTreeMap<String, String> {
    let word = |on| if on { "on" } else { "off" };
    let states = offload::states().into_iter();
    states
        .map(|(name, message, on)| (format!("{name}.{message}"), word(on).to_owned()))
        .collect()
}

/// Runs `work` at that place, or at the current one.
///
/// # Errors
/// When the place cannot be entered.
pub fn at_site<T: Send>(
    site: Option<&Placement>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, ProbeError> {
    match site {
        None => Ok(work()),
        Some(site) => Ok(site.run(work)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kernel_clock_error_is_not_reported() {
        let of = |synchronised, error| {
            believed(&clock::SyncStatus {
                synchronised,
                estimated_error_us: error,
                max_error_us: error * 2,
                rate_ppm: 0,
            })
        };
        assert_eq!(of(false, 16_000_000), "not synchronised, error unknown");
        let known = "synchronised, estimated error 250 us, at most 500 us";
        assert_eq!(of(true, 250), known);
    }
}
