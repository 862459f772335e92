//! A plan's matrix: every combination of what it varies, as scenarios.
//!
//! Owns the identity of a scenario: the first 8 bytes, big-endian, of the SHA-256 of its canonical
//! text (see [`canonical_text`]).

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{
    ByteSize, Measure, Parameter, ParameterName, Scenario, ScenarioId, Span, TransferTransport,
    reply_size_in_words,
};
use sha2::{Digest, Sha256};

use crate::plan::{Endpoint, Plan, Skip};

/// One combination of an endpoint's values.
struct Combination<'p> {
    endpoint: &'p Endpoint,
    interval: Span,
    request_size: ByteSize,
    response_size: ByteSize,
    parameters: Vec<&'p Parameter>,
}

/// How many combinations a plan has before skips. Saturates.
pub(crate) fn matrix_size(plan: &Plan) -> u64 {
    let sizes = plan.endpoints.iter().map(|endpoint| {
        let axes = &endpoint.axes;
        let lengths = [
            axes.intervals.len(),
            axes.request_sizes.len(),
            axes.response_sizes.len(),
        ];
        let parameter_lengths = axes.parameters.values().map(Vec::len);
        lengths
            .into_iter()
            .chain(parameter_lengths)
            .fold(1_u64, |size, length| size.saturating_mul(length as u64))
    });
    sizes.fold(0, u64::saturating_add)
}

/// The scenarios of a plan: endpoints, intervals, request sizes, reply sizes and then the other
/// parameters by name, the last varying fastest. Their indices are their places.
pub fn scenarios(plan: &Plan) -> Vec<Scenario> {
    let combinations: Vec<Combination<'_>> = combinations(plan)
        .filter(|combination| !plan.skips.iter().any(|skip| combination.matches(skip)))
        .collect();
    let mut scenarios: Vec<Scenario> = combinations
        .iter()
        .map(|combination| combination.scenario(plan))
        .collect();
    name_response_sizes(&mut scenarios);
    let varied = varied_parameters(&scenarios);
    for (index, scenario) in (0..).zip(&mut scenarios) {
        scenario.index = index;
        scenario.id = identity(scenario);
        scenario.varied.clone_from(&varied);
    }
    scenarios
}

/// Whether a skip leaves anything out.
pub(crate) fn matches_any(plan: &Plan, skip: &Skip) -> bool {
    combinations(plan).any(|combination| combination.matches(skip))
}

fn combinations(plan: &Plan) -> impl Iterator<Item = Combination<'_>> {
    plan.endpoints.iter().flat_map(|endpoint| {
        let axes = &endpoint.axes;
        let mut combinations = Vec::new();
        for &interval in &axes.intervals {
            for &request_size in &axes.request_sizes {
                // Where the transport decides, the reply is as long as the request.
                let echoed = [request_size];
                let response_sizes: &[ByteSize] = if endpoint.target.kind().has_reply_size() {
                    &axes.response_sizes
                } else {
                    &echoed
                };
                for &response_size in response_sizes {
                    for parameters in parameter_sets(axes.parameters.values().map(Vec::as_slice)) {
                        if is_transfer(&parameters) {
                            continue;
                        }
                        combinations.push(Combination {
                            endpoint,
                            interval,
                            request_size,
                            response_size,
                            parameters,
                        });
                    }
                }
            }
        }
        combinations.extend(transfers(endpoint));
        combinations
    })
}

/// All ways to choose one value of each parameter.
fn parameter_sets<'a>(lists: impl Iterator<Item = &'a [Parameter]>) -> Vec<Vec<&'a Parameter>> {
    let mut sets = vec![Vec::new()];
    for values in lists {
        let append = |set: &Vec<_>, value| set.iter().copied().chain([value]).collect();
        let extend_set = |set| values.iter().map(move |value| append(set, value));
        sets = sets.iter().flat_map(extend_set).collect();
    }
    sets
}

/// The parameters that a transfer has; what else varies is of messages.
const TRANSFER_PARAMETERS: [ParameterName; 12] = [
    ParameterName::MediaPort,
    ParameterName::Circuit,
    ParameterName::Network,
    ParameterName::CongestionControl,
    ParameterName::Distance,
    ParameterName::Site,
    ParameterName::IpVersion,
    ParameterName::Measure,
    ParameterName::Season,
    ParameterName::Stress,
    ParameterName::ThroughputPort,
    ParameterName::Timeout,
];

fn is_transfer(parameters: &[&Parameter]) -> bool {
    let mut measures = parameters
        .iter()
        .filter_map(|parameter| parameter.measure());
    measures.any(Measure::is_transfer)
}

/// Whether it is throughput over TCP, which has a congestion control.
fn uses_tcp_throughput(parameters: &[&Parameter]) -> bool {
    let mut measures = parameters
        .iter()
        .filter_map(|parameter| parameter.measure()?.throughput());
    measures.any(|test| test.transport == TransferTransport::Tcp)
}

/// The transfers of an endpoint, each once.
fn transfers(endpoint: &Endpoint) -> Vec<Combination<'_>> {
    let axes = endpoint.axes.parameters.iter();
    let axes = axes.filter(|(name, _)| TRANSFER_PARAMETERS.contains(name));
    let axes = axes.map(|(_, values)| values.as_slice());
    let mut sets: Vec<Vec<&Parameter>> = Vec::new();
    for mut set in parameter_sets(axes)
        .into_iter()
        .filter(|set| is_transfer(set))
    {
        if !uses_tcp_throughput(&set) {
            set.retain(|parameter| parameter.name() != ParameterName::CongestionControl);
        }
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    let transfers = sets.into_iter().map(|parameters| Combination {
        endpoint,
        interval: Measure::SECOND,
        request_size: ByteSize(0),
        response_size: ByteSize(0),
        parameters,
    });
    transfers.collect()
}

