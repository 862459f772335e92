//! Blocks of source ports that one process reserves in a network namespace.
//!
//! The kernel does not protect unbound ports: two fleets with shared sockets could use the same ports and
//! take each other's replies. So such a fleet claims a name for each block of ports that it uses. Code that
//! chooses and binds ports checks these claims ([`take_bound`]).
//!
//! A single flow and a transfer do not check: they need the given port, and most ports of a claimed block are
//! unused. If a fleet uses that very port, both may take each other's replies.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Ports in a block: there are 64 blocks.
const BLOCK: u16 = 1_024;

/// The blocks of this process, with the number of used ports in each.
#[derive(Debug)]
pub(crate) struct Blocks {
    transport: &'static str,
    claimed_blocks: BTreeMap<u16, Block>,
}

#[derive(Debug)]
struct Block {
    /// An abstract name without a file (unix(7)). The kernel grants it once in each network namespace and
    /// frees it when the process ends.
    _name: UnixDatagram,
    ports: u16,
}

impl Blocks {
    /// Empty, for ports of `udp` or `tcp`.
    pub(crate) const fn new(transport: &'static str) -> Self {
        Self {
            transport,
            claimed_blocks: BTreeMap::new(),
        }
    }

    /// Takes a port that is not taken already; see [`Self::give_back`].
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another process has its block.
    pub(crate) fn take(&mut self, port: u16) -> io::Result<()> {
        let number = port / BLOCK;
        if let Some(block) = self.claimed_blocks.get_mut(&number) {
            block.ports += 1;
            return Ok(());
        }
        let name = UnixDatagram::bind_addr(&name(self.transport, number)?)?;
        self.claimed_blocks.insert(
            number,
            Block {
                _name: name,
                ports: 1,
            },
        );
        Ok(())
    }

    /// Gives a port back. With its last port, a block becomes free.
    pub(crate) fn give_back(&mut self, port: u16) {
        let number = port / BLOCK;
        if let Some(block) = self.claimed_blocks.get_mut(&number) {
            block.ports -= 1;
            if block.ports == 0 {
                self.claimed_blocks.remove(&number);
            }
        }
    }
}

fn name(transport: &str, number: u16) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("neph/{transport}-ports/{number}"))
}

/// Takes and binds a port of `udp` or `tcp` by `take`, unless its block is claimed.
///
/// Checks for claims after binding the port, and claiming a block checks for bound ports afterwards. So of
/// two processes at the same time at least one sees the other. It checks before as well, because `take` may
/// connect from the port, which is visible to others.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if the port is in a claimed block; those of `take`; and when no file is left
/// for the check.
pub(crate) fn take_bound<T>(
    transport: &str,
    port: u16,
    take: impl FnOnce(u16) -> io::Result<T>,
) -> io::Result<T> {
    is_free(transport, port)?;
    let taken = take(port)?;
    is_free(transport, port)?;
    Ok(taken)
}

fn is_free(transport: &str, port: u16) -> io::Result<()> {
    if is_claimed(transport, port)? {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    Ok(())
}

/// Whether any process, including this one, has claimed the block of this port of `udp` or `tcp`.
///
/// # Errors
/// When no file is left for the check.
fn is_claimed(transport: &str, port: u16) -> io::Result<bool> {
    let probe_socket = UnixDatagram::unbound()?;
    match probe_socket.connect_addr(&name(transport, port / BLOCK)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_block_belongs_to_a_fleet_until_its_last_port_is_returned() {
        let (mut first, mut other) = (Blocks::new("test"), Blocks::new("test"));
        first.take(10_300).expect("it is free");
        first.take(10_301).expect("ours already");
        let refused = other.take(11_000).expect_err("the same block");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        other.take(11_264).expect("the next block");
        first.give_back(10_300);
        assert!(other.take(11_000).is_err());
        assert!(is_claimed("test", 11_000).expect("a file"));
        first.give_back(10_301);
        assert!(!is_claimed("test", 11_000).expect("a file"));
        other.take(11_000).expect("it is back");
    }

    #[test]
    fn udp_and_tcp_port_blocks_are_separate() {
        let (mut udp, mut tcp) = (Blocks::new("test-u"), Blocks::new("test-t"));
        udp.take(1).expect("it is free");
        tcp.take(1).expect("it is free");
    }
}
