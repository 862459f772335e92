//! `measure` and `throughput_port`: how a plan writes them.

use std::num::NonZeroU16;

use neph_model::{Measure, NoMeasure, Parameter};
use neph_text::{Fault, Node, Port, Take};

use super::word::word;

/// `"tcp throughput"`, `"udp throughput 100Mbit/s"`.
pub(crate) fn measure(node: &Node) -> Result<Parameter, Fault> {
    let measure = word(node)?.parse::<Measure>();
    measure
        .map(Parameter::Measure)
        .map_err(|error| Fault::new(error.to_string(), NoMeasure::REMEDY))
}

/// The port of `neph throughput serve`.
pub(crate) fn throughput_port(node: &Node) -> Result<Parameter, Fault> {
    let Port(port) = Port::take(node)?;
    let port = NonZeroU16::new(port).expect("port 0 is refused");
    Ok(Parameter::ThroughputPort(port))
}
