//! `measure` and `throughput_port`: how a plan writes them.

use std::num::NonZeroU16;

use neph_model::{Measure, Parameter, ParseMeasureError};
use neph_text::{Fault, FromNode, Node, Port};

use super::single_line_text::single_line_text;

/// `"tcp throughput"`, `"udp throughput 100Mbit/s"`.
pub(crate) fn measure(node: &Node) -> Result<Parameter, Fault> {
    let measure = single_line_text(node)?.parse::<Measure>();
    measure
        .map(Parameter::Measure)
        .map_err(|error| Fault::new(error.to_string(), ParseMeasureError::REMEDY))
}

/// The port of `neph throughput serve`.
pub(crate) fn throughput_port(node: &Node) -> Result<Parameter, Fault> {
    port(node).map(Parameter::ThroughputPort)
}

/// The port of `neph media serve`.
pub(crate) fn media_port(node: &Node) -> Result<Parameter, Fault> {
    port(node).map(Parameter::MediaPort)
}

fn port(node: &Node) -> Result<NonZeroU16, Fault> {
    let Port(port) = Port::from_node(node)?;
    Ok(NonZeroU16::new(port).expect("port 0 is refused"))
}
