//! Ports that are reserved by open sockets, as far as there are files, so that no other program takes them.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;

use neph_sys::files;
use socket2::Socket;

/// Sockets that hold ports. Half of the process's files are left to others, however many fleets it has.
/// Beyond that a port is only checked when it is taken.
#[derive(Debug)]
pub(crate) struct PortHolders {
    holders: BTreeMap<u16, Socket>,
    /// No file with this number or a higher one is kept: the kernel gives out the lowest free number.
    limit: u64,
}

impl PortHolders {
    pub(crate) fn new() -> Self {
        Self {
            holders: BTreeMap::new(),
            limit: files::raise_limit().unwrap_or(0) / 2,
        }
    }

    /// Keeps the port, if there is room for its holder.
    pub(crate) fn keep(&mut self, port: u16, holder: Socket) {
        let number = u64::try_from(holder.as_raw_fd()).unwrap_or(u64::MAX);
        if number < self.limit {
            self.holders.insert(port, holder);
        }
    }

    pub(crate) fn release(&mut self, port: u16) {
        self.holders.remove(&port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_ports_never_exceed_the_file_limit() {
        let hold = || {
            let loopback = (std::net::Ipv4Addr::LOCALHOST, 0).into();
            crate::raw_tcp::hold(loopback).expect("a port")
        };
        let (first, second) = (hold(), hold());
        let limit = first.as_raw_fd().max(second.as_raw_fd());
        let empty = || PortHolders {
            holders: BTreeMap::new(),
            limit: u64::try_from(limit).expect("a file's number"),
        };
        let (low, high) = if first.as_raw_fd() < limit {
            (first, second)
        } else {
            (second, first)
        };
        let (mut one, mut other) = (empty(), empty());
        one.keep(0, low);
        other.keep(1, high);
        assert_eq!((one.holders.len(), other.holders.len()), (1, 0));
        one.release(0);
        assert!(one.holders.is_empty());
    }
}
