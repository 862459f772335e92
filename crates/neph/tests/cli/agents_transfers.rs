//! Transfers between sites: throughput that their agents measure.

use std::fs;

use serde_json::Value;

use crate::agent_sites::{SITES, Sites};
use crate::agents::mesh;
use crate::servers::free_port;
use crate::undisturbed::measure_undisturbed;

/// The experiments of a plan with messages and a paced transfer between two agents, as stored.
fn measured() -> (Sites, Vec<Value>) {
    let sites = Sites::new(&["127.0.0.1"]);
    let ports: Vec<u16> = SITES.iter().map(|_| free_port()).collect();
    let plan = mesh(&ports, 100).replace("blocks = 3", "blocks = 1");
    let mut plan = plan.replace(
        "version = 1\n",
        "version = 1\nmeasure = [\"messages\", \"udp throughput 5Mbit/s\"]\n",
    );
    for port in &ports {
        let listen = format!("\"127.0.0.1:{port}\"]");
        let served = format!("\"127.0.0.1:{port}\", \"--throughput={}\"]", free_port());
        plan = plan.replace(&listen, &served);
    }
    fs::write(sites.folder.path("p.toml"), plan).expect("writable");
    let ended = sites.run(&["run", "p.toml"]).0.wait().expect("it ends");
    let experiments = sites.experiments();
    assert!(ended.success(), "{ended}: {experiments:?}");
    (sites, experiments)
}

/// Transfers are measured as messages are: in the same rounds, by the same orders.
#[test]
fn sites_measure_the_throughput_between_them() {
    let (sites, experiments) = measure_undisturbed(measured);
    let is_transfer = |entry: &&Value| {
        let label = entry["scenario"].as_str().unwrap_or_default();
        label.contains("udp throughput 5Mbit/s")
    };
    let transfers: Vec<_> = experiments.iter().filter(is_transfer).collect();
    assert_eq!(
        (experiments.len(), transfers.len()),
        (4, 2),
        "{experiments:?}"
    );
    for transfer in transfers {
        assert_eq!(transfer["status"], "complete", "{transfer}");
        let id = transfer["id"].as_str().expect("an id");
        let shown = sites.neph(&["show", id, "--format", "json"]);
        let shown: Value = serde_json::from_str(&shown).expect("a document");
        let rows = shown["quantities"].as_array().expect("quantities");
        let goodput = rows
            .iter()
            .find(|row| row["quantity"] == "up_goodput_bit_s");
        let goodput = goodput.and_then(|row| row["value"].as_f64());
        let goodput = goodput.unwrap_or_else(|| panic!("{rows:?}"));
        assert!((4.5e6..=5.5e6).contains(&goodput), "{goodput}: {rows:?}");
        let series = shown["series"].as_array().expect("series");
        assert!(
            series
                .iter()
                .any(|entry| entry["series"] == "up_goodput_bit_s"),
            "{series:?}"
        );
    }
}
