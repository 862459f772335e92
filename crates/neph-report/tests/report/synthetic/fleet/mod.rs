//! Fleets whose truth is known: seeded flows that move between paths, straight to what is known of
//! them afterwards. Stable or unstable paths, any number of flows and pairs.

mod history;
mod routes;
mod sums;
mod wire;

use neph_analysis::{CampaignData, read_fleet};
use neph_flows::{FleetView, FlowTally, Settings, StatsError, add_advice};
use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, Instant, Local, Parameter, ParameterName, ProbeKind,
    Scenario, Span, Wall,
};
use neph_stats::Random;

use super::{CONTINENT, campaign_over};

/// How often flows change their path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathStability {
    /// Once in hours.
    Stable,
    /// As the third source saw it: many leave within seconds, sooner from low paths.
    Unstable,
}

/// The fleet to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FleetModel {
    pub(crate) flows: u32,
    pub(crate) pairs: u32,
    pub(crate) seconds: i64,
    pub(crate) stability: PathStability,
}

/// One path of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) base: Span,
    pub(crate) weight: f64,
}

/// From Oregon to Virginia in the source: 81 ms and more; then others.
const MIN_RTT_MS: [f64; 8] = [81.2, 148.6, 9.4, 211.0, 64.3, 28.9, 172.5, 118.0];
const NAMES: [&str; 8] = [
    "oregon-virginia",
    "sydney-tokyo",
    "paris-frankfurt",
    "singapore-paris",
    "montreal-oregon",
    "ohio-virginia",
    "mumbai-paris",
    "saopaulo-montreal",
];

impl FleetModel {
    pub(crate) fn random(&self) -> Random {
        Random::new(u64::from(self.flows) * 31 + u64::from(self.pairs))
    }

    pub(crate) fn end(&self) -> Instant<Local> {
        seconds(0.0) + Span::from_secs(self.seconds)
    }

    /// Its view, built from the known values.
    pub(crate) fn view(&self) -> FleetView {
        let endpoint = |index: u32| FleetEndpoint {
            name: match index {
                0..8 => NAMES[index as usize].to_owned(),
                _ => format!("{}-{}", NAMES[(index % 8) as usize], index / 8 + 1),
            },
            address: ([192, 0, 2, u8::try_from(index % 250).unwrap()], 862).into(),
        };
        let fleet = Fleet {
            probe: ProbeKind::Udp,
            slots: self.flows,
            endpoints: (0..self.pairs).map(endpoint).collect(),
            interval: Span::from_millis(200),
            lifetime: None,
            criteria: None,
        };
        let (flows, changes) = history::flows(self);
        let expected = sums::ExpectedView::of(self, &fleet, &flows, &changes);
        let sent = u64::from(self.flows) * u64::try_from(self.seconds * 5).unwrap();
        let mut view = FleetView {
            from: seconds(0.0),
            until: self.end(),
            classes: expected.classes,
            latency_bins: expected.latency_bins,
            spectra: expected.spectra,
            pairs: expected.pairs,
            settings: Settings::default(),
            tally: FlowTally {
                replies: sent - sent / 500,
                lost: sent / 500,
                lost_forward: sent / 800,
                lost_reverse: sent / 500 - sent / 800,
                reordered_forward: changes.len() as u64 / 3,
                ..FlowTally::default()
            },
            advice: Vec::new(),
            dissected: history::dissected(self, &flows, &changes),
            fleet,
            flows,
            changes,
        };
        // Of 50,000 flows it takes a while.
        if self.flows <= 512 {
            add_advice(&mut view);
        }
        view
    }

    /// The messages of its flows.
    pub(crate) fn messages(&self) -> Vec<FleetMessage> {
        wire::messages(self)
    }

    /// Its view, read from the messages of its flows as a report reads them.
    pub(crate) fn view_from_messages(&self) -> FleetView {
        let messages = self.messages();
        let fleet = self.view().fleet;
        let view = read_fleet(&fleet, Settings::default(), |hear| {
            messages.iter().for_each(hear);
            Ok::<(), StatsError>(())
        });
        view.unwrap()
    }

