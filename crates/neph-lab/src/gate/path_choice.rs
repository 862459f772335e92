//! Selects the path of a packet: a seeded hash over its flow, among the paths reserved for its protocol, else
//! among those without a reservation.

use super::flow::{Flow, ReservedProtocol};
use super::random::mix_bits;
use super::shape::Path;
use super::splitting::Splitting;

/// Number of these paths that [`choose_path`] may return for a flow of this protocol.
pub(super) fn candidate_path_count(protocol: Option<ReservedProtocol>, paths: &[Path]) -> usize {
    let weighted_path_count = |reservation: Option<ReservedProtocol>| {
        let candidates = paths.iter().filter(|path| path.only == reservation);
        candidates.filter(|path| path.weight > 0).count()
    };
    let reserved_count = protocol.map_or(0, |protocol| weighted_path_count(Some(protocol)));
    match reserved_count {
        0 => weighted_path_count(None).max(1),
        reserved_count => reserved_count,
    }
}

/// The index of the path that a flow takes, at random by weight. Candidates are the paths reserved for its
/// protocol if one of them has a weight, else those without a reservation. The first candidate if none has a
/// weight, and for packets without a flow.
pub(super) fn choose_path(
    flow: Option<Flow>,
    seed: u64,
    paths: &[Path],
    splitting: Splitting,
) -> usize {
    let total_weight = |reservation: Option<ReservedProtocol>| -> u64 {
        let candidates = paths.iter().filter(|path| path.only == reservation);
        candidates.map(|path| u64::from(path.weight)).sum()
    };
    let protocol = flow.and_then(|flow| flow.protocol);
    let reservation = protocol.filter(|protocol| total_weight(Some(*protocol)) > 0);
    let candidates = (0..)
        .zip(paths)
        .filter(|(_, path)| path.only == reservation);
    let mut candidates = candidates.map(|(index, path)| (index, path.weight));
    let chosen =
        flow.and_then(|flow| splitting.pick_path(mix_bits(flow.hash ^ seed), candidates.clone()));
    chosen.or_else(|| Some(candidates.next()?.0)).unwrap_or(0)
}

/// The seed after this many reshuffles.
pub(super) const fn reshuffled_seed(seed: u64, count: u64) -> u64 {
    mix_bits(seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Wire;
    use crate::gate::flow::tests::udp;
    use crate::gate::flow::{ICMP, ICMP_V6, TCP, flow_of_frame};

    fn paths(weights: &[u32]) -> Vec<Path> {
        let path = |weight: &u32| Path {
            name: String::new(),
            weight: *weight,
            only: None,
            wire: Wire::default(),
        };
        weights.iter().map(path).collect()
    }

    /// Number of UDP flows that take each path, one flow from each port.
    fn flow_counts(ethertype: [u8; 2], seed: u64, weights: &[u32]) -> Vec<u32> {
        let paths = paths(weights);
        let mut counts = vec![0; weights.len()];
        for port in 0..=u16::MAX {
            counts[choose_path(
                flow_of_frame(&udp(ethertype, port)),
                seed,
                &paths,
                Splitting::Ranges,
            )] += 1;
        }
        counts
    }

    #[test]
    fn flows_spread_in_proportion_to_the_weights() {
        for ethertype in [[8, 0], [0x86, 0xdd]] {
            for weights in [&[1, 1][..], &[3, 1], &[1, 2, 5], &[0, 1]] {
                let total_weight: u32 = weights.iter().sum();
                for (count, weight) in flow_counts(ethertype, 99, weights).into_iter().zip(weights)
                {
                    let expected = f64::from(*weight) / f64::from(total_weight);
                    let share = f64::from(count) / 65_536.0;
                    // Five standard deviations of the binomial.
                    assert!((share - expected).abs() <= 0.0098, "{weights:?}: {share}");
                }
            }
        }
        assert_eq!(flow_counts([8, 0], 99, &[0, 0]), [65_536, 0]);
        assert_eq!(flow_counts([8, 6], 99, &[1, 1]), [65_536, 0], "no flow");
    }

    #[test]
    fn a_reshuffle_moves_one_minus_one_nth_of_the_flows_of_n_equal_paths() {
        for count in [2_u32, 4, 8] {
            let paths = paths(&vec![1; count as usize]);
            let chosen = |times, port| {
                let flow = flow_of_frame(&udp([8, 0], port));
                choose_path(flow, reshuffled_seed(5, times), &paths, Splitting::Ranges)
            };
            let ports = 0..=u16::MAX;
            let moved = ports.filter(|port| chosen(0, *port) != chosen(1, *port));
            let moved = f64::from(u32::try_from(moved.count()).expect("few")) / 65_536.0;
            let requested = 1.0 - 1.0 / f64::from(count);
            assert!((moved - requested).abs() < 0.01, "{count} paths: {moved}");
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
        paths[0].only = Some(ReservedProtocol::Icmp);
        paths[2].only = Some(ReservedProtocol::Tcp);
        let path_of = |paths: &[Path], frame: &[u8]| {
            let seeds = 0..200;
            let chosen_paths =
                seeds.map(|seed| choose_path(flow_of_frame(frame), seed, paths, Splitting::Ranges));
            let chosen_paths: Vec<usize> = chosen_paths.collect();
            assert!(
                chosen_paths.iter().all(|index| *index == chosen_paths[0]),
                "{chosen_paths:?}"
            );
            chosen_paths[0]
        };
        for (frame, index) in [(&ping, 0), (&v6, 0), (&tcp, 2), (&arp, 1)] {
            assert_eq!(path_of(&paths, frame), index);
        }
        assert_eq!(path_of(&paths, &udp([8, 0], 7)), 1);
        // Closed by a schedule: its packets take the path of all others.
        paths[0].weight = 0;
        assert_eq!(path_of(&paths, &ping), 1);
    }
}
