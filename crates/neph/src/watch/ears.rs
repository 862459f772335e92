//! The interface that is listened to: its ring, what its packets begin with, and what was counted.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::ByteSize;
use neph_sys::clock;
use neph_sys::netns::{NetNs, with_namespace};
use neph_sys::ppoll::{Awaited, wait};
use neph_sys::ring::{BLOCK_BYTES, BlockRing, FilterStep, Packet, RingError, Taking, hardware};
use neph_wire::capture::{ETHERNET, RAW_IP};
use neph_wire::dissect::{Dissected, Link, dissect};
use neph_wire::filter::{Instruction, Start};

use crate::exit::Failure;
use crate::packet_choice::PacketChoice;

/// How long packets wait at most before they are looked at: rare wake-ups leave the processor to
/// those who are watched.
const WAKE: Duration = Duration::from_millis(20);

/// `linux/if_arp.h`: Ethernet, and loopback, which looks like it.
const LIKE_ETHERNET: [u16; 2] = [1, 772];
/// Packets begin with their IP header: tun, raw IP, IP in IP, SIT, GRE.
const BARE_IP: [u16; 5] = [65534, 519, 768, 776, 778];

/// What is listened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening<'a> {
    pub(crate) interface: &'a str,
    /// The network namespace that it is in; the calling thread's where none is named.
    pub(crate) site: Option<&'a str>,
    /// Bytes that are kept of each packet, at most.
    pub(crate) kept: u32,
    /// Memory in which packets wait.
    pub(crate) ring: ByteSize,
    /// Packets that are enough.
    pub(crate) most: u64,
    pub(crate) choice: &'a PacketChoice,
}

/// What was counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Packets that were looked at.
    pub(crate) packets: u64,
    /// Their bytes on the wire, link header included.
    pub(crate) bytes: u64,
    /// Packets of those that are not IP.
    pub(crate) not_ip: u64,
    /// Packets that were lost because the ring was full.
    pub(crate) lost: u64,
    /// How often the ring was full.
    pub(crate) frozen: u64,
}

pub(crate) struct Ears {
    interface: String,
    ring: BlockRing,
    link: Link,
    kept: u32,
    seen: Seen,
    /// Packets that are enough.
    most: u64,
}

impl Ears {
    pub(crate) fn open(listening: &Listening<'_>) -> Result<Self, Failure> {
        let Some(site) = listening.site else {
            return Self::open_here(listening);
        };
        let ns = NetNs::open(site).map_err(Failure::refused)?;
        with_namespace(&ns, || Self::open_here(listening)).map_err(Failure::refused)?
    }

    /// In the calling thread's network namespace.
    fn open_here(listening: &Listening<'_>) -> Result<Self, Failure> {
        let interface = listening.interface;
        let failed = |error: RingError| not_opened(&error, interface);
        let kind = hardware(interface).map_err(failed)?;
        let (link, start) = link(kind).ok_or_else(|| {
            Failure::usage(format!(
                "neph does not know packets of {interface} (kind {kind}); give an Ethernet interface, a tunnel or lo"
            ))
        })?;
        let kept = listening.kept;
        let program = listening.choice.wanted().program(start, kept);
        let filter: Vec<FilterStep> = program.into_iter().map(step).collect();
        let blocks = listening.ring.0.div_ceil(BLOCK_BYTES as u64);
        let taking = Taking {
            blocks: usize::try_from(blocks).unwrap_or(usize::MAX),
            wake: WAKE,
            filter: &filter,
        };
        Ok(Self {
            interface: interface.to_owned(),
            ring: BlockRing::open(interface, &taking).map_err(failed)?,
            link,
            kept,
            seen: Seen::default(),
            most: listening.most,
        })
    }

    pub(crate) const fn seen(&self) -> Seen {
        self.seen
    }

    /// What packets begin with, as a number of the pcap registry, and the bytes kept of each.
    pub(crate) const fn format(&self) -> (u32, u32) {
        let link = match self.link {
            Link::Ip => RAW_IP,
            _ => ETHERNET,
        };
        (link, self.kept)
    }

    /// Whether as many packets came as are enough.
    pub(crate) const fn is_full(&self) -> bool {
        self.seen.packets >= self.most
    }

    /// Waits for packets, at most so long.
    pub(crate) fn wait(&self, most: Duration) -> Result<(), Failure> {
        let mut awaited = [Awaited::readable(self.ring.as_fd())];
        wait(&mut awaited, Some(most)).map_err(Failure::refused)?;
        if !awaited[0].has_notice() {
            return Ok(());
        }
        self.ring.fault().map_or(Ok(()), |fault| {
            let interface = &self.interface;
            Err(Failure::refused(format!(
                "{interface} went down or away: {fault}; watch it again when it is up"
            )))
        })
    }

    /// Takes the packets of a block that arrived up to `until` (nanoseconds since 1970), if a block is
    /// there.
    pub(crate) fn take_block(
        &mut self,
        until: i64,
        mut take: impl FnMut(&Packet<'_>, Option<&Dissected<'_>>),
    ) -> bool {
        let Some(block) = self.ring.next_block() else {
            return false;
        };
        let in_time = block.packets().filter(|packet| packet.stamp() <= until);
        for packet in in_time {
            if self.seen.packets >= self.most {
                break;
            }
            let length = packet.wire_length();
            self.seen.packets += 1;
            self.seen.bytes += u64::from(length);
            let dissected = dissect(self.link, packet.bytes(), length).map(|mut dissected| {
                // The kernel took the outermost tag out of the packet.
                let outermost = packet.tag().map(|tag| tag.control & 0x0fff);
                dissected.vlan = outermost.or(dissected.vlan);
                dissected
            });
            self.seen.not_ip += u64::from(dissected.is_none());
            take(&packet, dissected.as_ref());
        }
        true
    }

    /// Takes what has arrived until now: some of it may still wait in a block that is not full.
    pub(crate) fn take_rest(&mut self, mut take: impl FnMut(&Packet<'_>, Option<&Dissected<'_>>)) {
        let until = clock::wall().0;
        clock::nap(WAKE + WAKE / 2);
        while self.take_block(until, &mut take) {}
        self.count();
    }

    /// Asks the kernel what was lost.
    pub(crate) fn count(&mut self) {
        if let Ok(counts) = self.ring.counts() {
            self.seen.lost += u64::from(counts.dropped);
            self.seen.frozen += u64::from(counts.frozen);
        }
    }
}

/// What packets of this kind of interface begin with.
fn link(kind: u16) -> Option<(Link, Start)> {
    if LIKE_ETHERNET.contains(&kind) {
        return Some((Link::Ethernet, Start::Ethernet));
    }
    BARE_IP.contains(&kind).then_some((Link::Ip, Start::Ip))
}

const fn step(Instruction { code, jt, jf, k }: Instruction) -> FilterStep {
    FilterStep { code, jt, jf, k }
}

fn not_opened(error: &RingError, interface: &str) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::refused(format!(
            "{error}; run it as root, or allow it: setcap cap_net_raw+ep on neph"
        )),
        _ if error.is_missing() => Failure::usage(format!(
            "there is no interface {interface} here; ip link lists them, --site looks in another network namespace"
        )),
        _ => Failure::refused(error),
    }
}
