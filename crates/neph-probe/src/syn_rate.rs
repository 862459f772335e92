//! The default limit of SYNs per second. A target's operator, and every firewall on the path, takes many for
//! an attack.

use neph_model::{SYNS_A_SECOND_EACH, Span};

/// SYNs per second in all, unless more are allowed.
pub const SYNS_A_SECOND: u32 = 1000;

/// Flows, targets and interval of SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynSchedule {
    /// Number of flows; at least one.
    pub flows: u32,
    /// Number of targets that they share evenly; at least one.
    pub targets: u32,
    /// Time between two SYNs of a flow.
    pub interval: Span,
}

/// A schedule has more SYNs than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rate} SYNs a second {to} are more than {cap}, and may be taken for an attack: send less \
     often, or allow them with --rate-cap {allow}"
)]
pub struct TooManySyns {
    /// SYNs per second of the schedule, rounded up.
    rate: u64,
    /// `in all` or `to each target`.
    to: &'static str,
    /// The limit.
    cap: u32,
    /// The limit that this schedule needs.
    allow: u64,
}

impl SynSchedule {
    /// Checks the schedule against the defaults, or against `allowed` SYNs per second (in all; then each
    /// target may get all of them). Returns the limit in all.
    ///
    /// # Errors
    /// One sentence with the number of SYNs and how to allow them.
    pub fn check(&self, allowed: Option<u32>) -> Result<u32, TooManySyns> {
        let cap = allowed.unwrap_or(SYNS_A_SECOND);
        let max_to_one = allowed.unwrap_or(SYNS_A_SECOND_EACH);
        let total_rate = self.rate(self.flows);
        let to_one = self.rate(self.flows.div_ceil(self.targets.max(1)));
        let fault = |rate, to, cap| TooManySyns {
            rate,
            to,
            cap,
            allow: total_rate,
        };
        if to_one > u64::from(max_to_one) {
            return Err(fault(to_one, "to each target", max_to_one));
        }
        if total_rate > u64::from(cap) {
            return Err(fault(total_rate, "in all", cap));
        }
        Ok(cap)
    }

    /// SYNs per second of this many flows, rounded up.
    fn rate(&self, flows: u32) -> u64 {
        let nanos = u64::try_from(self.interval.nanos()).unwrap_or(0).max(1);
        (u64::from(flows) * 1_000_000_000).div_ceil(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flows: u32, targets: u32, millis: i64, allowed: Option<u32>) -> Result<u32, String> {
        let schedule = SynSchedule {
            flows,
            targets,
            interval: Span::from_millis(millis),
        };
        schedule.check(allowed).map_err(|reason| reason.to_string())
    }

    #[test]
    fn the_syn_rate_is_capped_per_target_and_in_total() {
        assert_eq!(check(1, 1, 5, None), Ok(1000));
        assert_eq!(check(200, 1, 1000, None), Ok(1000));
        assert_eq!(check(1000, 5, 1000, None), Ok(1000));
        let error = check(512, 1, 200, None).expect_err("2560 to one target");
        assert!(
            error.contains("2560 SYNs a second to each target are more than 200"),
            "{error}"
        );
        assert!(error.contains("--rate-cap 2560"), "{error}");
        let error = check(1200, 12, 1000, None).expect_err("1200 in all");
        assert!(
            error.contains("1200 SYNs a second in all are more than 1000"),
            "{error}"
        );
    }

    #[test]
    fn a_requested_rate_cap_also_applies_per_target() {
        assert_eq!(check(512, 1, 200, Some(2560)), Ok(2560));
        assert!(check(512, 1, 200, Some(2559)).is_err());
        assert!(check(1, 1, 1000, Some(1)).is_ok());
    }
}
