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
    /// Additions to the environment of neph.
    pub environment: BTreeMap<String, String>,
    /// The ready check; `None`: ready as soon as it runs.
    pub ready: Option<Ready>,
    /// The file for its output; `None`: `/run/neph/LAB/NAME.log`, which is removed with the lab.
    pub log: Option<PathBuf>,
    /// How long it may take to end before it is killed.
    pub grace: Span,
}

/// The ready check of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The check, which is repeated.
    pub check: ReadyCheck,
    /// The timeout.
    pub timeout: Span,
}

/// How to check whether a service is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyCheck {
    /// A TCP port at an address of the site or its loopback accepts a connection.
    Tcp(u16),
    /// A command at the site exits with status 0.
    Command(Vec<String>),
}
