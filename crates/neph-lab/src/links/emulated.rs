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

    fn create_operations(&self, placement: &LinkPlacement<'_>) -> Vec<Operation> {
        let ends = wire_ends(placement.number);
        let mut operations = Vec::new();
        for (end, (wire_end, site)) in (0..).zip(ends.iter().zip(placement.site_namespaces)) {
            let (name, mac) = (&placement.link.name, mac(placement.number, end));
            let line = format!(
                "link add dev {wire_end} type veth peer name {name} address {mac} netns {site}"
            );
            operations.push(Operation::ip(placement.wire_namespace, line));
            operations.push(Operation::ip(
                placement.wire_namespace,
                format!("link set dev {wire_end} up"),
            ));
        }
        operations
    }

    fn engine_ends(&self, number: usize) -> Option<[String; 2]> {
        Some(wire_ends(number))
    }

    fn unsupported_features(&self, _link: &Link) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

fn wire_ends(number: usize) -> [String; 2] {
    [format!("w{number}a"), format!("w{number}b")]
}
