//! A random lab: its endpoints, what is put in, and its topology and plan as a user would write
//! them.

use std::collections::BTreeSet;

use crate::endpoint::{Endpoint, site};

/// A cause at a place: the rule's name and the endpoint's.
pub(crate) type EndpointCause = (&'static str, &'static str);

/// After which a message is lost. An echo is only known to be lost where an experiment and the second
/// that it waits for last replies take longer than that.
const TIMEOUT: &str = "2s";

/// A lab and how it is measured.
#[derive(Clone, Debug)]
pub(crate) struct Lab {
    /// Its number among those of the same seed, from 0.
    pub(crate) number: usize,
    pub(crate) endpoints: Vec<Endpoint>,
    /// Whether the client forgets its window while idle.
    pub(crate) slow_start_after_idle: bool,
    pub(crate) echo_interval_ms: u64,
    pub(crate) blocks: u32,
    /// What was put in.
    pub(crate) causes: BTreeSet<EndpointCause>,
}

impl Lab {
    /// What measuring takes, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let block: f64 = self.endpoints.iter().map(Endpoint::block_seconds).sum();
        block * f64::from(self.blocks)
    }

    pub(crate) fn topology(&self) -> String {
        let slow_start_after_idle = u8::from(self.slow_start_after_idle);
        let mut text = "version = 1\n\n".to_owned();
        text += site("client", 1).trim_end();
        text += &format!(
            "\nsysctls = {{ \"net.ipv4.tcp_slow_start_after_idle\" = {slow_start_after_idle} }}\n\n"
        );
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            text += &endpoint.topology(number);
        }
        text
    }

    pub(crate) fn plan(&self) -> String {
        let mut text = format!(
            "version = 1\nname = \"lab {}\"\nseed = {}\nblocks = {}\ntimeout = \"{TIMEOUT}\"\n\n",
            self.number,
            self.number + 1,
            self.blocks
        );
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            text += &endpoint.plan(number);
        }
        text += &format!(
            "[companion]\ninterval = \"{}ms\"\n\n\
             [lab]\ntopology = \"lab.toml\"\nprober = \"client\"\n\n",
            self.echo_interval_ms
        );
        for endpoint in &self.endpoints {
            text += &endpoint.reflector();
        }
        text
    }
}
