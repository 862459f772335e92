//! The plan of a design.
//!
//! An endpoint for each circuit alone, and for each pair of circuits. Links are declared so that the two
//! endpoints of a pair exclude all others and not each other, so that a timetable has them in one round.

use std::collections::BTreeSet;

use neph_model::ParameterName;
use toml::{Table, Value};

use super::{
    ALONE_NETWORK, CAMPAIGN_PREFIX, Design, DesignError, DesignRequest, WITH_PREFIX, circuit_name,
};
use crate::plan::{Plan, PlannedCircuit};

/// An endpoint of the design.
struct DesignEndpoint {
    circuit: usize,
    /// The circuit that is measured at the same time, if there is one.
    alongside: Option<usize>,
    /// Its pair, and which of both it is.
    side: Option<(usize, bool)>,
}

pub(super) fn text(
    plan: &Plan,
    design: &Design,
    request: &DesignRequest,
) -> Result<String, DesignError> {
    let to_design_error = |error: toml::de::Error| DesignError::Text(error.message().to_owned());
    let mut plan_table: Table = plan.text.parse().map_err(to_design_error)?;
    let parts = parts(design);
    let mut table = Table::new();
    let mut add = |key: &str, value: Value| drop(table.insert(key.to_owned(), value));
    add("version", Value::Integer(1));
    add(
        "name",
        Value::from(format!("{CAMPAIGN_PREFIX} {}", plan.name)),
    );
    add("blocks", Value::Integer(design.blocks.into()));
    add("duration", Value::from(request.duration.exact()));
    add("interval", Value::from("1s"));
    add(
        "measure",
        Value::from(format!("tcp throughput {}", request.rate.exact())),
    );
    let companion = [("enabled".to_owned(), Value::Boolean(false))];
    add("companion", Value::Table(companion.into_iter().collect()));
    if let Some(sites) = plan_table.remove("site") {
        add("site", sites);
    }
    let endpoints = parts
        .iter()
        .map(|part| endpoint(plan, design, part, &plan_table));
    add(
        "endpoint",
        Value::Array(endpoints.map(Value::Table).collect()),
    );
    let links = links(design, &parts).into_iter();
    add(
        "shared_link",
        Value::Array(links.map(Value::Table).collect()),
    );
    toml::to_string(&table).map_err(|error| DesignError::Text(error.to_string()))
}

fn parts(design: &Design) -> Vec<DesignEndpoint> {
    let pairs = design.pairs.iter();
    let measured_circuits = pairs.flat_map(|(first, second)| [*first, *second]);
    let measured_circuits: BTreeSet<usize> = measured_circuits.collect();
    let alone_parts = measured_circuits.into_iter().map(|circuit| DesignEndpoint {
        circuit,
        alongside: None,
        side: None,
    });
    let pair_parts = design.pairs.iter().enumerate();
    let pair_parts = pair_parts.flat_map(|(pair, (first, second))| {
        let sides = [(*first, *second, false), (*second, *first, true)];
        sides.map(|(circuit, other, is_second)| DesignEndpoint {
            circuit,
            alongside: Some(other),
            side: Some((pair, is_second)),
        })
    });
    alone_parts.chain(pair_parts).collect()
}

impl DesignEndpoint {
    fn network(&self, design: &Design) -> String {
        match self.alongside {
            None => ALONE_NETWORK.to_owned(),
            Some(other) => format!("{WITH_PREFIX}{}", circuit_name(&design.circuits[other])),
        }
    }

    fn name(&self, design: &Design) -> String {
        let circuit = circuit_name(&design.circuits[self.circuit]);
        format!("{circuit}, {}", self.network(design))
    }
}

/// The endpoint's own table of the plan, with what leads to it.
fn endpoint(plan: &Plan, design: &Design, part: &DesignEndpoint, plan_table: &Table) -> Table {
    let circuit: &PlannedCircuit = &design.circuits[part.circuit];
    let endpoints = plan_table.get("endpoint").and_then(Value::as_array);
    let written_endpoint = endpoints
        .into_iter()
        .flatten()
        .find(|entry| entry.get("name").and_then(Value::as_str) == Some(circuit.endpoint.as_str()));
    let mut table = Table::new();
    let mut add = |key: &str, value: Value| drop(table.insert(key.to_owned(), value));
    add("name", Value::from(part.name(design)));
    for key in ["url", "at"] {
        if let Some(value) = written_endpoint.and_then(|entry| entry.get(key)) {
            add(key, value.clone());
        }
    }
    add("from", Value::from(circuit.site.clone()));
    add("circuit", Value::from(circuit_name(circuit)));
    add("network", Value::from(part.network(design)));
    let endpoint = plan
        .endpoints
        .iter()
        .find(|candidate| candidate.name == circuit.endpoint);
    let port_axis =
        endpoint.and_then(|endpoint| endpoint.axes.parameters.get(&ParameterName::ThroughputPort));
    let throughput_port = port_axis.and_then(|ports| ports.first()?.throughput_port().copied());
    if let Some(throughput_port) = throughput_port {
        add(
            "throughput_port",
            Value::Integer(throughput_port.get().into()),
        );
    }
    table
}

/// Links that are used in the mode load, so that two endpoints with a link in common exclude each other. Both
/// endpoints of a pair are on different sides of each link; two of different pairs share one of them, since
/// the numbers of their pairs differ in a digit.
fn links(design: &Design, parts: &[DesignEndpoint]) -> Vec<Table> {
    let digits = usize::BITS - design.pairs.len().saturating_sub(1).leading_zeros();
    let by_digit = (0..digits).flat_map(|digit| [(Some(digit), false), (Some(digit), true)]);
    let sides = [(None, false), (None, true)].into_iter().chain(by_digit);
    let is_on_side =
        |part: &DesignEndpoint, (digit, is_second): (Option<u32>, bool)| match part.side {
            None => true,
            Some((pair, side)) => {
                let is_one = digit.is_some_and(|digit| pair >> digit & 1 == 1);
                side == (is_one != is_second)
            }
        };
    let link = |(index, side): (usize, (Option<u32>, bool))| {
        let users = parts.iter().filter(|part| is_on_side(part, side));
        let circuits = users.map(|part| {
            let site = &design.circuits[part.circuit].site;
            Value::from(format!("{site} -> {}", part.name(design)))
        });
        Table::from_iter([
            (
                "name".to_owned(),
                Value::from(format!("{CAMPAIGN_PREFIX} {}", index + 1)),
            ),
            ("circuits".to_owned(), Value::Array(circuits.collect())),
        ])
    };
    sides.enumerate().map(link).collect()
}
