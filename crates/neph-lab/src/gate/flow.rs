//! Which of several paths a packet takes: a seeded hash over what names its flow, among those that
//! are reserved for its protocol, or else among those that are reserved for none.
//!
//! Owns what counts as a flow: addresses, protocol and ports of TCP and UDP; addresses, protocol
//! and identifier of an ICMP echo; addresses and protocol of anything else that is IP, fragments
//! included, because only the first of them has ports. IPv6 extension headers are not followed.

use super::shape::{ETHERNET, Path};
use super::splitting::Splitting;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// All of its packets have it; packets of another flow hardly ever do.
    pub number: u64,
    /// Its protocol, if that is one that paths are reserved for.
    pub protocol: Option<Reserved>,
}

/// A protocol that a path can be reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// ICMP and `ICMPv6`.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The flow that an Ethernet frame belongs to; none when it is not IP.
pub(crate) fn flow(frame: &[u8]) -> Option<Flow> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET as usize)?;
    match [ethernet[12], ethernet[13]] {
        [0x08, 0x00] => {
            let header = usize::from(packet.first()? & 0x0f) * 4;
            let fragment = packet.get(6)? & 0x3f != 0 || *packet.get(7)? != 0;
            let behind = if fragment { None } else { packet.get(header..) };
            Some(of(packet.get(12..20)?, *packet.get(9)?, behind))
        }
        [0x86, 0xdd] => Some(of(packet.get(8..40)?, *packet.get(6)?, packet.get(40..))),
        _ => None,
    }
}

fn of(addresses: &[u8], protocol: u8, behind: Option<&[u8]>) -> Flow {
    let behind = behind.unwrap_or_default();
    let named = match (protocol, behind.first()) {
        (TCP | UDP, _) => behind.get(..4),
        (ICMP, Some(0 | 8)) | (ICMP_V6, Some(128 | 129)) => behind.get(4..6),
        _ => None,
    };
    let bytes = addresses.iter().chain([&protocol]);
    // FNV-1a; the seed comes in when a path is chosen.
    let number = bytes
        .chain(named.unwrap_or_default())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    let protocol = match protocol {
        ICMP | ICMP_V6 => Some(Reserved::Icmp),
        TCP => Some(Reserved::Tcp),
        UDP => Some(Reserved::Udp),
        _ => None,
    };
    Flow { number, protocol }
}

/// How many of these paths [`choose`] may answer for a flow of this protocol.
pub(super) fn open_to(protocol: Option<Reserved>, paths: &[Path]) -> usize {
    let weighty = |only: Option<Reserved>| {
        let open = paths.iter().filter(|path| path.only == only);
        open.filter(|path| path.weight > 0).count()
    };
    let reserved = protocol.map_or(0, |protocol| weighty(Some(protocol)));
    match reserved {
        0 => weighty(None).max(1),
        reserved => reserved,
    }
}

/// The index of the path that a flow takes, each as often as its weight says: of those reserved for
/// its protocol if one of them has a weight, or else of those that are not reserved. The first of
/// these where none has a weight, and for what is no flow.
pub(super) fn choose(
    flow: Option<Flow>,
    seed: u64,
    (paths, splitting): (&[Path], Splitting),
) -> usize {
    let total = |only: Option<Reserved>| -> u64 {
        let open = paths.iter().filter(|path| path.only == only);
        open.map(|path| u64::from(path.weight)).sum()
    };
    let protocol = flow.and_then(|flow| flow.protocol);
    let only = protocol.filter(|protocol| total(Some(*protocol)) > 0);
    let open = (0..).zip(paths).filter(|(_, path)| path.only == only);
    let mut open = open.map(|(index, path)| (index, path.weight));
    let chosen = flow.and_then(|flow| splitting.pick(mixed(flow.number ^ seed), open.clone()));
    chosen.or_else(|| Some(open.next()?.0)).unwrap_or(0)
}

