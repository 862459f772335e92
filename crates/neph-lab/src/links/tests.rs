//! The steps that build overlays, balancers and guests.

use std::collections::BTreeSet;

use neph_text::Source;

use crate::lab::{Lab, UpOptions};
use crate::topology::Topology;

/// Two hosts at the ends of a row of two routers, with a pod in each; `extra_toml` is added.
fn plan(extra_toml: &str) -> Vec<String> {
    let text = format!(
        "version = 1\nrouter = [{{name = \"r\"}}, {{name = \"s\"}}]\n\
         [[site]]\nname = \"a-b\"\n[[site]]\nname = \"b\"\n\
         [[site]]\nname = \"p\"\ninside = \"a-b\"\naddress = \"10.30.0.11\"\n\
         [[site]]\nname = \"q\"\ninside = \"b\"\naddress = \"10.30.0.12\"\n\
         [[link]]\na = \"a-b\"\nb = \"r\"\n[[link]]\na = \"s\"\nb = \"b\"\n{extra_toml}"
    );
    let topology = Topology::parse(&Source::new("row", text)).expect("fine");
    let steps = Lab::plan(&topology, &UpOptions::with_name("x")).expect("a plan");
    steps.into_iter().map(|step| step.line).collect()
}

const MIDDLE_LINK: &str = "[[link]]\na = \"r\"\nb = \"s\"\n";

#[test]
fn an_overlay_has_the_smallest_mtu_between_its_hosts() {
    let overlay = "[[overlay]]\nname = \"o\"\nkind = \"vxlan\"\npods = [\"p\", \"q\"]\n";
    let with_narrow_link = format!("{MIDDLE_LINK}mtu = 1300\n{overlay}");
    // Not on the path: nothing of the overlay comes there.
    let with_unrelated_link = format!(
        "{MIDDLE_LINK}{overlay}[[site]]\nname = \"c\"\n[[link]]\na = \"r\"\nb = \"c\"\nmtu = 1000\n"
    );
    for (extra_toml, mtu) in [(with_narrow_link, 1250), (with_unrelated_link, 1450)] {
        let steps = plan(&extra_toml);
        let add_command = format!("link add name vx_0 mtu {mtu} ");
        let added = steps.iter().filter(|line| line.contains(&add_command));
        assert_eq!(added.count(), 2, "{steps:#?}");
    }
}

#[test]
fn no_two_overlays_write_the_same_file_or_run_a_service_of_the_same_name() {
    let overlays = "[[site]]\nname = \"t\"\ninside = \"b\"\n\
        [[overlay]]\nname = \"x\"\nkind = \"routed\"\npods = [\"p\", \"q\"]\n\
        [[overlay]]\nname = \"x-a\"\nkind = \"routed\"\npods = [\"t\"]\n";
    let steps = plan(&format!("{MIDDLE_LINK}{overlays}"));
    for (line_start, count) in [("cat > ", 2 * 4 + 2), ("bird -f ", 2 * 4)] {
        let lines = steps.iter().filter(|line| line.starts_with(line_start));
        let headings = lines.map(|line| line.split(" <<").next().unwrap_or_default());
        let headings: Vec<&str> = headings.collect();
        let distinct: BTreeSet<&&str> = headings.iter().collect();
        assert_eq!(
            (headings.len(), distinct.len()),
            (count, count),
            "{headings:#?}"
        );
    }
}

#[test]
fn a_container_that_does_not_run_is_created_again() {
    let overlay = "[[overlay]]\nname = \"o\"\nkind = \"docker\"\nnetwork = \"10.30.0.0/24\"\n\
                   pods = [\"p\", \"q\"]\n";
    let steps = plan(&format!("{MIDDLE_LINK}{overlay}"));
    let script = steps
        .iter()
        .find(|line| line.starts_with("cat > o.swarm.sh"));
    let script = script.expect("it is written");
    let inspection = script.find("inspect -f '{{.State.Running}}' p");
    let removal = script.find("rm -f p ");
    let start = script.find("run -d --name p ");
    assert!(
        inspection.is_some() && inspection < removal && removal < start,
        "{script}"
    );
    assert!(script.contains("command -v busybox"), "{script}");
}

