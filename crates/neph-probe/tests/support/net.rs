//! Namespaces that are joined by veth pairs.
//!
//! Owns making them, waiting until packets pass, and removing them, also after a panic. Does not
//! own who is where: addresses, routes and settings are those of whoever makes a net.

use std::fs;
use std::path::Path;

use neph_probe::Placement;
use neph_sys::netns::{self, NetNs};
use neph_sys::process;

use super::eventually;

/// Places called `neph-NAME-PID-PLACE`, each with its loopback up; gone when dropped.
pub(crate) struct Net {
    prefix: String,
    places: Vec<String>,
}

/// One end of a link.
pub(crate) struct End<'a> {
    pub(crate) place: &'a str,
    pub(crate) device: &'a str,
    /// With their lengths, as `10.98.0.1/24`.
    pub(crate) addresses: &'a [String],
}

impl Net {
    pub(crate) fn new<P: AsRef<str>>(name: &str, places: &[P]) -> Self {
        let mut net = Self {
            prefix: format!("neph-{name}-{}", std::process::id()),
            places: Vec::new(),
        };
        for place in places {
            let place = place.as_ref();
            net.places.push(place.to_owned());
            ip(&["netns", "add", &net.name(place)]);
            net.ip(place, "link set lo up");
            // Nobody else has our addresses; looking for duplicates takes seconds.
            net.set(place, "net/ipv6/conf/default/accept_dad", "0");
        }
        net
    }

    pub(crate) fn name(&self, place: &str) -> String {
        format!("{}-{place}", self.prefix)
    }

    pub(crate) fn place(&self, place: &str) -> Placement {
        Placement::named(self.name(place))
    }

    pub(crate) fn join(&self, left: &End<'_>, right: &End<'_>) {
        let (there, peer) = (self.name(right.place), right.device);
        let words = format!(
            "link add {} type veth peer name {peer} netns {there}",
            left.device
        );
        self.ip(left.place, &words);
        for End {
            place,
            device,
            addresses,
        } in [left, right]
        {
            for address in *addresses {
                self.ip(place, &format!("address add {address} dev {device} nodad"));
            }
            self.ip(place, &format!("link set {device} up"));
        }
    }

    /// The kernel passes a link's carrier on at most once a second; until then it drops packets.
    pub(crate) fn wait(&self) {
        for place in &self.places {
            eventually("links are up", || {
                let links = self.ip(place, "link show type veth");
                !links.contains("state DOWN") && !links.contains("LOWERLAYERDOWN")
            });
        }
    }

    /// Runs `ip` for a place, with these words; what it printed.
    pub(crate) fn ip(&self, place: &str, words: &str) -> String {
        let name = self.name(place);
        let mut all = vec!["-n", &name];
        all.extend(words.split_whitespace());
        ip(&all)
    }

    /// Runs a program at a place; what it printed.
    pub(crate) fn run(&self, place: &str, words: &[&str]) -> String {
        let name = self.name(place);
        let mut all = vec!["netns", "exec", &name];
        all.extend(words);
        ip(&all)
    }

    pub(crate) fn within<T: Send>(&self, place: &str, work: impl FnOnce() -> T + Send) -> T {
        let ns = NetNs::open(&self.name(place)).expect("it was made");
        netns::with_namespace(&ns, work).expect("enter")
    }

    pub(crate) fn set(&self, place: &str, setting: &str, value: &str) {
        let write = || fs::write(Path::new("/proc/sys").join(setting), value);
        let done = self.within(place, write);
        done.unwrap_or_else(|error| panic!("{setting} in {place}: {error}"));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for place in &self.places {
            let name = self.name(place);
            // One that was not made cannot be removed, and need not be.
            let _ = process::command("ip")
                .args(["netns", "del", &name])
                .status();
        }
    }
}

fn ip(arguments: &[&str]) -> String {
    let done = process::command("ip").args(arguments).output();
    let done = done.expect("ip runs");
    let reported = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {reported}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
