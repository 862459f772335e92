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
pub(crate) fn split_by_address(data: &mut CampaignData) {
    let mut addresses_by_scenario: BTreeMap<usize, BTreeSet<IpAddr>> = BTreeMap::new();
    for experiment in &data.experiments {
        let addresses = addresses_by_scenario
            .entry(experiment.scenario)
            .or_default();
        addresses.extend(address(experiment));
    }
    for (scenario, addresses) in addresses_by_scenario
        .into_iter()
        .filter(|(_, distinct)| distinct.len() > 1)
    {
        let mut scenario_by_address = BTreeMap::new();
        let original = data.scenarios[scenario].clone();
        for address in addresses {
            let mut separate = original.clone();
            separate.parameters.insert(Parameter::Address(address));
            separate.varied.push(ParameterName::Address);
            if scenario_by_address.is_empty() {
                scenario_by_address.insert(address, scenario);
                data.scenarios[scenario] = separate;
            } else {
                scenario_by_address.insert(address, data.scenarios.len());
                data.scenarios.push(separate);
            }
        }
        for experiment in &mut data.experiments {
            let scenario_index = address(experiment).and_then(|at| scenario_by_address.get(&at));
            if let (true, Some(scenario_index)) = (experiment.scenario == scenario, scenario_index)
            {
                experiment.scenario = *scenario_index;
            }
        }
    }
}