/// The hosts `a` with the pods `p` and `q`, and `b` with `r`, each with a link to a router, and this overlay.
fn flannel_topology(addresses: [&str; 3], keys: &str) -> Result<Topology, Vec<neph_text::Problem>> {
    let [p, q, r] = addresses;
    let text = format!(
        "version = 1\nrouter = [{{name = \"m\"}}]\n\
         site = [{{name = \"a\"}}, {{name = \"b\"}}, {{name = \"p\", inside = \"a\", address = \"{p}\"}}, \
         {{name = \"q\", inside = \"a\", address = \"{q}\"}}, {{name = \"r\", inside = \"b\", address = \"{r}\"}}]\n\
         [[overlay]]\nname = \"o\"\nkind = \"flannel\"\npods = [\"p\", \"q\", \"r\"]\n{keys}\n\
         [[link]]\na = \"a\"\nb = \"m\"\n[[link]]\na = \"b\"\nb = \"m\"\n"
    );
    Topology::parse(&Source::new("leases", text))
}

#[test]
fn flannel_gets_the_subnet_of_each_host() {
    let topology = flannel_topology(
        ["10.30.1.2", "10.30.1.3", "10.30.2.2"],
        "network = \"10.30.0.0/16\"",
    );
    let steps = Lab::plan(&topology.expect("fine"), &UpOptions::with_name("x")).expect("a plan");
    let count_steps = |part: &str| steps.iter().filter(|step| step.line.contains(part)).count();
    assert_eq!(count_steps("FLANNEL_SUBNET=10.30.1.1/24"), 1);
    assert_eq!(count_steps("FLANNEL_SUBNET=10.30.2.1/24"), 1);
    assert_eq!(
        (count_steps("exec flanneld "), count_steps("exec etcd ")),
        (2, 1)
    );
}

