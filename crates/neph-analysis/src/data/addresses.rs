//! Keeps experiments apart whose endpoint was at different addresses.
//!
//! A name may lead to another machine between two blocks. Numbers of two machines are not pooled: each
//! address becomes a level of the factor `address`, with a scenario of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use neph_model::{Parameter, ParameterName};

use super::{CampaignData, ExperimentData};

/// Where the main flow went.
fn address(experiment: &ExperimentData) -> Option<IpAddr> {
    Some(experiment.main()?.flow.target.ip())
}

/// Gives each address of a scenario that was measured at several a scenario of its own.
pub(crate) fn keep_apart(data: &mut CampaignData) {
    let mut seen: BTreeMap<usize, BTreeSet<IpAddr>> = BTreeMap::new();
    for experiment in &data.experiments {
        let addresses = seen.entry(experiment.scenario).or_default();
        addresses.extend(address(experiment));
    }
    for (scenario, addresses) in seen.into_iter().filter(|(_, all)| all.len() > 1) {
        let mut places = BTreeMap::new();
        let plain = data.scenarios[scenario].clone();
        for at in addresses {
            let mut own = plain.clone();
            own.parameters.insert(Parameter::Address(at));
            own.varied.push(ParameterName::Address);
            if places.is_empty() {
                places.insert(at, scenario);
                data.scenarios[scenario] = own;
            } else {
                places.insert(at, data.scenarios.len());
                data.scenarios.push(own);
            }
        }
        for experiment in &mut data.experiments {
            let place = address(experiment).and_then(|at| places.get(&at));
            if let (true, Some(place)) = (experiment.scenario == scenario, place) {
                experiment.scenario = *place;
            }
        }
    }
}