    /// A campaign of one such experiment, which has a fleet and no messages of its own.
    pub(crate) fn campaign(&self) -> CampaignData {
        let mut data = campaign_over(&[CONTINENT], 1);
        data.campaign.name = format!(
            "fleet-{}-{}-{}",
            self.flows,
            self.pairs,
            if self.stability == PathStability::Stable {
                "quiet"
            } else {
                "wild"
            }
        );
        "overseas".clone_into(&mut data.scenarios[0].endpoint);
        for experiment in &mut data.experiments {
            experiment.flows.clear();
            experiment.experiment.warnings.clear();
            experiment.fleet = Some(self.view());
            experiment.traces = vec![routes::trace(self)];
        }
        data
    }
}

/// The third source's seasons: in each block one quiet fleet and one whose flows move, of so many pairs.
pub(crate) fn seasons(blocks: u32, pairs: u32) -> CampaignData {
    let season_model = |block: u32, stability| FleetModel {
        flows: 64 * pairs + block,
        pairs,
        seconds: 600,
        stability,
    };
    let mut data = season_model(0, PathStability::Stable).campaign();
    data.campaign.name = format!("seasons-{blocks}-{pairs}");
    let (scenario, experiment) = (data.scenarios.remove(0), data.experiments.remove(0));
    for (index, season, stability) in [
        (0, "low", PathStability::Stable),
        (1, "high", PathStability::Unstable),
    ] {
        let seasonal = with_season(&scenario, index, season);
        data.scenarios.push(seasonal);
        for block in 0..blocks {
            let mut measured = experiment.clone();
            measured.scenario = index as usize;
            measured.experiment.block = block;
            let start_offset = i64::from(block) * 3_600_000_000_000;
            let started = experiment.experiment.started.unix_nanos() + start_offset;
            measured.experiment.started = Wall::from_unix_nanos(started);
            measured.fleet = Some(season_model(block, stability).view());
            measured.traces.clear();
            data.experiments.push(measured);
        }
    }
    data
}

/// The scenario of this index that is like another but for its season.
pub(crate) fn with_season(template: &Scenario, index: u32, season: &str) -> Scenario {
    let mut scenario = template.clone();
    scenario.index = index;
    scenario.id.0 += u64::from(index);
    scenario
        .parameters
        .insert(Parameter::Season(season.to_owned()));
    scenario.varied.push(ParameterName::Season);
    scenario
}

/// The ways of a pair, the shortest first.
fn paths(endpoint: u32) -> Vec<Path> {
    let index = endpoint as usize;
    let lowest = MIN_RTT_MS[index % 8] * (1.0 + 0.03 * f64::from(endpoint / 8));
    let (count, step) = match endpoint {
        0..16 => (
            2 + (endpoint * 3 + 2) % 5,
            0.02 + 0.017 * f64::from(endpoint * 5 % 4),
        ),
        // Of many pairs most have one path.
        _ if endpoint.is_multiple_of(4) => (2 + endpoint % 5, 0.004 * f64::from(1 + endpoint % 13)),
        _ => (1, 0.0),
    };
    (0..count)
        .map(|path| {
            let factor = 1.0 + step * f64::from(path) * (1.0 + 0.3 * f64::from(path));
            #[expect(
                clippy::cast_possible_truncation,
                reason = "milliseconds in nanoseconds"
            )]
            let base = Span::from_nanos((lowest * factor * 1e6) as i64);
            let weight = 1.0 / (1.0 + f64::from((path * 2 + endpoint) % 5));
            Path { base, weight }
        })
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "days in nanoseconds")]
pub(crate) fn seconds(at: f64) -> Instant<Local> {
    Instant::from_nanos((at * 1e9) as i64)
}

/// Exponentially distributed with that mean.
pub(crate) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}
