//! A namespace of a test's own, and two ends of a veth pair in it, for tests of what listens.

use crate::netns::{NetNs, remove, with_namespace};

use crate::process;

/// Runs `work` in a namespace of this name, which is removed afterwards. Without root it prints a note.
pub(crate) fn in_namespace(test: &str, name: &str, work: impl FnOnce() + Send) {
    // SAFETY: geteuid cannot fail and touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{test} needs root"
        );
        println!("SKIP {test}: packet sockets need root");
        return;
    }
    let ns = NetNs::create(name).expect("make a namespace");
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| with_namespace(&ns, work)));
    remove(name).expect("remove");
    outcome
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .expect("enter");
}

/// Runs `work` between two ends of a veth pair, `near` and `far`, in a namespace of its own.
pub(crate) fn with_pair(test: &str, work: impl FnOnce() + Send) {
    let name = format!("nephpair-{}-{test}", std::process::id());
    in_namespace(test, &name, || {
        // Only the test sends packets there.
        let quiet = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
        let _ = std::fs::write(quiet, "1");
        for line in [
            "link set lo up",
            "link add near type veth peer name far",
            "addr add 10.9.0.1/24 dev near",
            "link set near arp off",
            "link set far arp off",
            "link set near up",
            "link set far up",
        ] {
            let done = process::command("ip").args(line.split(' ')).status();
            assert!(done.expect("the ip program").success(), "ip {line}");
        }
        work();
    });
}
