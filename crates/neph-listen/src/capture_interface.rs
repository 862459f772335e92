//! The captured interface, or all interfaces: its link layer, its packets and its counters.

use std::io::ErrorKind;
use std::time::Duration;

use neph_model::Span;
use neph_sys::bpf::MAX_KEPT;
use neph_sys::clock::{self, RawNanos};
use neph_sys::links::{Change, Links};
use neph_sys::netns::{NetNs, with_namespace};
use neph_sys::ring::{FilterStep, Packet, RingError, hardware};
use neph_wire::capture::{COOKED, CookedHeader, ETHERNET, RAW_IP};
use neph_wire::dissect::{Dissected, Link, NoPacket, dissect, why_not};
use neph_wire::filter::{Instruction, Start};

use crate::error::ListenError;
use crate::listening::{ANY, CaptureCounters, CaptureMethod, Heads, Listening};
use crate::source::{Source, WAKE};

/// Maximum wait for the last packets.
const LINGER: Span = Span::from_secs(2);

/// `linux/if_arp.h`: Ethernet, and loopback, which has the same header.
const LIKE_ETHERNET: [u16; 2] = [1, 772];
/// Interfaces whose packets begin with the IP header: tun, raw IP, IP in IP, IP in IPv6, SIT, GRE.
const BARE_IP: [u16; 6] = [65534, 519, 768, 769, 776, 778];

/// Ethertypes of IPv4 and IPv6.
const IP: [u16; 2] = [0x0800, 0x86dd];

#[derive(Debug)]
pub struct CaptureInterface {
    interface: String,
    source: Source,
    heads: Heads,
    snaplen: u32,
    counters: CaptureCounters,
    /// Maximum number of packets.
    max_packets: u64,
    /// The state of the links; `None` where the kernel does not report it.
    links: Option<Links>,
    /// The index of the interface, if there is one and it is up.
    number: Option<u32>,
    /// Packets that passed the filter, including lost ones, and how many of them were read.
    passed: u64,
    read_count: u64,
    /// Whether a packet arrived that is later than the requested time.
    is_past_end: bool,
}

impl CaptureInterface {
    pub fn open(listening: &Listening<'_>) -> Result<Self, ListenError> {
        let Some(site) = listening.site else {
            return Self::open_here(listening);
        };
        let ns = NetNs::open(site).map_err(ListenError::refused)?;
        with_namespace(&ns, || Self::open_here(listening)).map_err(ListenError::refused)?
    }

    /// Opens in the calling thread's network namespace.
    fn open_here(listening: &Listening<'_>) -> Result<Self, ListenError> {
        let interface = listening.interface;
        let failed = |error: RingError| not_opened(&error, listening);
        let (heads, start) = if interface == ANY {
            (Heads::Any, Start::Ip)
        } else {
            let kind = hardware(interface).map_err(failed)?;
            let (link, start) = link(kind).ok_or_else(|| {
                ListenError::wrong(format!(
                    "neph does not know packets of {interface} (kind {kind}); give an Ethernet interface, a tunnel, lo or any"
                ))
            })?;
            (Heads::Ambiguous(link), start)
        };
        let links = Links::listen().ok();
        let number = links
            .as_ref()
            .and_then(|links| links.number_of_up(interface));
        let snaplen = listening.snaplen;
        let program = listening.wanted.program(start, snaplen);
        let filter: Vec<FilterStep> = program.into_iter().map(step).collect();
        may_copy(listening, heads)?;
        let source = Source::open(listening, heads, &filter);
        let source = source.map_err(|error| not_opened(&error, listening))?;
        Ok(Self {
            interface: interface.to_owned(),
            source,
            heads,
            snaplen,
            counters: CaptureCounters::default(),
            max_packets: listening.max_packets,
            links,
            number,
            passed: 0,
            read_count: 0,
            is_past_end: false,
        })
    }

    pub const fn counters(&self) -> CaptureCounters {
        self.counters
    }

    /// The capture method.
    pub const fn method(&self) -> CaptureMethod {
        self.source.method()
    }

    /// Whether all interfaces are captured.
    pub fn is_any(&self) -> bool {
        self.heads == Heads::Any
    }

