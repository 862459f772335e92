//! Whether simultaneous fleets may open the files of their flows, and which of them share sockets instead.
//! Owns how many files a fleet needs. Opens none.

use neph_model::{Fleet, ProbeKind, Span};
use neph_sys::files;

use super::spec::{FleetSpec, Sharing};
use crate::ProbeError;
use crate::raw_tcp;

/// Files of a fleet without those of its flows.
const OWN: u64 = 8;
/// Files that are left to the rest of this process.
const RESERVED_FILES: u64 = 56;

impl FleetSpec {
    /// Files that it opens if each flow has one: for current flows, for ended flows that still take late
    /// replies, and a few of its own.
    pub fn files_needed(&self) -> u64 {
        needed(&self.fleet, self.timeout)
    }
}

fn needed(fleet: &Fleet, timeout: Span) -> u64 {
    let slots = u64::from(fleet.slots);
    let leaving = fleet.lifetime.map_or(0, |lifetime| {
        let timeout = timeout.nanos().max(0).unsigned_abs();
        let lifetime = lifetime.nanos().max(fleet.interval.nanos()).max(1);
        slots * timeout.div_ceil(lifetime.unsigned_abs())
    });
    slots + leaving + OWN
}

/// Whether its flows can share sockets, with the current privileges.
fn can_share(fleet: &Fleet) -> bool {
    matches!(fleet.probe, ProbeKind::Udp | ProbeKind::Syn) && raw_tcp::is_permitted()
}

/// How many more files this process can open.
fn left() -> u64 {
    files::raise_limit().unwrap_or(u64::MAX)
}

/// Whether there is a file for each of this fleet's flows, without other fleets.
pub(super) fn has_files(spec: &FleetSpec) -> Result<(), ProbeError> {
    Demand::of(&[(&spec.fleet, spec.timeout)]).held_against(left())
}

/// Whether this process may open the files of simultaneous fleets, each with its message timeout.
///
/// # Errors
/// [`ProbeError::Fleet`] where it may not, with the possible number of flows and a remedy.
pub fn check_files(together: &[(&Fleet, Span)]) -> Result<(), ProbeError> {
    let unshared = together.iter().filter(|fleet| !can_share(fleet.0)).copied();
    Demand::of(&unshared.collect::<Vec<_>>()).held_against(left())
}

/// Divides the files of this process among fleets that begin at the same time, as none of them knows the
/// others. If there are too few, fleets that can share sockets do so.
///
/// # Errors
/// As [`check_files`].
pub fn allot_files(together: &mut [&mut FleetSpec]) -> Result<(), ProbeError> {
    let needed: u64 = together.iter().map(|spec| spec.files_needed()).sum();
    if needed + RESERVED_FILES <= left() {
        return Ok(());
    }
    let fleets: Vec<_> = together.iter().map(|s| (&s.fleet, s.timeout)).collect();
    check_files(&fleets)?;
    for spec in together {
        spec.sharing = can_share(&spec.fleet).then_some(Sharing::SharedSockets);
    }
    Ok(())
}

/// Need of flows that have a file each.
#[derive(Clone, Copy, Debug)]
struct Demand {
    flows: u64,
    files: u64,
    fleets: u64,
    /// Root needs fewer files.
    helps: bool,
}

impl Demand {
    fn of(together: &[(&Fleet, Span)]) -> Self {
        let fleets = || together.iter().map(|(fleet, _)| fleet);
        let files = together
            .iter()
            .map(|(fleet, timeout)| needed(fleet, *timeout));
        Self {
            flows: fleets().map(|fleet| u64::from(fleet.slots)).sum(),
            files: files.sum::<u64>() + RESERVED_FILES,
            fleets: together.len() as u64,
            // Established connections have a file each, even for root.
            helps: fleets().any(|fleet| fleet.probe != ProbeKind::Tcp),
        }
    }

    fn held_against(self, files: u64) -> Result<(), ProbeError> {
        let Self {
            flows,
            files: needed,
            fleets,
            ..
        } = self;
        if flows == 0 || needed <= files {
            return Ok(());
        }
        let fixed = RESERVED_FILES + OWN * fleets;
        let possible = flows * files.saturating_sub(fixed) / needed.saturating_sub(fixed).max(1);
        let together = if fleets == 1 {
            ""
        } else {
            " that run at the same time"
        };
        let or = if self.helps {
            ", or run as root, which needs no file for each"
        } else {
            ""
        };
        let fewer = match possible {
            0 => String::new(),
            _ => format!("ask for {possible} flows, or "),
        };
        Err(ProbeError::Fleet(format!(
            "{flows} flows{together} need {needed} files and this process may open {files}: \
             {fewer}raise the limit ('ulimit -n'){or}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use neph_model::FleetEndpoint;

    use super::*;

    fn fleet(probe: ProbeKind, slots: u32) -> Fleet {
        Fleet {
            probe,
            slots,
            endpoints: vec![FleetEndpoint {
                name: "a".to_owned(),
                address: ([127, 0, 0, 1], 9).into(),
            }],
            interval: Span::from_secs(1),
            lifetime: None,
            criteria: None,
        }
    }

    #[test]
    fn ended_flows_keep_their_file_descriptors_until_the_timeout() {
        let mut some = fleet(ProbeKind::Udp, 100);
        let timeout = Span::from_secs(3);
        assert_eq!(needed(&some, timeout), 100 + OWN);
        some.lifetime = Some(Span::from_secs(2));
        assert_eq!(needed(&some, timeout), 100 + 200 + OWN);
        some.lifetime = Some(Span::from_millis(1));
        assert_eq!(needed(&some, timeout), 100 + 300 + OWN, "one message each");
    }

    #[test]
    fn fleets_that_together_need_too_many_files_are_refused() {
        let limit = left();
        let half = u32::try_from(limit / 2).expect("a limit that fits");
        let half_fleet = fleet(ProbeKind::Tcp, half);
        let timeout = Span::from_secs(1);
        check_files(&[(&half_fleet, timeout)]).expect("half of the files is enough for it");
        let error =
            check_files(&[(&half_fleet, timeout), (&half_fleet, timeout)]).expect_err("too many");
        let message = error.to_string();
        let expected = format!(
            "{} flows that run at the same time need",
            2 * u64::from(half)
        );
        assert!(message.contains(&expected), "{message}");
        assert!(message.contains("('ulimit -n')"), "{message}");
    }

    #[test]
    fn the_suggested_number_of_flows_fits() {
        let demand = |flows| Demand {
            flows,
            files: flows + RESERVED_FILES + 2 * OWN,
            fleets: 2,
            helps: true,
        };
        let error = demand(2_000)
            .held_against(1_000)
            .expect_err("too few files");
        let message = error.to_string();
        assert!(message.contains("ask for 928 flows"), "{message}");
        assert!(message.contains("or run as root"), "{message}");
        demand(928).held_against(1_000).expect("they fit");
        let error = demand(200).held_against(58).expect_err("none fit");
        let message = error.to_string();
        assert!(
            message.contains("may open 58: raise the limit ('ulimit -n'), or run as root"),
            "{message}"
        );
    }
}
