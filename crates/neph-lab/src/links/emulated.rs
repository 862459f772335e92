//! The link that Nephoscope carries itself: a veth pair for each end, whose far sides lie in the
//! lab's wire namespace, with an [`crate::Engine`] between them.

use super::{LinkKind, LinkPlacement, mac};
use crate::plan::Operation;
use crate::topology::Link;

#[derive(Debug)]
pub(crate) struct Emulated;

impl LinkKind for Emulated {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn lay(&self, laying: &LinkPlacement<'_>) -> Vec<Operation> {
        let ends = wire_ends(laying.number);
        let mut operations = Vec::new();
        for (end, (wire_end, site)) in (0..).zip(ends.iter().zip(laying.sites)) {
            let (name, mac) = (&laying.link.name, mac(laying.number, end));
            let line = format!(
                "link add dev {wire_end} type veth peer name {name} address {mac} netns {site}"
            );
            operations.push(Operation::ip(laying.wire, line));
            operations.push(Operation::ip(
                laying.wire,
                format!("link set dev {wire_end} up"),
            ));
        }
        operations
    }

    fn engine_ends(&self, number: usize) -> Option<[String; 2]> {
        Some(wire_ends(number))
    }

    fn refuses(&self, _link: &Link) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

fn wire_ends(number: usize) -> [String; 2] {
    [format!("w{number}a"), format!("w{number}b")]
}