impl Combination<'_> {
    /// How many there are in an experiment; of a transfer, its seconds.
    fn messages(&self) -> u64 {
        if is_transfer(&self.parameters) {
            return self.endpoint.axes.transfer_seconds();
        }
        self.endpoint.axes.length.messages(self.interval)
    }

    fn matches(&self, skip: &Skip) -> bool {
        fn accepts<T: PartialEq>(values: &[T], value: &T) -> bool {
            values.is_empty() || values.contains(value)
        }
        accepts(&skip.endpoints, &self.endpoint.name)
            && accepts(&skip.intervals, &self.interval)
            && self.has_request_size(&skip.request_sizes)
            && accepts(&skip.response_sizes, &self.response_size)
            && skip.parameters.iter().all(|(name, values)| {
                let parameter = self
                    .parameters
                    .iter()
                    .find(|parameter| parameter.name() == *name);
                parameter.is_some_and(|parameter| {
                    values
                        .iter()
                        .any(|skipped| skipped.fixed() == parameter.fixed())
                })
            })
    }

    /// Whether it sends what one of these sizes becomes.
    fn has_request_size(&self, requested: &[ByteSize]) -> bool {
        let is_own_size =
            |size: &ByteSize| self.endpoint.actual_request_size(*size) == self.request_size;
        requested.is_empty() || requested.iter().any(is_own_size)
    }

    fn scenario(&self, plan: &Plan) -> Scenario {
        let parameters = self.parameters.iter().copied().cloned();
        let timeout = Parameter::Timeout(plan.timeout);
        Scenario {
            id: ScenarioId(0),
            index: 0,
            endpoint: self.endpoint.name.clone(),
            target: self.endpoint.target.clone().into(),
            interval: self.interval,
            request_size: self.request_size,
            response_size: self.response_size,
            messages: self.messages(),
            parameters: parameters.chain([timeout]).collect(),
            varied: Vec::new(),
        }
    }
}

/// Reply sizes belong in labels where one endpoint has several; labels are made of parameters. A scenario
/// is known by what is requested; its label has what is sent too.
fn name_response_sizes(scenarios: &mut [Scenario]) {
    let mut sizes: BTreeMap<String, BTreeSet<ByteSize>> = BTreeMap::new();
    let is_of_messages = |scenario: &Scenario| !scenario.measure().is_transfer();
    for scenario in scenarios.iter().filter(|scenario| is_of_messages(scenario)) {
        let endpoint_sizes = sizes.entry(scenario.endpoint.clone()).or_default();
        if scenario.probe().has_reply_size() {
            endpoint_sizes.insert(scenario.response_size);
        }
    }
    for scenario in scenarios
        .iter_mut()
        .filter(|scenario| is_of_messages(scenario))
    {
        if sizes
            .get(&scenario.endpoint)
            .is_some_and(|sizes| sizes.len() > 1)
        {
            let size = reply_size_in_words(scenario.probe(), scenario.response_size);
            scenario.parameters.insert(Parameter::ResponseSize(size));
        }
    }
}

/// The parameters with more than one value towards the same endpoint. A parameter that differs only
/// between endpoints adds nothing to their names.
fn varied_parameters(scenarios: &[Scenario]) -> Vec<ParameterName> {
    let mut values: BTreeMap<(ParameterName, &str), BTreeSet<String>> = BTreeMap::new();
    for scenario in scenarios {
        for parameter in scenario.parameters.iter() {
            let key = (parameter.name(), scenario.endpoint.as_str());
            values.entry(key).or_default().insert(parameter.text());
        }
    }
    let varying = values.iter().filter(|(_, values)| values.len() > 1);
    let names: BTreeSet<ParameterName> = varying.map(|((name, _), _)| *name).collect();
    names.into_iter().collect()
}

/// What a scenario fixes, one `key=value` a line:
///
/// ```text
/// nephoscope scenario 1
/// endpoint=metro
/// target=ws://10.0.0.2:8080/
/// probe=ws
/// interval_ns=25000000
/// request_bytes=10240
/// response_bytes=1024
/// messages=1200
/// parameter tls=1.3
/// ```
///
/// The parameters come by name, a load without its name; `response_size`, which only repeats what stands
/// above, is left out. Values hold no line breaks: the plan refuses them. Index and labels are not part of
/// it, so that two plans that fix the same share the scenario.
pub fn canonical_text(scenario: &Scenario) -> String {
    let mut text = format!(
        "nephoscope scenario 1\nendpoint={}\ntarget={}\nprobe={}\ninterval_ns={}\n\
         request_bytes={}\nresponse_bytes={}\nmessages={}\n",
        scenario.endpoint,
        scenario.target,
        scenario.probe(),
        scenario.interval.nanos(),
        scenario.request_size.bytes(),
        scenario.response_size.bytes(),
        scenario.messages
    );
    for parameter in scenario.parameters.iter() {
        if parameter.name() != ParameterName::ResponseSize {
            let (name, value) = (parameter.name(), parameter.fixed());
            text.push_str(&format!("parameter {name}={value}\n"));
        }
    }
    text
}

/// The identity of what a scenario fixes.
pub fn identity(scenario: &Scenario) -> ScenarioId {
    let digest = Sha256::digest(canonical_text(scenario).as_bytes());
    let leading_bytes = digest.iter().take(8);
    ScenarioId(leading_bytes.fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests;
