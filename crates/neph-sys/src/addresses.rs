//! The addresses of this host's interfaces.
//!
//! Owns the call of getifaddrs. Which address is worth what is decided by the caller.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Every IPv4 and IPv6 address of every interface that is up in the calling thread's network
/// namespace, in the kernel's order, loopback included, without duplicates.
///
/// # Errors
/// The kernel cannot be asked (no netlink socket, no memory).
pub fn local() -> io::Result<Vec<IpAddr>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: getifaddrs writes one pointer to where the argument points, a live local variable.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: getifaddrs gave a list that is linked by `ifa_next`, ends with null, and lives
        // until freeifaddrs below; nothing writes to it meanwhile.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        let is_up = entry.ifa_flags & libc::IFF_UP.cast_unsigned() != 0;
        // SAFETY: `ifa_addr` is null or belongs to the same list, which is still alive.
        if let Some(address) = unsafe { address(entry.ifa_addr) }
            && is_up
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    // SAFETY: `first` came from getifaddrs, is freed once, and no reference into the list is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The internet address in a socket address; `None` for other families and for null.
///
/// # Safety
/// `address` is null, or points to a socket address as long as its family demands.
unsafe fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, so a socket address by the caller's promise; each has its family. It may not
    // be aligned as the type asks.
    let family = unsafe { ptr::read_unaligned(address) }.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: of this family it is a sockaddr_in.
            let v4 = unsafe { ptr::read_unaligned(address.cast::<libc::sockaddr_in>()) };
            let bits = u32::from_be(v4.sin_addr.s_addr);
            Some(Ipv4Addr::from_bits(bits).into())
        }
        libc::AF_INET6 => {
            // SAFETY: of this family it is a sockaddr_in6.
            let v6 = unsafe { ptr::read_unaligned(address.cast::<libc::sockaddr_in6>()) };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_among_them_and_nothing_is_there_twice() {
        let mut found = local().expect("the kernel is asked");
        assert!(found.contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count);
    }
}