    /// The link type of the pcap registry, and the captured bytes of a packet.
    pub const fn format(&self) -> (u32, u32) {
        match self.heads {
            Heads::Ambiguous(Link::Ip) => (RAW_IP, self.snaplen),
            Heads::Ambiguous(_) => (ETHERNET, self.snaplen),
            Heads::Any => (COOKED, self.snaplen + CookedHeader::LENGTH),
        }
    }

    /// Whether the maximum number of packets is reached.
    pub const fn is_full(&self) -> bool {
        self.counters.packets >= self.max_packets
    }

    /// Whether no packet waits to be read.
    pub fn has_all(&self) -> bool {
        self.source.has_all()
    }

    /// A function that returns the filled share of the buffer, 0 to 1, on any thread.
    pub fn gauge(&self) -> impl Fn() -> f64 + Send + use<> {
        self.source.gauge()
    }

    /// Waits for packets for at most `max_wait`; an error if the interface goes down.
    pub fn wait(&self, max_wait: Duration) -> Result<(), ListenError> {
        self.source.wait(max_wait)?.map_or(Ok(()), |fault| {
            let interface = &self.interface;
            Err(ListenError::refused(format!(
                "{interface} went down or was removed: {fault}; start neph watch again when it is up"
            )))
        })
    }

    /// Waits for packets for at most `max_wait`; an interface that is down may come up again.
    pub fn wait_despite_link_down(&self, max_wait: Duration) -> Result<(), ListenError> {
        let known = self.links.as_ref().zip(self.number);
        let Some((links, number)) = known else {
            return self.wait(max_wait);
        };
        let fault = self.source.wait(max_wait)?;
        let is_away = fault.is_some_and(|fault| fault.kind() != ErrorKind::NetworkDown);
        if links.has(number) && !is_away {
            return Ok(());
        }
        let interface = &self.interface;
        Err(ListenError::refused(format!(
            "{interface} was removed; start neph watch again when it exists"
        )))
    }

    /// State changes of the captured interfaces since the last call.
    pub fn changes(&mut self) -> Vec<Change> {
        let mut changes = self.links.as_mut().map_or_else(Vec::new, Links::changes);
        if !self.is_any() {
            changes.retain(|change| {
                let (Change::Down(name) | Change::Up(name)) = change;
                *name == self.interface
            });
        }
        changes
    }

    /// Reads the packets that have arrived by now. The last of them are in a block that is not
    /// full, which the kernel returns only after its timeout.
    pub fn take_rest(
        &mut self,
        mut take: impl FnMut(&Packet<'_>, Result<&Dissected<'_>, NoPacket>),
    ) {
        let until = clock::wall().0;
        if self.method() == CaptureMethod::Bpf {
            // After this pause, pending copies are complete. Copies are in the order of time: after
            // the first late packet, all are late, and they may never stop.
            clock::nap(WAKE / 4);
            while self.take(until, true, &mut take) && !self.has_all() && !self.is_past_end {}
            return self.count();
        }
        self.count();
        let read_packets = self.passed - self.counters.lost;
        let end = RawNanos(clock::raw().0 + LINGER.nanos());
        while self.read_count < read_packets {
            if !self.take(until, true, &mut take) {
                if clock::raw() >= end {
                    break;
                }
                clock::nap(WAKE / 4);
            }
        }
    }

    /// Reads some of the next packets, if there are any.
    pub fn take_some(
        &mut self,
        take: impl FnMut(&Packet<'_>, Result<&Dissected<'_>, NoPacket>),
    ) -> bool {
        self.take(i64::MAX, false, take)
    }

