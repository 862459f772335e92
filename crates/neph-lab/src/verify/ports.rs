//! Chooses the flows that are sent, so that each path that UDP may use is measured.

use std::collections::BTreeMap;

use super::end::LinkEnd;
use super::{UnmeasuredPath, sites_of};
use crate::direction::Direction;
use crate::gate::{Gate, Shape};
use crate::lab::Lab;

/// Source ports that are tried to find a flow for each path: enough for a path that gets one flow
/// in a thousand.
const FIRST_PORT: u16 = 20_000;
const PORT_COUNT: u16 = 40_000;

/// A source port for each path that flows of the verification use, by the path's index.
pub(super) fn find_ports(end: &mut LinkEnd, gate: &Gate) -> BTreeMap<usize, u16> {
    first_port_per_path(gate, |port| gate.path_of(end.set_source_port(port)))
}

fn first_port_per_path(gate: &Gate, mut path_of: impl FnMut(u16) -> usize) -> BTreeMap<usize, u16> {
    let path_count = gate.udp_path_count();
    let mut ports = BTreeMap::new();
    for port in FIRST_PORT..FIRST_PORT + PORT_COUNT {
        ports.entry(path_of(port)).or_insert(port);
        if ports.len() >= path_count {
            break;
        }
    }
    ports
}

/// The paths of both directions for which there is no port.
pub(super) fn unmeasured_paths(
    lab: &Lab,
    number: usize,
    requested: [(&Shape, &BTreeMap<usize, u16>); 2],
) -> Vec<UnmeasuredPath> {
    let directions = Direction::BOTH.into_iter().zip(requested);
    let paths = directions.flat_map(|(direction, (shape, ports))| {
        let paths = shape.paths.iter().enumerate();
        paths
            .filter(|(index, _)| !ports.contains_key(index))
            .map(move |(_, path)| (direction, path))
    });
    let unmeasured = paths.map(|(direction, path)| {
        let [from, to] = sites_of(lab, number, direction);
        UnmeasuredPath {
            link: lab.topology().links[number].name.clone(),
            from,
            to,
            path: path.name.clone(),
            weight: path.weight,
            only: path.only,
        }
    });
    unmeasured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Flow, Path, ReservedProtocol, Wire};

    fn gate_with_paths(paths: &[(u32, Option<ReservedProtocol>)]) -> Gate {
        let paths = paths.iter().map(|(weight, only)| Path {
            name: "x".to_owned(),
            weight: *weight,
            only: *only,
            wire: Wire::default(),
        });
        let shape = Shape {
            paths: paths.collect(),
            ..Shape::default()
        };
        Gate::new(shape, 1)
    }

    /// The paths found, and how many ports it took.
    fn find_paths(gate: &Gate) -> (Vec<usize>, u32) {
        let mut tries = 0;
        let ports = first_port_per_path(gate, |port| {
            tries += 1;
            gate.path_of(Some(Flow {
                hash: u64::from(port) << 17,
                protocol: Some(ReservedProtocol::Udp),
            }))
        });
        (ports.into_keys().collect(), tries)
    }

    #[test]
    fn no_port_is_tried_after_the_last_path_is_found() {
        assert_eq!(find_paths(&gate_with_paths(&[])), (vec![0], 1));
        assert_eq!(find_paths(&gate_with_paths(&[(1, None)])), (vec![0], 1));
        let (paths, tries) = find_paths(&gate_with_paths(&[(1, None), (0, None), (1, None)]));
        assert!(paths == [0, 2] && tries < 40, "{paths:?} {tries}");
        let with_icmp_path = [(1, Some(ReservedProtocol::Icmp)), (1, None)];
        assert_eq!(find_paths(&gate_with_paths(&with_icmp_path)), (vec![1], 1));
        let with_udp_path = [(1, None), (1, Some(ReservedProtocol::Udp))];
        assert_eq!(find_paths(&gate_with_paths(&with_udp_path)), (vec![1], 1));
        assert_eq!(
            find_paths(&gate_with_paths(&[(0, None), (0, None)])),
            (vec![0], 1)
        );
    }
}
