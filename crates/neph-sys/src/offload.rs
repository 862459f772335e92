//! Work that a network interface does for the kernel: reading the settings, and switching it off.
//!
//! Owns the `ETHTOOL` calls for checksum and segmentation offload. A packet whose checksum was left to
//! the device is lost when it passes through a packet socket. A segmented one is 64 KiB long where the
//! wire would show 45 packets. Both were measured on veth.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// An interface whose offloads could not be switched off.
#[derive(Debug, thiserror::Error)]
#[error("switch off {what} on interface {interface}: {source}")]
pub struct OffloadError {
    what: &'static str,
    interface: String,
    source: io::Error,
}

/// `linux/ethtool.h`: the legacy set commands, which every kernel still takes. Checksums first:
/// segmentation depends on them and falls with them.
const SWITCHES: [(u32, &str); 5] = [
    (0x0000_0017, "transmit checksumming"),
    (0x0000_0015, "receive checksumming"),
    (0x0000_001f, "TCP segmentation offload"),
    (0x0000_0024, "generic segmentation offload"),
    (0x0000_002c, "generic receive offload"),
];

/// `ETHTOOL_GTSO`: whether TCP segmentation offload is on.
const GET_TSO: u32 = 0x0000_001e;

/// The matching get commands, with the short names of the ethtool program.
const STATES: [(u32, &str); 5] = [
    (0x0000_0016, "tx"),
    (0x0000_0014, "rx"),
    (GET_TSO, "tso"),
    (0x0000_0023, "gso"),
    (0x0000_002b, "gro"),
];

/// Every offload of every interface of the calling thread's network namespace: the interface, the
/// offload's short name (`tx, rx, tso, gso, gro`), and whether it is on. What cannot be asked is
/// left out.
pub fn states() -> Vec<(String, &'static str, bool)> {
    let Ok(any) = UdpSocket::bind(("0.0.0.0", 0)) else {
        return Vec::new();
    };
    let mut states = Vec::new();
    for interface in interfaces() {
        for (command, name) in STATES {
            let mut value = Value { command, value: 0 };
            if call(&any, &interface, &mut value).is_ok() {
                states.push((interface.clone(), name, value.value != 0));
            }
        }
    }
    states
}

/// The names of the interfaces, from the namespace's own table (/sys would show another's).
fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table
        .lines()
        .skip(2)
        .filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    value: u32,
}

/// Whether `interface` of the calling thread's network namespace takes segments of TCP whole (`tso` in
/// the words of the ethtool program); else the kernel cuts them before it gets them.
///
/// # Errors
/// No such interface, or one that cannot be asked.
pub fn takes_segments_whole(interface: &str) -> io::Result<bool> {
    let any = UdpSocket::bind(("0.0.0.0", 0))?;
    let mut value = Value {
        command: GET_TSO,
        value: 0,
    };
    call(&any, interface, &mut value)?;
    Ok(value.value != 0)
}

/// Switches checksum and segmentation offload off for `interface` of the calling thread's
/// network namespace (`tx, rx, tso, gso, gro` in the words of the ethtool program).
///
/// # Errors
/// No such interface, or no `CAP_NET_ADMIN` in the namespace.
pub fn switch_off(interface: &str) -> Result<(), OffloadError> {
    let failed = |message, source| OffloadError {
        what: message,
        interface: interface.to_owned(),
        source,
    };
    let any = UdpSocket::bind(("0.0.0.0", 0)).map_err(|e| failed("offloads", e))?;
    for (command, message) in SWITCHES {
        call(&any, interface, &mut Value { command, value: 0 }).map_err(|e| failed(message, e))?;
    }
    Ok(())
}

fn call(socket: &UdpSocket, interface: &str, value: &mut Value) -> io::Result<()> {
    // SAFETY: ifreq is plain C data for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
    // SAFETY: SIOCETHTOOL with these commands reads the ifreq and reads or writes the
    // ethtool_value it points to; both live until the call returns.
    // The cast: glibc's ioctl takes an unsigned long, musl's an int.
    let outcome = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCETHTOOL as libc::Ioctl,
            &raw mut request,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_reports_its_offloads() {
        let states = states();
        assert!(
            states
                .iter()
                .any(|(name, what, _)| name == "lo" && *what == "gso"),
            "{states:?}"
        );
    }

    #[test]
    fn offloads_of_one_interface_equal_its_entry_among_all() {
        let of_all = states()
            .into_iter()
            .find(|(name, message, _)| name == "lo" && *message == "tso");
        let (_, _, is_on) = of_all.expect("lo tells it");
        assert_eq!(takes_segments_whole("lo").expect("lo is there"), is_on);
        assert!(takes_segments_whole("no-such-if0").is_err());
    }

    #[test]
    fn a_missing_interface_is_reported_by_name() {
        let error = switch_off("no-such-if0").expect_err("it does not exist");
        assert!(error.to_string().contains("no-such-if0"), "{error}");
    }
}
