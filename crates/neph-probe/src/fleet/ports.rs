//! The source ports of a fleet: their order, and which are in use.

use std::fs;
use std::io;
use std::ops::RangeInclusive;

use neph_model::FleetEndpoint;

use super::blocks::{Blocks, take_bound};
use crate::reflect::ANSWERING_PORTS;

/// Ports below this need privileges.
const MIN_PORT: u16 = 1_024;
/// The default first port of a fleet: above the ports of most services.
const DEFAULT_FIRST_PORT: u16 = 10_000;
/// The default range of ephemeral ports in Linux.
const KERNELS: RangeInclusive<u16> = 32_768..=60_999;

/// Hands out ports. A port is reused only after all others.
#[derive(Debug)]
pub(crate) struct Ports {
    /// In order of preference.
    order: Vec<u16>,
    next: usize,
    taken: Vec<bool>,
    apart: PortSeparation,
}

/// How fleets avoid each other's ports.
#[derive(Debug)]
enum PortSeparation {
    /// Bound ports of `udp` or `tcp`: the kernel protects them. Ports in a block of another process are
    /// excluded, as these are used without being bound.
    Bound(&'static str),
    /// Ports that are not always bound come from blocks that only this fleet has.
    Blocks(Blocks),
}

impl Ports {
    /// Ports of `udp` or `tcp` that are bound while they are used, from `first` upward. Without it, ports
    /// outside of the kernel's ephemeral range come first: no program connects from these at random.
    pub(crate) fn bound(first: Option<u16>, transport: &'static str) -> Self {
        Self::in_order(first, &ephemeral_ports(), PortSeparation::Bound(transport))
    }

    /// The same for ports that are not bound while they are used: only from blocks that are not claimed.
    pub(crate) fn unbound(first: Option<u16>, transport: &'static str) -> Self {
        let blocks = PortSeparation::Blocks(Blocks::new(transport));
        Self::in_order(first, &ephemeral_ports(), blocks)
    }

    fn in_order(first: Option<u16>, kernels: &RangeInclusive<u16>, apart: PortSeparation) -> Self {
        let order = if let Some(first) = first {
            (first.max(1)..=u16::MAX).collect()
        } else {
            let available = |from: u16, to: u16| (from..=to).filter(|port| !kernels.contains(port));
            let above = available(DEFAULT_FIRST_PORT, u16::MAX);
            let below = available(MIN_PORT, DEFAULT_FIRST_PORT - 1);
            above
                .chain(below)
                .chain((MIN_PORT..=u16::MAX).filter(|port| kernels.contains(port)))
                .collect()
        };
        Self {
            order,
            next: 0,
            taken: vec![false; 1 << 16],
            apart,
        }
    }

    /// Excludes the source ports that a reflector at one of these endpoints does not answer.
    pub(crate) fn answered_by(mut self, endpoints: &[FleetEndpoint]) -> Self {
        let reflectors = endpoints.iter().map(|endpoint| endpoint.address.port());
        for port in reflectors.chain(ANSWERING_PORTS) {
            self.taken[usize::from(port)] = true;
        }
        self
    }

