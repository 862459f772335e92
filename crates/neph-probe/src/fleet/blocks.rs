//! Blocks of source ports that one process in a network namespace has for itself.
//!
//! Ports that are not bound cannot defend themselves: two fleets that share sockets would take the
//! same ones, and each other's replies. So such a fleet holds a name for each block of ports it
//! uses; who chooses ports and binds them looks whether somebody does ([`take_bound`]).
//!
//! A single flow and a transfer do not look: the port is what they were told, no other one will do,
//! and of a block that is claimed most ports are nobody's. Where a fleet uses that very port, two
//! ask from it, and each may take the other's replies.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Ports in a block: 64 blocks are all there are.
const BLOCK: u16 = 1_024;

/// The blocks that this process has, and how many ports it uses in each.
#[derive(Debug)]
pub(crate) struct Blocks {
    transport: &'static str,
    ours: BTreeMap<u16, Block>,
}

#[derive(Debug)]
struct Block {
    /// A name without a file (unix(7), abstract), which the kernel gives out once in each network
    /// namespace and takes back when the process ends, however it does.
    _name: UnixDatagram,
    ports: u16,
}

impl Blocks {
    /// None yet, of the ports of `udp` or `tcp`.
    pub(crate) const fn new(transport: &'static str) -> Self {
        Self {
            transport,
            ours: BTreeMap::new(),
        }
    }

    /// Takes a port that [`Self::give_back`] has not been told of.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another process has its block.
    pub(crate) fn take(&mut self, port: u16) -> io::Result<()> {
        let number = port / BLOCK;
        if let Some(block) = self.ours.get_mut(&number) {
            block.ports += 1;
            return Ok(());
        }
        let name = UnixDatagram::bind_addr(&name(self.transport, number)?)?;
        self.ours.insert(
            number,
            Block {
                _name: name,
                ports: 1,
            },
        );
        Ok(())
    }

    /// The port is not used any more; with the last one its block is anybody's.
    pub(crate) fn give_back(&mut self, port: u16) {
        let number = port / BLOCK;
        if let Some(block) = self.ours.get_mut(&number) {
            block.ports -= 1;
            if block.ports == 0 {
                self.ours.remove(&number);
            }
        }
    }
}

fn name(transport: &str, number: u16) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("neph/{transport}-ports/{number}"))
}

/// Takes a port of `udp` or `tcp`, which is to bind it, unless somebody has its block.
///
/// Looks for claims when the port is bound, and who claims a block looks for bound ports when the
/// block is claimed: of two at the same time one at least sees the other. Looks before as well: to
/// take a port may be to dial from it, which others see.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if the port is of a block that somebody has; those of `take`; and
/// when no file is left to look with.
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

/// Whether somebody, of this process or another one, has the block of this port of `udp` or `tcp`.
///
/// # Errors
/// When no file is left to ask with.
fn is_claimed(transport: &str, port: u16) -> io::Result<bool> {
    let asking = UnixDatagram::unbound()?;
    match asking.connect_addr(&name(transport, port / BLOCK)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_one_fleets_until_its_last_port_is_back() {
        let (mut one, mut other) = (Blocks::new("test"), Blocks::new("test"));
        one.take(10_300).expect("nobody has it");
        one.take(10_301).expect("ours already");
        let refused = other.take(11_000).expect_err("the same block");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        other.take(11_264).expect("the next block");
        one.give_back(10_300);
        assert!(other.take(11_000).is_err());
        assert!(is_claimed("test", 11_000).expect("a file"));
        one.give_back(10_301);
        assert!(!is_claimed("test", 11_000).expect("a file"));
        other.take(11_000).expect("it is back");
    }

    #[test]
    fn udp_and_tcp_have_ports_of_their_own() {
        let (mut udp, mut tcp) = (Blocks::new("test-u"), Blocks::new("test-t"));
        udp.take(1).expect("nobody has it");
        tcp.take(1).expect("nobody has it");
    }
}
