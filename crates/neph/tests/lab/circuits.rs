//! Transfers that a plan measures, over links whose rate and delay are known.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{is_privileged, neph, run_successfully};

/// The results of a plan that was carried out in its lab.
struct FinishedRun {
    folder: TempDir,
}

impl FinishedRun {
    fn of(topology: &str, plan: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("lab.toml"), topology).expect("writable");
        let path = folder.path().join("plan.toml");
        fs::write(&path, plan).expect("writable");
        let mut command = neph(folder.path(), &["run"]);
        command.arg(&path).args(["--quiet", "--no-report"]);
        run_successfully(command);
        Self { folder }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let mut command = neph(self.folder.path(), arguments);
        command.args(["--format", "json"]);
        serde_json::from_slice(&run_successfully(command).stdout).expect("JSON")
    }

    /// A quantity of each experiment whose label has this part.
    fn values(&self, part: &str, quantity: &str) -> Vec<f64> {
        let json = self.json(&["list", "last"]);
        let entries = json.as_array().expect("experiments").iter();
        let quantity_entries = entries.filter(|entry| {
            entry["scenario"]
                .as_str()
                .is_some_and(|label| label.contains(part))
        });
        let values = quantity_entries.map(|entry| {
            assert_eq!(entry["status"], "complete", "{entry}");
            let experiment = self.json(&["show", entry["id"].as_str().expect("an id")]);
            let rows = experiment["quantities"]
                .as_array()
                .expect("quantities")
                .clone();
            let row = rows.iter().find(|row| row["quantity"] == quantity);
            let value = row.and_then(|row| row["value"].as_f64());
            value.unwrap_or_else(|| panic!("no {quantity} in {rows:?}"))
        });
        values.collect()
    }
}

const TWO_SITES: &str = "version = 1\n\
    [[site]]\nname = \"ams\"\naddress = \"10.83.0.1/24\"\n\
    [[site]]\nname = \"lju\"\naddress = \"10.83.0.2/24\"\n\
    [[link]]\nname = \"ams-lju\"\na = \"ams\"\nb = \"lju\"\ndelay = \"5ms\"\nrate = \"20Mbit/s\"\n";

const TWO_TESTS: &str = "version = 1\nname = \"two tests\"\nduration = \"3s\"\n\
    measure = [\"tcp throughput\", \"udp rr\"]\n\
    [[endpoint]]\nname = \"to lju\"\nurl = \"udp://10.83.0.2:8080\"\n\
    [companion]\nenabled = false\n[lab]\ntopology = \"lab.toml\"\nprober = \"ams\"\n\
    [[lab.reflector]]\nsite = \"lju\"\nflags = \"--throughput\"\n";

#[test]
fn the_rate_of_a_link_limits_goodput_and_its_delay_limits_the_rtt_of_transfers() {
    if !is_privileged("a_link_s_rate_bounds_the_goodput") {
        return;
    }
    let finished_run = FinishedRun::of(TWO_SITES, TWO_TESTS);
    // Headers and the beginning of the connection take a part: 19.1 of 20 Mbit/s at the most.
    let goodput = finished_run.values("tcp throughput", "up_goodput_bit_s");
    let [goodput] = goodput.as_slice() else {
        panic!("{goodput:?}")
    };
    assert!((16e6..=19.3e6).contains(goodput), "{goodput}");
    // 5 ms each way.
    let min_rtt = finished_run.values("udp rr", "rtt_min_ns")[0];
    assert!((10e6..=11.5e6).contains(&min_rtt), "{min_rtt}");
    let rate = finished_run.values("udp rr", "transactions_per_s")[0];
    assert!((60.0..=100.0).contains(&rate), "{rate}");
}

/// A server and three sites behind an uplink with room for 7 Mbit/s of payload.
fn star() -> String {
    let mut topology = "version = 1\n\
        [[site]]\nname = \"bra\"\naddress = \"10.83.0.1/24\"\n\
        [[router]]\nname = \"core\"\naddress = \"10.83.0.9/24\"\n\
        [[link]]\nname = \"uplink\"\na = \"bra\"\nb = \"core\"\ndelay = \"100us\"\nqueue = \"100 packets\"\n\
        a_to_b = { rate = \"7300kbit/s\" }\nb_to_a = { rate = \"10Mbit/s\" }\n"
        .to_owned();
    for (index, site) in (2..).zip(["ams", "mil", "lju"]) {
        topology.push_str(&format!(
            "[[site]]\nname = \"{site}\"\naddress = \"10.83.0.{index}/24\"\n\
             [[link]]\nname = \"{site}\"\na = \"core\"\nb = \"{site}\"\ndelay = \"5ms\"\n"
        ));
    }
    topology
}

#[test]
fn streams_to_three_sites_begin_together_and_share_the_uplink_of_their_server() {
    if !is_privileged("streams_to_three_sites_begin_together") {
        return;
    }
    let plan = "version = 1\nname = \"media\"\nduration = \"15s\"\nmeasure = \"media 3 clients\"\n\
        [[endpoint]]\nname = \"bra\"\nurl = \"udp://10.83.0.1:8080\"\nfrom = [\"ams\", \"mil\", \"lju\"]\n\
        [companion]\nenabled = false\n[lab]\ntopology = \"lab.toml\"\nprober = \"ams\"\n\
        [[lab.reflector]]\nsite = \"bra\"\nflags = \"--media\"\n";
    let finished_run = FinishedRun::of(&star(), plan);
    let rates = finished_run.values("media 3 clients", "media_rate_bit_s");
    assert_eq!(rates.len(), 3);
    let mean = rates.iter().sum::<f64>() / 3.0;
    // min(957, 7000 / 9) kbit/s; the first second of a stream has less.
    let share = mean / 778e3;
    assert!((0.9..=1.1).contains(&share), "{rates:?}");
}
