//! Writing sysctls of a network namespace.
//!
//! Owns the path below /proc/sys. Which settings are made is the plan's business.

use std::fs;

use neph_sys::netns::{self, NetNs};

use crate::lab::LabError;

/// Sets each of `settings` (dotted name, value) in `namespace`, in order.
pub(crate) fn apply(
    namespace: &NetNs,
    settings: &[(&str, impl AsRef<str> + Sync)],
) -> Result<(), LabError> {
    netns::with_namespace(namespace, || {
        settings.iter().try_for_each(|(setting, value)| {
            let path = format!("/proc/sys/{}", setting.replace('.', "/"));
            let value = value.as_ref();
            match fs::write(path, value) {
                // A kernel without IPv6 has nothing to switch off.
                Err(_) if setting.starts_with("net.ipv6.") && !has_v6() => Ok(()),
                written => written.map_err(|source| LabError::Setting {
                    setting: (*setting).to_owned(),
                    value: value.to_owned(),
                    namespace: namespace.name().to_owned(),
                    source,
                }),
            }
        })
    })?
}

fn has_v6() -> bool {
    fs::exists("/proc/sys/net/ipv6").unwrap_or(false)
}
