//! The kinds of link, overlay, balancer and guest: one file each, and one line in a table here.
//!
//! Owns the choice of the kind of a link. A kind creates interfaces between two sites; the plan adds
//! addresses and routes.

mod bridge;
mod docker;
mod emulated;
mod flannel;
mod guest_settings;
mod guests;
mod haproxy;
mod l4;
mod macvlan;
mod namespace;
mod netem;
mod nginx;
mod pods;
mod proxy;
mod qemu;
mod routed;
#[cfg(test)]
mod tests;
mod tunnel;
mod uml;
mod vxlan;

use crate::plan::Operation;
use crate::topology::Link;
use crate::topology::fixture::FixtureKind;

/// All kinds; the first is the default.
///
/// netem is second although it uses less CPU: with jitter its packets are reordered, and it keeps no record.
/// So the same file would not mean the same network everywhere.
pub(crate) const LINK_KINDS: &[&dyn LinkKind] = &[&emulated::Emulated, &netem::Netem];

/// All kinds of `[[overlay]]`.
pub(crate) const OVERLAY_KINDS: &[&dyn FixtureKind] = &[
    &vxlan::Vxlan,
    &tunnel::UserSpace,
    &routed::Routed,
    &macvlan::Macvlan,
    &bridge::Bridge,
    &docker::Docker,
    &flannel::Flannel,
];

/// All kinds of `[[balancer]]`.
pub(crate) const BALANCER_KINDS: &[&dyn FixtureKind] = &[&l4::L4, &haproxy::HaProxy, &nginx::Nginx];

/// All kinds of `[[guest]]`.
pub(crate) const GUEST_KINDS: &[&dyn FixtureKind] =
    &[&uml::UserMode, &qemu::Qemu, &namespace::Namespace];

/// A kind of link.
pub(crate) trait LinkKind: Sync + std::fmt::Debug {
    /// Its name in a topology (`kind = "..."`).
    fn name(&self) -> &'static str;
    /// Operations that create the interfaces at both sites, in order; they need not be up.
    fn create_operations(&self, placement: &LinkPlacement<'_>) -> Vec<Operation>;
    /// The interfaces in the wire namespace for an engine, if it needs one.
    fn engine_ends(&self, number: usize) -> Option<[String; 2]>;
    /// What `link` requests that this kind cannot do: the key and a description.
    fn unsupported_features(&self, link: &Link) -> Vec<(&'static str, &'static str)>;
}

/// Where to create a link.
#[derive(Debug)]
pub(crate) struct LinkPlacement<'t> {
    /// The link's index in the topology.
    pub(crate) number: usize,
    /// The link.
    pub(crate) link: &'t Link,
    /// The namespace of the lab itself.
    pub(crate) wire_namespace: &'t str,
    /// The namespaces of the link's `a` and `b`.
    pub(crate) site_namespaces: [&'t str; 2],
}

/// The kind of `link`: by its name, or the default.
pub(crate) fn link_kind(link: &Link) -> &'static dyn LinkKind {
    let requested = LINK_KINDS
        .iter()
        .find(|kind| link.kind == Some(kind.name()));
    *requested.unwrap_or(&LINK_KINDS[0])
}

/// The MAC address of an end (0 for `a`, 1 for `b`) of the link with index `number`: locally administered,
/// the same in every run.
pub(crate) fn mac_bytes(number: usize, end: u8) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [0x02, 0x6e, 0x65, high, low, end]
}

/// [`mac_bytes`] as text.
pub(crate) fn mac(number: usize, end: u8) -> String {
    mac_bytes(number, end)
        .map(|byte| format!("{byte:02x}"))
        .join(":")
}