/// The seed after so many reshuffles.
pub(super) const fn reshuffled(seed: u64, times: u64) -> u64 {
    mixed(seed.wrapping_add(times.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Every bit of the outcome depends on every bit of `x` (the end of `SplitMix64`, Steele 2014).
pub(crate) const fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Wire;

    /// A UDP packet over IPv4 or IPv6 from a port.
    fn udp(kind: [u8; 2], port: u16) -> Vec<u8> {
        let mut frame = vec![0; 80];
        frame[12..14].copy_from_slice(&kind);
        let ports = if kind == [8, 0] {
            frame[14] = 0x45;
            frame[23] = UDP;
            34
        } else {
            frame[20] = UDP;
            54
        };
        frame[ports..ports + 2].copy_from_slice(&port.to_be_bytes());
        frame
    }

    fn paths(weights: &[u32]) -> Vec<Path> {
        let path = |weight: &u32| Path {
            name: String::new(),
            weight: *weight,
            only: None,
            wire: Wire::default(),
        };
        weights.iter().map(path).collect()
    }

    /// How many of the UDP flows from each port take each path.
    fn spread(kind: [u8; 2], seed: u64, weights: &[u32]) -> Vec<u32> {
        let paths = paths(weights);
        let mut counts = vec![0; weights.len()];
        for port in 0..=u16::MAX {
            counts[choose(flow(&udp(kind, port)), seed, (&paths, Splitting::Ranges))] += 1;
        }
        counts
    }

    #[test]
    fn flows_spread_by_the_weights() {
        for kind in [[8, 0], [0x86, 0xdd]] {
            for weights in [&[1, 1][..], &[3, 1], &[1, 2, 5], &[0, 1]] {
                let total: u32 = weights.iter().sum();
                for (count, weight) in spread(kind, 99, weights).into_iter().zip(weights) {
                    let asked = f64::from(*weight) / f64::from(total);
                    let share = f64::from(count) / 65_536.0;
                    // Five standard deviations of the binomial.
                    assert!((share - asked).abs() <= 0.0098, "{weights:?}: {share}");
                }
            }
        }
        assert_eq!(spread([8, 0], 99, &[0, 0]), [65_536, 0]);
        assert_eq!(spread([8, 6], 99, &[1, 1]), [65_536, 0], "no flow");
    }

    #[test]
    fn a_reshuffle_moves_all_but_one_in_as_many_flows_as_there_are_paths() {
        for count in [2_u32, 4, 8] {
            let paths = paths(&vec![1; count as usize]);
            let chosen = |times, port| {
                let flow = flow(&udp([8, 0], port));
                choose(flow, reshuffled(5, times), (&paths, Splitting::Ranges))
            };
            let ports = 0..=u16::MAX;
            let moved = ports.filter(|port| chosen(0, *port) != chosen(1, *port));
            let moved = f64::from(u32::try_from(moved.count()).expect("few")) / 65_536.0;
            let asked = 1.0 - 1.0 / f64::from(count);
            assert!((moved - asked).abs() < 0.01, "{count} paths: {moved}");
        }
    }

    #[test]
    fn a_reserved_path_takes_its_protocol_and_nothing_else() {
        let mut ping = udp([8, 0], 7);
        ping[23] = ICMP;
        let mut tcp = ping.clone();
        tcp[23] = TCP;
        let mut v6 = udp([0x86, 0xdd], 7);
        v6[20] = ICMP_V6;
        let arp = udp([8, 6], 7);
        let mut paths = paths(&[5, 1, 1]);
        (paths[0].only, paths[2].only) = (Some(Reserved::Icmp), Some(Reserved::Tcp));
        let taken = |paths: &[Path], frame: &[u8]| {
            let seeds = 0..200;
            let taken = seeds.map(|seed| choose(flow(frame), seed, (paths, Splitting::Ranges)));
            let taken: Vec<usize> = taken.collect();
            assert!(taken.iter().all(|index| *index == taken[0]), "{taken:?}");
            taken[0]
        };
        for (frame, index) in [(&ping, 0), (&v6, 0), (&tcp, 2), (&arp, 1)] {
            assert_eq!(taken(&paths, frame), index);
        }
        assert_eq!(taken(&paths, &udp([8, 0], 7)), 1);
        // Closed by a schedule: its packets go where all others do.
        paths[0].weight = 0;
        assert_eq!(taken(&paths, &ping), 1);
    }

    #[test]
    fn a_flow_is_known_by_what_stays_the_same_in_all_its_packets() {
        let one = udp([8, 0], 7);
        let with = |at: usize, value: u8| {
            let mut other = one.clone();
            other[at] = value;
            flow(&other)
        };
        let same = flow(&one);
        for (at, what) in [
            (18, "identification"),
            (22, "time to live"),
            (60, "payload"),
        ] {
            assert_eq!(with(at, 9), same, "{what}");
        }
        for (at, what) in [
            (26, "source"),
            (33, "destination"),
            (34, "port"),
            (23, "protocol"),
        ] {
            assert_ne!(with(at, 9), same, "{what}");
        }
        let mut ping = one.clone();
        (ping[23], ping[34]) = (ICMP, 8);
        let first = flow(&ping);
        ping[41] = 3;
        assert_eq!(flow(&ping), first, "sequence number");
        ping[39] = 3;
        assert_ne!(flow(&ping), first, "identifier");
        let mut fragment = one.clone();
        fragment[20] = 0x20;
        let first = flow(&fragment);
        (fragment[20], fragment[21], fragment[34]) = (0, 9, 77);
        assert_eq!(flow(&fragment), first, "fragments have no ports");
        for length in 0..one.len() {
            flow(&one[..length]);
        }
    }
}
