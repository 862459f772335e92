//! Compares the capabilities of this process with those that a lab needs, before anything is created.

use std::fs;
use std::io;

use super::LabError;

/// `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_SYS_ADMIN`, by their numbers in capability.h.
const NEEDED_CAPABILITIES: [u32; 3] = [12, 13, 21];

/// Checks that this process has the needed capabilities; succeeds if the kernel does not report them.
pub(super) fn check_capabilities() -> Result<(), LabError> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if has_needed_capabilities(&status).unwrap_or(true) {
        return Ok(());
    }
    let source = io::Error::from(io::ErrorKind::PermissionDenied);
    Err(LabError::NotPermitted {
        source: source.into(),
    })
}

/// Whether the `status` file of a process has the capabilities; `None` if it does not list them.
fn has_needed_capabilities(status: &str) -> Option<bool> {
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    Some(
        NEEDED_CAPABILITIES
            .iter()
            .all(|bit| effective >> bit & 1 == 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_needs_three_capabilities_and_each_of_them() {
        let has_capabilities =
            |bits: u64| has_needed_capabilities(&format!("Name:\tneph\nCapEff:\t{bits:016x}\n"));
        let mask = NEEDED_CAPABILITIES
            .iter()
            .fold(0, |bits, bit| bits | 1 << bit);
        assert_eq!(has_capabilities(mask), Some(true));
        assert_eq!(has_capabilities(u64::MAX), Some(true));
        for bit in NEEDED_CAPABILITIES {
            assert_eq!(
                has_capabilities(mask & !(1 << bit)),
                Some(false),
                "without {bit}"
            );
        }
        assert_eq!(has_capabilities(0), Some(false));
        assert_eq!(has_needed_capabilities("Name:\tneph\n"), None);
    }
}
