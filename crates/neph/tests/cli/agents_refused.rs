//! A reflector that its agent's policy refuses ends the campaign, with what is under way.

use std::fs;

use neph_agent::policy::POLICY_FILE;
use neph_model::ReflectorSpec;
use neph_probe::Reflector;
use serde_json::Value;

use crate::agent_sites::{SITES, Sites, has_no_orders, policy_for_this_host};
use crate::agents::mesh;
use crate::neph::{TIMEOUT, eventually};
use crate::servers::free_port;

const MESSAGES: u64 = 500;

/// ams measures a server, then the reflector at lju.
fn plan(server_port: u16, reflector_port: u16) -> String {
    format!(
        "version = 1\nname = \"refused\"\ninterval = \"10ms\"\nmessages = {MESSAGES}\nblocks = 1\n\
         order = \"sequential\"\nfrom = [\"ams\"]\n[companion]\nenabled = false\n\
         [[site]]\nname = \"ams\"\nagent = \"ams\"\n\
         [[site]]\nname = \"lju\"\nagent = \"lju\"\naddress = \"127.0.0.1\"\n\
         reflector = [\"--listen\", \"127.0.0.1:{reflector_port}\"]\n\
         [[endpoint]]\nname = \"server\"\nurl = \"udp://127.0.0.1:{server_port}\"\n\
         [[endpoint]]\nname = \"to lju\"\nurl = \"udp://lju:{reflector_port}\"\n"
    )
}

/// The policy of an agent whose reflector may listen at no port.
fn policy_without_ports() -> String {
    policy_for_this_host().replace("listen = [\"1024-65535\"]", "")
}

#[test]
fn experiments_that_wait_when_a_reflector_is_refused_never_begin_and_leave_no_campaign() {
    let mut sites = Sites::new(&["127.0.0.1"]);
    let ports: Vec<u16> = SITES.iter().map(|_| free_port()).collect();
    fs::write(sites.folder.path("p.toml"), mesh(&ports, 100)).expect("writable");
    sites.agents.remove("lju");
    let policy_path = sites.folder.path("agent-lju").join(POLICY_FILE);
    fs::write(&policy_path, policy_without_ports()).expect("writable");
    sites.start_agent("lju", None);
    // First: lju measures ams, whose reflector runs.
    let run = ["run", "p.toml", "--order", "sequential"];
    assert_eq!(sites.run(&run).0.wait().expect("it ends").code(), Some(1));
    let campaigns: Value =
        serde_json::from_str(&sites.neph(&["list", "--format", "json"])).expect("JSON");
    assert_eq!(campaigns, Value::Array(Vec::new()));
    for site in SITES {
        let show = [
            "agents",
            "show",
            site,
            "--control",
            "control",
            "--format",
            "json",
        ];
        let shown: Value = serde_json::from_str(&sites.neph(&show)).expect("JSON");
        let orders = shown["orders"].as_array().expect("a list");
        let kinds: Vec<&Value> = orders.iter().map(|order| &order["kind"]).collect();
        assert_eq!(kinds, ["reflector"], "{site}");
    }
}

#[test]
fn an_experiment_under_way_is_interrupted_if_a_reflector_is_refused() {
    let server = Reflector::start(&ReflectorSpec::at(([127, 0, 0, 1], 0).into()));
    let server = server.expect("a reflector");
    let mut sites = Sites::new(&["127.0.0.1"]);
    let plan = plan(server.address().port(), free_port());
    fs::write(sites.folder.path("p.toml"), plan).expect("writable");
    sites.agents.remove("lju");
    let policy_path = sites.folder.path("agent-lju").join(POLICY_FILE);
    fs::write(&policy_path, policy_without_ports()).expect("writable");

    let mut run = sites.run(&["run", "p.toml"]);
    sites.wait_until_measuring("ams");
    sites.start_agent("lju", None);
    assert_eq!(run.0.wait().expect("it ends").code(), Some(1));
    let experiments = sites.experiments();
    assert_eq!(experiments.len(), 1, "{experiments:?}");
    assert_eq!(experiments[0]["status"], "interrupted", "{experiments:?}");
    let messages = experiments[0]["messages"].as_u64();
    assert!(messages < Some(MESSAGES), "{experiments:?}");

    sites.agents.remove("lju");
    fs::write(&policy_path, policy_for_this_host()).expect("writable");
    sites.start_agent("lju", None);
    let resumed = sites.run(&["resume"]).0.wait().expect("it ends");
    let experiments = sites.experiments();
    assert!(resumed.success(), "{experiments:?}");
    let complete = experiments.iter().filter(|row| row["status"] == "complete");
    let counts = complete.map(|row| (row["messages"].as_u64(), row["lost"].as_u64()));
    assert_eq!(counts.collect::<Vec<_>>(), [(Some(MESSAGES), Some(0)); 2]);
    eventually("nothing is left of it", TIMEOUT, || {
        has_no_orders(&sites.folder)
    });
}
