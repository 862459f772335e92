//! What a plan tells is what up does.

use std::collections::BTreeMap;
use std::fs;

use neph_lab::{Lab, UpOptions};
use neph_sys::netns::{NetNs, with_namespace};
use neph_sys::process;
use neph_text::Source;

use crate::support::{can_have_groups, lab_lock, lab_name, leftovers, up};

/// A lab with an overlay, a box and both kinds of link.
const TOPOLOGY: &str = "version = 1\nrouter = [{name = \"r\"}]\nswitch = [{name = \"sw\"}]\n\
    [[site]]\nname = \"a\"\nGROUPS\n[[site]]\nname = \"b\"\ncongestion_control = \"cubic\"\n\
    [[site]]\nname = \"c\"\n\
    [[site]]\nname = \"p\"\ninside = \"a\"\n[[site]]\nname = \"q\"\ninside = \"b\"\n\
    [[link]]\na = \"a\"\nb = \"r\"\nmtu = 1400\n\
    [[link]]\na = \"r\"\nb = \"sw\"\ndelay = \"1ms\"\n\
    [[link]]\na = \"sw\"\nb = \"b\"\n[[link]]\na = \"sw\"\nb = \"c\"\n\
    [[overlay]]\nname = \"o\"\nkind = \"vxlan\"\npods = [\"p\", \"q\"]\n";

/// What follows `mark` in the lines that begin with it.
fn names_after<'t>(lines: impl Iterator<Item = &'t str>, mark: &str) -> Vec<&'t str> {
    let after_mark = lines.filter_map(|line| line.strip_prefix(mark));
    after_mark.collect()
}

#[test]
fn up_acquires_and_sets_what_the_plan_lists() {
    let Some(_lock) = lab_lock("up_acquires_and_sets_what_the_plan_lists") else {
        return;
    };
    let name = lab_name('p');
    let groups = if can_have_groups() {
        "cpus = [0]\ncpu_share = \"50%\""
    } else {
        ""
    };
    let text = TOPOLOGY.replace("GROUPS", groups);
    let topology = neph_lab::Topology::parse(&Source::new("all", text)).expect("fine");
    let steps = Lab::plan(&topology, &UpOptions::with_name(&name)).expect("a plan");
    let lab = up(&topology, &name);
    let journal = fs::read_to_string(format!("/run/neph/{name}/journal")).expect("it is up");
    let planned_lines = || steps.iter().map(|step| step.line.as_str());
    for (plan_prefix, journal_prefix) in [("ip netns add ", "namespace "), ("mkdir ", "group ")] {
        assert_eq!(
            names_after(planned_lines(), plan_prefix),
            names_after(journal.lines(), journal_prefix)
        );
    }
    // Whatever is set twice has the later value.
    let mut settings = BTreeMap::new();
    for step in &steps {
        let setting = step.line.strip_prefix("sysctl -w ");
        if let Some((setting, value)) = setting.and_then(|setting| setting.split_once('=')) {
            settings.insert((&step.namespace, setting), value.trim_matches('\''));
        }
    }
    assert!(settings.len() > 50, "{settings:?}");
    for ((namespace, setting), value) in settings {
        let file = format!("/proc/sys/{}", setting.replace('.', "/"));
        let namespace = NetNs::open(namespace).expect("it is up");
        let actual = with_namespace(&namespace, || fs::read_to_string(&file)).expect("enter");
        let actual = actual.expect("a setting").replace('\t', " ");
        assert_eq!(actual.trim(), value, "{setting} in {}", namespace.name());
    }
    // Every interface that is made is there, with the MTU that it is given last.
    let mut mtus = BTreeMap::new();
    for step in &steps {
        let line = step.line.split_once("link set dev ").map(|(_, rest)| rest);
        if let Some((interface, mtu)) = line.and_then(|line| line.split_once(" mtu ")) {
            let mtu = mtu.split(' ').next().unwrap_or_default();
            mtus.insert((&step.namespace, interface), mtu);
        }
    }
    assert_eq!(mtus.len(), 2, "{mtus:?}");
    for ((namespace, interface), mtu) in mtus {
        let output = process::command("ip")
            .args(["-n", namespace, "link", "show", "dev", interface])
            .output();
        let stdout = String::from_utf8(output.expect("ip").stdout).expect("UTF-8");
        assert!(stdout.contains(&format!("mtu {mtu} ")), "{stdout}");
    }
    lab.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
}