    /// The next port that is free here and that `take` gets; `None` when there is none.
    ///
    /// # Errors
    /// The first error of `take` other than that the port is in use; and that there is no local address, if
    /// it fails so for every port.
    pub(crate) fn take<T>(
        &mut self,
        take: impl Fn(u16) -> io::Result<T>,
    ) -> io::Result<Option<(u16, T)>> {
        let mut addressless = None;
        let mut claimed_by_other = false;
        for _ in 0..self.order.len() {
            let port = self.order[self.next];
            self.next = (self.next + 1) % self.order.len();
            if self.taken[usize::from(port)] {
                claimed_by_other = true;
                continue;
            }
            match self.apart.take(port, &take) {
                Ok(taken) => {
                    self.taken[usize::from(port)] = true;
                    return Ok(Some((port, taken)));
                }
                // Without privileges a port below 1024 counts as in use too.
                Err(error) if is_in_use(&error) => claimed_by_other = true,
                // connect(2) returns this if another connection to the same peer has the port.
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    addressless = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match addressless {
            Some(error) if !claimed_by_other => Err(error),
            _ => Ok(None),
        }
    }

    /// The port is not used any more.
    pub(crate) fn give_back(&mut self, port: u16) {
        self.taken[usize::from(port)] = false;
        if let PortSeparation::Blocks(blocks) = &mut self.apart {
            blocks.give_back(port);
        }
    }
}

impl PortSeparation {
    fn take<T>(&mut self, port: u16, take: impl Fn(u16) -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Bound(transport) => take_bound(transport, port, take),
            Self::Blocks(blocks) => {
                blocks.take(port)?;
                take(port).inspect_err(|_| blocks.give_back(port))
            }
        }
    }
}

fn is_in_use(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}

/// `net.ipv4.ip_local_port_range` is valid for both versions.
fn ephemeral_ports() -> RangeInclusive<u16> {
    let port_range =
        fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut bounds = port_range.split_whitespace().map(str::parse);
    match (bounds.next(), bounds.next()) {
        (Some(Ok(low)), Some(Ok(high))) => low..=high,
        _ => KERNELS,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A flow from such a port would lose every message.
    #[test]
    fn ports_that_a_reflector_never_answers_are_left_out() {
        let ports = Ports::in_order(Some(850), &KERNELS, PortSeparation::Bound("test"));
        let endpoint = |port: u16| FleetEndpoint {
            name: String::new(),
            address: ([127, 0, 0, 1], port).into(),
        };
        let mut ports = ports.answered_by(&[8080, 8081].map(endpoint));
        let mut taken = Vec::new();
        while let Ok(Some((port, ()))) = ports.take(|_| Ok(())) {
            taken.push(port);
        }
        let left_out: Vec<u16> = (850..=u16::MAX)
            .filter(|port| !taken.contains(port))
            .collect();
        assert_eq!(left_out, [862, 8080, 8081]);
    }

    #[test]
    fn ephemeral_ports_come_last_and_no_port_is_missing() {
        let mut ports = Ports::in_order(None, &KERNELS, PortSeparation::Bound("test"));
        let mut taken = Vec::new();
        while let Ok(Some((port, ()))) = ports.take(|_| Ok(())) {
            taken.push(port);
        }
        assert_eq!(taken.len(), 64_512);
        assert_eq!(
            (taken[0], taken[22_767], taken[22_768]),
            (10_000, 32_767, 61_000)
        );
        let first_of_theirs = taken.iter().position(|port| KERNELS.contains(port));
        assert_eq!(first_of_theirs, Some(36_280));
    }

    #[test]
    fn ports_in_use_are_skipped_and_returned_ports_are_queued() {
        let mut ports = Ports::in_order(Some(65_532), &KERNELS, PortSeparation::Bound("test"));
        let take = |ports: &mut Ports| {
            let taken = ports.take(|port| match port {
                65_533 => Err(io::ErrorKind::AddrInUse.into()),
                _ => Ok(()),
            });
            taken.expect("no other fault").map(|(port, ())| port)
        };
        assert_eq!(take(&mut ports), Some(65_532));
        assert_eq!(take(&mut ports), Some(65_534));
        ports.give_back(65_532);
        assert_eq!(take(&mut ports), Some(65_535));
        assert_eq!(take(&mut ports), Some(65_532));
        assert_eq!(take(&mut ports), None);
    }

    #[test]
    fn bound_ports_are_not_taken_from_a_claimed_block() {
        let of = |apart| Ports::in_order(Some(65_534), &KERNELS, apart);
        let mut claiming = of(PortSeparation::Blocks(Blocks::new("test-b")));
        let mut bound = of(PortSeparation::Bound("test-b"));
        let none = |_| Ok::<(), io::Error>(());
        let refused = claiming.take(|_| Err::<(), _>(io::ErrorKind::AddrInUse.into()));
        assert!(refused.expect("no fault").is_none());
        let taken = bound.take(none).expect("no fault");
        assert_eq!(taken, Some((65_534, ())), "what was not taken is nobody's");
        let taken = claiming.take(none).expect("no fault");
        assert_eq!(taken, Some((65_534, ())));
        assert_eq!(bound.take(none).expect("no fault"), None);
        claiming.give_back(65_534);
        let taken = bound.take(none).expect("no fault");
        assert_eq!(taken, Some((65_535, ())));
    }

    #[test]
    fn no_port_of_a_claimed_block_is_tried() {
        let mut claimed = Blocks::new("test-d");
        claimed.take(63_488).expect("nobody has it");
        let mut ports = Ports::in_order(Some(64_000), &KERNELS, PortSeparation::Bound("test-d"));
        let tried = Cell::new(0);
        let taken = ports.take(|_| {
            tried.set(tried.get() + 1);
            Ok(())
        });
        // The rest of that block is 512 ports long.
        assert_eq!(taken.expect("no fault"), Some((64_512, ())));
        assert_eq!(tried.get(), 1);
    }

    #[test]
    fn a_block_claimed_by_another_process_meanwhile_is_skipped() {
        let mut ports = Ports::in_order(Some(65_535), &KERNELS, PortSeparation::Bound("test-e"));
        let claimed = RefCell::new(Blocks::new("test-e"));
        let taken = ports.take(|port| claimed.borrow_mut().take(port));
        assert_eq!(taken.expect("no fault"), None);
    }

    #[test]
    fn ports_in_use_are_skipped_and_a_host_without_address_is_an_error() {
        let remote = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let mut ports = Ports::in_order(Some(65_534), &KERNELS, PortSeparation::Bound("test"));
        let taken = ports.take(|port| match port {
            65_534 => Err(remote()),
            _ => Ok(()),
        });
        assert_eq!(
            taken.expect("no fault").map(|(port, ())| port),
            Some(65_535)
        );
        let left = ports.take(|_| Err::<(), _>(remote()));
        assert!(left.expect("one is ours").is_none());
        let none = Ports::in_order(Some(65_534), &KERNELS, PortSeparation::Bound("test"))
            .take(|_| Err::<(), _>(remote()));
        assert_eq!(
            none.expect_err("none at all").kind(),
            io::ErrorKind::AddrNotAvailable
        );
    }
}
