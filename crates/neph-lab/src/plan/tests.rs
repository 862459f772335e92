//! The order and the wholeness of a plan in words.

use neph_text::Source;

use crate::lab::{Lab, Recording, UpOptions};
use crate::topology::Topology;

/// Everything that a lab can have, but control groups: those depend on the machine.
const FULL_TOPOLOGY: &str = r#"
version = 1
site = [{ name = "a" }, { name = "b" }, { name = "p", inside = "a" }, { name = "q", inside = "b" }]
link = [{ a = "a", b = "b" }, { name = "second", a = "a", b = "b", kind = "netem", delay = "1ms" }]
[[overlay]]
name = "pods"
kind = "tunnel"
pods = ["p", "q"]
[[service]]
name = "web"
site = "b"
command = ["serve", "it all"]
ready = { tcp = 80 }
[[traffic]]
name = "load"
from = "a"
to = "b"
until = "5s"
"#;

#[test]
fn a_lab_plan_lists_all_steps_in_order() {
    let topology = Topology::parse(&Source::new("all", FULL_TOPOLOGY)).expect("fine");
    let mut options = UpOptions::with_name("x");
    options.truth = Some(Recording {
        folder: "/rec".into(),
        every: std::num::NonZeroU32::MIN,
    });
    let steps = Lab::plan(&topology, &options).expect("a plan");
    let mut remaining_steps = steps.iter();
    for (namespace, line) in [
        ("wire", "ip netns add neph-x-wire"),
        ("a", "ip netns add neph-x-a"),
        ("q", "ip netns add neph-x-q"),
        ("wire", "ip -n neph-x-wire link add dev w0a type veth"),
        ("a", "tc -n neph-x-a qdisc"),
        ("a", "ip -n neph-x-a route add 10.78.0.2/32"),
        ("a", "ip -n neph-x-a tuntap add name tun_0"),
        ("b", "nft -f -"),
        ("wire", "ethtool -K w0a tx off"),
        ("wire", "ethtool -K w0b tx off"),
        ("a", "ethtool -K a-b tx off"),
        ("a", "ethtool -K second tx off"),
        ("b", "ethtool -K second tx off"),
        (
            "wire",
            "neph: carry link a-b between w0a and w0b, record it in /rec/a-b.truth",
        ),
        (
            "a",
            "neph: carry packets between tun_0 and UDP at 10.78.0.1:8285",
        ),
        ("a", "ip -n neph-x-a link set dev tun_0 mtu"),
        (
            "b",
            "neph: carry packets between tun_0 and UDP at 10.78.0.2:8285",
        ),
        ("b", "ip -n neph-x-b route add 10.78.0.3/32 dev tun_0"),
        ("b", "serve 'it all'"),
        ("b", "neph: wait, at most 10"),
        ("b", "neph: receive load"),
        ("a", "neph: send load to b"),
        ("wire", "neph: keep the cores awake"),
        ("wire", "neph: give the cue"),
    ] {
        let namespace = format!("neph-x-{namespace}");
        let found =
            remaining_steps.any(|step| step.namespace == namespace && step.line.starts_with(line));
        assert!(found, "'{line}' does not come where it is done: {steps:#?}");
    }
    assert_eq!(remaining_steps.next(), None);
}
