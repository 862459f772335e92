//! Programs that a lab starts at its sites.

use std::collections::BTreeMap;
use std::path::PathBuf;

use neph_model::Span;

/// A program that runs at a site for as long as the lab is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Lower-case letters, digits and hyphens; at most 24. Unique in the topology.
    pub name: String,
    /// Index of its site in [`super::Topology::sites`].
    pub site: usize,
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// What is set in its environment beside what neph itself has.
    pub environment: BTreeMap<String, String>,
    /// How it is known to be ready; none for as soon as it runs.
    pub ready: Option<Ready>,
    /// Where its output goes; none for `/run/neph/LAB/NAME.log`, which goes with the lab.
    pub log: Option<PathBuf>,
    /// How long it has to end by itself before it is killed.
    pub grace: Span,
}

/// How a service is known to be ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// What is asked again and again.
    pub check: ReadyCheck,
    /// How long at most.
    pub timeout: Span,
}

/// What is asked to know whether a service is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyCheck {
    /// A TCP port at one of the site's own addresses or its loopback takes a connection.
    Tcp(u16),
    /// A program at the site ends with status 0.
    Command(Vec<String>),
}
