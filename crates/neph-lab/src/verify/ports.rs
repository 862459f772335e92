//! Which flows are sent, so that each path that UDP may take is met.

use std::collections::BTreeMap;

use super::end::End;
use super::{UnmeasuredPath, sites_of};
use crate::direction::Direction;
use crate::gate::{Gate, Shape};
use crate::lab::Lab;

/// Source ports that are tried to find a flow for each path: enough for a path that gets one flow
/// in a thousand.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 40_000;

/// A source port for each path that flows of ours take, by the path's index.
pub(super) fn find_ports(end: &mut End, gate: &Gate) -> BTreeMap<usize, u16> {
    first_ports(gate, |port| gate.path_of(end.send_from(port)))
}

fn first_ports(gate: &Gate, mut path_of: impl FnMut(u16) -> usize) -> BTreeMap<usize, u16> {
    let path_count = gate.udp_path_count();
    let mut ports = BTreeMap::new();
    for port in FIRST_PORT..FIRST_PORT + PORTS {
        ports.entry(path_of(port)).or_insert(port);
        if ports.len() >= path_count {
            break;
        }
    }
    ports
}

/// The paths of both directions that none of these ports stands for.
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

    fn gate_of(paths: &[(u32, Option<ReservedProtocol>)]) -> Gate {
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
    fn search(gate: &Gate) -> (Vec<usize>, u32) {
        let mut tries = 0;
        let ports = first_ports(gate, |port| {
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
        assert_eq!(search(&gate_of(&[])), (vec![0], 1));
        assert_eq!(search(&gate_of(&[(1, None)])), (vec![0], 1));
        let (paths, tries) = search(&gate_of(&[(1, None), (0, None), (1, None)]));
        assert!(paths == [0, 2] && tries < 40, "{paths:?} {tries}");
        let for_ping = [(1, Some(ReservedProtocol::Icmp)), (1, None)];
        assert_eq!(search(&gate_of(&for_ping)), (vec![1], 1));
        let for_udp = [(1, None), (1, Some(ReservedProtocol::Udp))];
        assert_eq!(search(&gate_of(&for_udp)), (vec![1], 1));
        assert_eq!(search(&gate_of(&[(0, None), (0, None)])), (vec![0], 1));
    }
}
