//! Synthetic data that the benchmarks share: noise, and the campaign of their messages.

use neph_model::{
    Campaign, CampaignId, Experiment, ExperimentId, HostFacts, Provenance, ScenarioId, Wall,
};

/// Splitmix64: good enough for realistic timestamps.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// Returns a number in `0..bound`.
    pub(crate) fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i64::try_from((z ^ (z >> 31)) >> 1).unwrap() % bound
    }
}

/// A running campaign.
pub(crate) fn campaign() -> Campaign {
    Campaign::new("bench", Wall::from_unix_nanos(1))
}

/// Its only experiment, without measurements.
pub(crate) fn experiment(campaign: CampaignId) -> Experiment {
    Experiment::new(campaign, ScenarioId(1), Wall::from_unix_nanos(1))
}

/// An empty provenance.
pub(crate) fn provenance(experiment: ExperimentId) -> Provenance {
    Provenance {
        experiment,
        version: String::new(),
        commit: String::new(),
        plan_hash: String::new(),
        site: None,
        host: HostFacts::default(),
        load: None,
        lateness_p50: None,
        lateness_p99: None,
    }
}