    /// Reads packets that arrived up to `until` (nanoseconds since 1970).
    fn take(
        &mut self,
        until: i64,
        is_last: bool,
        mut take: impl FnMut(&Packet<'_>, Result<&Dissected<'_>, NoPacket>),
    ) -> bool {
        let (heads, max_packets) = (self.heads, self.max_packets);
        let (counters, read_count, is_past_end) = (
            &mut self.counters,
            &mut self.read_count,
            &mut self.is_past_end,
        );
        self.source.take(is_last, |packet| {
            *read_count += 1;
            let is_late = packet.stamp() > until;
            *is_past_end |= is_late;
            if is_late
                || counters.packets >= max_packets
                || (heads == Heads::Any && packet.is_echo())
            {
                return;
            }
            let length = packet.wire_length();
            counters.packets += 1;
            let link = heads.link(packet);
            let dissected = link.and_then(|link| dissect(link, packet.bytes(), length));
            let dissected = dissected.map(|mut dissected| {
                // The kernel removes the outermost tag from the packet.
                let outermost = packet.tag().map(|tag| tag.control & 0x0fff);
                let outermost = outermost.filter(|number| *number != 0);
                dissected.vlan = outermost.or(dissected.vlan);
                dissected
            });
            let skip_reason = |link| why_not(link, packet.bytes(), length);
            let dissected = dissected.as_ref();
            let dissected = dissected.ok_or_else(|| link.map_or(NoPacket::NotIp, skip_reason));
            let is_not_ip = dissected.is_err_and(|reason| reason == NoPacket::NotIp);
            counters.not_ip += u64::from(is_not_ip);
            take(packet, dissected);
        })
    }

    /// Adds the kernel's counters.
    pub fn count(&mut self) {
        let [passed, lost, frozen] = self.source.count();
        self.passed += passed;
        self.counters.lost += lost;
        self.counters.frozen += frozen;
    }
}

impl Heads {
    /// The link layer of this packet; `None` if it is unknown.
    fn link(self, packet: &Packet<'_>) -> Option<Link> {
        match self {
            Self::Ambiguous(link) => Some(link),
            Self::Any => IP.contains(&packet.protocol()).then_some(Link::Ip),
        }
    }
}

/// The link layer of this kind of interface.
fn link(kind: u16) -> Option<(Link, Start)> {
    if LIKE_ETHERNET.contains(&kind) {
        return Some((Link::Ethernet, Start::Ethernet));
    }
    BARE_IP.contains(&kind).then_some((Link::Ip, Start::Ip))
}

const fn step(Instruction { code, jt, jf, k }: Instruction) -> FilterStep {
    FilterStep { code, jt, jf, k }
}

/// Checks that a requested capture by BPF copies is possible.
fn may_copy(listening: &Listening<'_>, heads: Heads) -> Result<(), ListenError> {
    let interface = listening.interface;
    let refused = |reason: String| {
        Err(ListenError::wrong(format!(
            "{reason}; leave out --listen bpf"
        )))
    };
    match heads {
        _ if listening.method != Some(CaptureMethod::Bpf) => Ok(()),
        Heads::Any => refused("BPF programs listen to one interface".to_owned()),
        Heads::Ambiguous(Link::Ethernet) if listening.snaplen <= MAX_KEPT => Ok(()),
        Heads::Ambiguous(Link::Ethernet) => refused(format!(
            "BPF programs keep at most {MAX_KEPT} bytes of a packet"
        )),
        Heads::Ambiguous(_) => refused(format!(
            "BPF programs listen where packets begin with Ethernet, not on {interface}"
        )),
    }
}

fn not_opened(error: &RingError, listening: &Listening<'_>) -> ListenError {
    let interface = listening.interface;
    // The capabilities that the requested method needs from start to end.
    let needed = match listening.method {
        Some(CaptureMethod::Bpf) => "cap_net_raw,cap_bpf,cap_net_admin+ep",
        Some(CaptureMethod::Ring) | None => "cap_net_raw+ep",
    };
    match error.kind() {
        ErrorKind::PermissionDenied => ListenError::refused(format!(
            "{error}; run it as root, or allow it: setcap {needed} on neph"
        )),
        _ if error.is_missing() => ListenError::wrong(match listening.site {
            Some(site) => format!(
                "there is no interface {interface} in the network namespace {site}; ip -n {site} link lists those that are"
            ),
            None => format!(
                "there is no interface {interface} here; ip link lists those that are; for another network namespace use {}",
                listening.remote
            ),
        }),
        _ => ListenError::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `linux/if_arp.h`.
    #[test]
    fn tunnels_of_ip_in_ip_begin_with_their_inner_header() {
        for (kind, name) in [(768, "ipip"), (769, "ip6tnl"), (776, "sit"), (778, "gre")] {
            assert!(matches!(link(kind), Some((Link::Ip, Start::Ip))), "{name}");
        }
        assert!(link(24).is_none(), "FireWire");
    }
}
