//! Transfers that a plan measures, over links whose rate and delay are known.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::stage::{neph, privileged, ran};

/// A plan carried out in its lab.
struct Ran {
    folder: TempDir,
}

impl Ran {
    fn of(topology: &str, plan: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("lab.toml"), topology).expect("writable");
        let path = folder.path().join("plan.toml");
        fs::write(&path, plan).expect("writable");
        let mut run = neph(folder.path(), &["run"]);
        run.arg(&path).args(["--quiet", "--no-report"]);
        ran(run);
        Self { folder }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let mut command = neph(self.folder.path(), arguments);
        command.args(["--format", "json"]);
        serde_json::from_slice(&ran(command).stdout).expect("JSON")
    }

    /// A quantity of each experiment whose label has this part.
    fn values(&self, part: &str, quantity: &str) -> Vec<f64> {
        let json = self.json(&["list", "last"]);
        let entries = json.as_array().expect("experiments").iter();
        let of_part = entries.filter(|entry| {
            entry["scenario"]
                .as_str()
                .is_some_and(|label| label.contains(part))
        });
        let values = of_part.map(|of_part| {
            assert_eq!(of_part["status"], "complete", "{of_part}");
            let shown = self.json(&["show", of_part["id"].as_str().expect("an id")]);
            let rows = shown["quantities"].as_array().expect("quantities").clone();
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
fn a_link_s_rate_bounds_the_goodput_and_its_delay_the_round_trip_of_a_plan_s_transfers() {
    if !privileged("a_link_s_rate_bounds_the_goodput") {
        return;
    }
    let ran = Ran::of(TWO_SITES, TWO_TESTS);
    // Headers and the beginning of the connection take a part: 19.1 of 20 Mbit/s at the most.
    let goodput = ran.values("tcp throughput", "up_goodput_bit_s");
    let [goodput] = goodput.as_slice() else {
        panic!("{goodput:?}")
    };
    assert!((16e6..=19.3e6).contains(goodput), "{goodput}");
    // 5 ms each way.
    let min_rtt = ran.values("udp rr", "rtt_min_ns")[0];
    assert!((10e6..=11.5e6).contains(&min_rtt), "{min_rtt}");
    let rate = ran.values("udp rr", "transactions_per_s")[0];
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
    if !privileged("streams_to_three_sites_begin_together") {
        return;
    }
    let plan = "version = 1\nname = \"media\"\nduration = \"15s\"\nmeasure = \"media 3 clients\"\n\
        [[endpoint]]\nname = \"bra\"\nurl = \"udp://10.83.0.1:8080\"\nfrom = [\"ams\", \"mil\", \"lju\"]\n\
        [companion]\nenabled = false\n[lab]\ntopology = \"lab.toml\"\nprober = \"ams\"\n\
        [[lab.reflector]]\nsite = \"bra\"\nflags = \"--media\"\n";
    let ran = Ran::of(&star(), plan);
    let rates = ran.values("media 3 clients", "media_rate_bit_s");
    assert_eq!(rates.len(), 3);
    let mean = rates.iter().sum::<f64>() / 3.0;
    // min(957, 7000 / 9) kbit/s; the first second of a stream has less.
    let share = mean / 778e3;
    assert!((0.9..=1.1).contains(&share), "{rates:?}");
}