#[test]
fn invalid_flannel_topologies_are_refused() {
    let valid_addresses = ["10.30.1.2", "10.30.1.3", "10.30.2.2"];
    let network = "network = \"10.30.0.0/16\"";
    for (addresses, keys, part) in [
        (
            valid_addresses,
            "network = \"10.30.0.0/23\"",
            "no room for subnets",
        ),
        (
            ["10.30.1.2", "10.31.1.3", "10.30.2.2"],
            network,
            "'q' has an address outside",
        ),
        (
            ["10.30.1.2", "10.30.3.3", "10.30.2.2"],
            network,
            "'p' and 'q' are in one host",
        ),
        (
            ["10.30.1.2", "10.30.1.3", "10.30.1.4"],
            network,
            "'p' and 'r' are in two hosts",
        ),
        (
            valid_addresses,
            "network = \"10.30.0.0/16\"\nbackend = \"ipsec\"",
            "'ipsec' is not known",
        ),
        (
            valid_addresses,
            "network = \"10.30.0.0/16\"\n[[link]]\nname = \"more\"\na = \"a\"\nb = \"b\"",
            "'a' has 2 links",
        ),
    ] {
        let mistakes = flannel_topology(addresses, keys).expect_err(part);
        let message = format!("{mistakes:?}");
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_network_must_have_its_own_address() {
    let text = "version = 1\nsite = [{name = \"a\"}, {name = \"p\", inside = \"a\"}]\n\
                [[overlay]]\nname = \"o\"\nkind = \"docker\"\nnetwork = \"10.30.0.7/24\"\n\
                pods = [\"p\"]\n";
    let mistakes = Topology::parse(&Source::new("net", text)).expect_err("not its own");
    assert_eq!(mistakes[0].remedy, "write \"10.30.0.0/24\"");
}

#[test]
fn a_guest_has_a_tap_on_the_bridge_and_all_sites_have_a_route() {
    let guests = "[[guest]]\nname = \"vms\"\nkind = \"uml\"\nsites = [\"p\", \"q\"]\n\
                  memory = \"128MiB\"\nbandwidth = \"10Mbit/s\"\nrun = [\"neph --version\"]\n";
    let steps = plan(&format!("{MIDDLE_LINK}{guests}"));
    let count_steps = |part: &str| steps.iter().filter(|line| line.contains(part)).count();
    assert_eq!(
        count_steps("tuntap add dev tap_2 mode tap"),
        1,
        "{steps:#?}"
    );
    assert_eq!(count_steps("tap_3 mtu 1500 master vm_0 up"), 1);
    assert_eq!(count_steps("dev tap_2 root tbf rate 10000000bit"), 1);
    // Two routers and the other host.
    assert_eq!(count_steps("route add 10.30.0.11/32 via "), 3);
    let starts = "mem=128M initrd=vms.image";
    assert_eq!(
        (count_steps(starts), count_steps("neph --version &\n")),
        (2, 1)
    );
}

#[test]
fn a_qemu_guest_uses_the_configured_kernel_and_accelerator() {
    let plan_with_keys = |keys: &str| {
        let table = "[[guest]]\nname = \"vms\"\nkind = \"qemu\"\nsites = [\"p\", \"q\"]\n";
        plan(&format!("{MIDDLE_LINK}{table}{keys}"))
    };
    let has = |steps: &[String], part: &str| steps.iter().any(|line| line.contains(part));
    let steps = plan_with_keys("");
    assert!(has(&steps, "ls /boot/vmlinuz-*") && has(&steps, "then echo kvm; else echo tcg"));
    assert!(has(&steps, "ifname=tap_2,") && has(&steps, "ifname=tap_3,"));
    let configured_steps = plan_with_keys("kernel = \"/srv/vmlinuz-6.1\"\naccel = \"kvm\"\n");
    assert!(
        has(&configured_steps, "kernel=/srv/vmlinuz-6.1;")
            && has(&configured_steps, "accel=$(echo kvm)")
    );
    assert!(has(&steps, "-smp 1 ") && has(&plan_with_keys("vcpus = 4\n"), "-smp 4 "));
}

#[test]
fn a_guest_has_one_to_sixteen_virtual_processors() {
    let guests = |vcpus: &str| {
        let text = format!(
            "version = 1\nsite = [{{name = \"a\"}}, {{name = \"p\", inside = \"a\"}}]\n\
             [[guest]]\nname = \"m\"\nkind = \"qemu\"\nsites = [\"p\"]\nvcpus = {vcpus}\n"
        );
        Topology::parse(&Source::new("one", text)).map_err(|mistakes| mistakes[0].message.clone())
    };
    assert!(guests("1").is_ok() && guests("16").is_ok());
    for vcpus in ["0", "17"] {
        let mistake = guests(vcpus).expect_err("not so many");
        let expected = format!("a guest has 1 to 16 virtual processors, not {vcpus}");
        assert_eq!(mistake, expected);
    }
}

#[test]
fn a_kernel_path_must_be_absolute_and_free_of_shell_characters() {
    let guests = |kernel: &str| {
        let text = format!(
            "version = 1\nsite = [{{name = \"a\"}}, {{name = \"p\", inside = \"a\"}}]\n\
             [[guest]]\nname = \"m\"\nkind = \"qemu\"\nsites = [\"p\"]\nkernel = \"{kernel}\"\n"
        );
        Topology::parse(&Source::new("one", text))
    };
    assert!(guests("/boot/vmlinuz-6.1.0-56-cloud-amd64").is_ok());
    for kernel in ["vmlinuz", "/boot/a b", "/boot/$(id)", "/boot/'"] {
        let mistakes = guests(kernel).expect_err("no path");
        assert_eq!(mistakes[0].message, "this is no kernel's file", "{kernel}");
    }
}

#[test]
fn namespace_guests_have_a_veth_and_the_same_setup_as_vms() {
    let guests = |kind: &str| {
        let table = format!(
            "{MIDDLE_LINK}[[guest]]\nname = \"g\"\nkind = \"{kind}\"\nsites = [\"p\", \"q\"]\n\
             bandwidth = \"8Mbit/s\"\nport = 9000\nmemory = \"256MiB\"\nrun = \"true\"\n"
        );
        plan(&table)
    };
    let steps = guests("namespace");
    let has = |part: &str| steps.iter().any(|line| line.contains(part));
    assert!(has(
        "link add name tap_2 mtu 1500 type veth peer name vec0 mtu 1500 address 02:6e:70:00:02:00 \
         netns neph-x-p"
    ));
    assert!(has("true &\nexec \"$0\" reflect --listen 0.0.0.0:9000"));
    assert!(has("route add default via "), "its own way out");
    assert!(!has("tuntap") && !has("initramfs") && !has("unless this ends"));
    // Where guests of their own kernels can be or not: those with 'run' are not replaced unasked.
    let uml_steps = guests("uml");
    assert!(
        uml_steps
            .iter()
            .any(|line| line.contains("unless this ends"))
    );
    // The host's side, and that of everybody beyond.
    let is_host_step = |line: &&String| {
        let parts = ["vm_0", "tbf rate 8000000bit", "10.30.0.11"];
        let has_part = parts.iter().any(|part| line.contains(part));
        has_part && (line.starts_with("ip -n") || line.starts_with("tc ")) && !line.contains("x-p ")
    };
    let uml_host_steps: Vec<&String> = uml_steps.iter().filter(is_host_step).collect();
    let namespace_host_steps: Vec<&String> = steps.iter().filter(is_host_step).collect();
    assert!(namespace_host_steps.len() > 4, "{namespace_host_steps:#?}");
    assert_eq!(uml_host_steps, namespace_host_steps);
}
