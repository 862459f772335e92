//! A lab: a topology that is up, with running engines.
//!
//! Owns the handle, taking a lab down, and finding labs by name. [`up`] brings a lab up; [`running_engine`]
//! has the threads of engines. The undo journal lists what was acquired, so that any process can take down a
//! lab whose owner was killed.

mod capabilities;
mod engine_configs;
mod error;
mod kernel_features;
mod list;
mod namespace_worker;
mod recording;
mod rerouting;
mod running_engine;
mod running_tunnel;
mod service;
mod site_placement;
mod status;
mod traffic;
mod up;
mod wake;
mod worker;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use neph_sys::netns::{self, NetNs};
use neph_sys::place::Placement;

use crate::counters::LinkCounters;
use crate::cue::Cue;
use crate::engine::EngineResources;
use crate::guest::{self, Console, FallbackGuests};
use crate::journal::{self, HasKeeper, JournalIdentity, UndoTarget};
use crate::plan::Step;
use crate::topology::Topology;
pub use error::LabError;
pub use list::{LabListing, LabListings};
pub use recording::Recording;
pub use rerouting::RerouteStatus;
use rerouting::Rerouting;
use running_engine::RunningEngine;
use running_tunnel::RunningTunnel;
use service::RunningService;
pub use service::ServiceState;
use status::StatusServer;
pub use status::{DirectionCounts, DirectionStatus, LabStatus, ServiceStatus, TrafficStatus};
use traffic::RunningTraffic;
use wake::CoreWaker;

/// How long a keeper may take to notice that its lab was removed.
const KEEPER_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for bringing up a lab.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Its name: a lower-case letter, then at most 15 lower-case letters, digits or underscores.
    pub name: String,
    /// Where to record the packets of links, if at all. Links of kind netem have no record.
    pub truth: Option<Recording>,
    /// Seed of loss and jitter of all links.
    pub seed: u64,
    /// Scheduling of each engine. The rings of all links share 128 MiB (two per link, at least 1 MiB each),
    /// so with many links each is smaller.
    pub resources: EngineResources,
    /// Whether the calling process exists for the lab only.
    pub keeper: HasKeeper,
    /// If set while the lab comes up, it is taken down again. Set by signal handlers.
    pub stop: Arc<AtomicBool>,
}

impl UpOptions {
    /// A lab called `name` without a record, with seed 1.
    pub fn with_name(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            truth: None,
            seed: 1,
            resources: EngineResources::default(),
            keeper: HasKeeper::No,
            stop: Arc::default(),
        }
    }
}

/// A lab that is up. Dropping it takes it down; [`Lab::down`] also returns errors.
#[derive(Debug)]
pub struct Lab {
    name: String,
    topology: Topology,
    fallback_guests: Vec<FallbackGuests>,
    /// Answers requests for the status of the lab.
    status_server: Option<StatusServer>,
    /// Keeps cores awake while packets cross the links.
    waker: Option<CoreWaker>,
    /// In the order in which they were started.
    services: Vec<RunningService>,
    traffic: Vec<RunningTraffic>,
    /// Changes of routes over time.
    rerouting: Option<Rerouting>,
    tunnels: Vec<RunningTunnel>,
    engines: Vec<RunningEngine>,
    journal: JournalIdentity,
    seed: u64,
    cue: Arc<Cue>,
    is_abandoned: bool,
}

impl Lab {
    /// Brings `topology` up; after an error undoes everything. Needs root and the programs of iproute2.
    ///
    /// # Errors
    /// The name is taken, a record of a link exists already, a privilege or a program is missing, the kernel
    /// refused an operation, or [`UpOptions::stop`] was set.
    pub fn up(topology: &Topology, options: &UpOptions) -> Result<Self, LabError> {
        check_name(&options.name)?;
        let recording = options.truth.as_ref();
        recording.map_or(Ok(()), |recording| recording.check(topology))?;
        up::up(topology, options)
    }

    /// Whether this process may bring up a lab; creates nothing.
    ///
    /// # Errors
    /// It lacks capabilities.
    pub fn check_permission() -> Result<(), LabError> {
        capabilities::check_capabilities()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its topology, with namespaces instead of [`Self::fallback_guests`].
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The guests that this host could not run.
    pub fn fallback_guests(&self) -> &[FallbackGuests] {
        &self.fallback_guests
    }

    /// The namespace of `site`, for probers or reflectors.
    ///
    /// # Errors
    /// There is no such site, or another process took the lab down.
    pub fn namespace(&self, site: &str) -> Result<NetNs, LabError> {
        self.site_index(site)?;
        Ok(NetNs::open(&namespace_name(&self.name, site))?)
    }

    /// The place at `site`: its namespace and its share of the host.
    ///
    /// # Errors
    /// As [`Lab::namespace`].
    pub fn placement(&self, site: &str) -> Result<Placement, LabError> {
        self.site_index(site)?;
        site_placement::find(&self.name, site)
    }

    /// The place at `site` of the lab called `name`, of any process.
    ///
    /// # Errors
    /// There is no such lab or site.
    pub fn placement_by_name(name: &str, site: &str) -> Result<Placement, LabError> {
        site_placement::find(name, site)
    }

    /// The console of the guest at `site` in the lab called `lab`, of any process; `None` if the site is no
    /// guest. Waits until the console is free.
    ///
    /// # Errors
    /// The name is invalid, or the guest has ended.
    pub fn console(lab: &str, site: &str) -> Result<Option<Console>, LabError> {
        check_name(lab)?;
        if !guest::has_console(lab, site) {
            return Ok(None);
        }
        Ok(Some(Console::open(&journal::folder(lab), site)?))
    }

    /// The state of each service: those of overlays and balancers, then those of the topology.
    pub fn services(&self) -> impl Iterator<Item = (&str, ServiceState)> {
        self.services
            .iter()
            .map(|service| (service.name(), service.state()))
    }

    /// The addresses of `site`, IPv4 first.
    ///
    /// # Errors
    /// There is no such site.
    pub fn addresses(&self, site: &str) -> Result<Vec<IpAddr>, LabError> {
        Ok(self.topology.sites[self.site_index(site)?]
            .addresses()
            .collect())
    }

    /// The live counters of the link with this index in the topology; `None` for a link of kind netem.
    pub fn counters(&self, link: usize) -> Option<&Arc<LinkCounters>> {
        self.engines
            .iter()
            .find(|engine| engine.link_index() == link)
            .map(RunningEngine::counters)
    }

    /// Seed of loss, jitter and the choice of paths of the link with this index.
    pub(crate) fn link_seed(&self, link: usize) -> u64 {
        link_seed(self.seed, link)
    }

    /// Restarts the schedules of all links and all traffic now.
    pub fn cue(&self) {
        self.cue.give();
    }

    /// The cue of [`Self::cue`], for callers without the lab.
    pub fn shared_cue(&self) -> Arc<Cue> {
        Arc::clone(&self.cue)
    }

    /// Whether all engines still run.
    pub fn is_forwarding(&self) -> bool {
        self.engines.iter().all(RunningEngine::is_running)
    }

    /// Whether this lab is still up. Any process can take it down by name, and another lab may have the name
    /// now.
    pub fn is_up(&self) -> bool {
        self.journal.is_current(&self.name)
    }

    /// Stops the engines, waits until their records are written, and removes everything.
    ///
    /// # Errors
    /// Objects that could not be removed, or an engine's failure; all steps were tried.
    pub fn down(mut self) -> Result<(), LabError> {
        self.is_abandoned = true;
        self.stop_services();
        let result = self.stop_engines();
        journal::undo(&self.name, UndoTarget::SameJournal(&self.journal))?;
        result
    }

    /// Stops the engines and leaves everything else, like a crash of this process.
    pub fn abandon(mut self) {
        self.is_abandoned = true;
    }

    /// Takes the lab called `name` down, even if the process that brought it up still runs. No lab is no
    /// error.
    ///
    /// # Errors
    /// Objects that could not be removed.
    pub fn down_by_name(name: &str) -> Result<(), LabError> {
        check_name(name)?;
        let content = journal::read_journal(name).unwrap_or_default();
        journal::undo(name, UndoTarget::CurrentLab)?;
        if let (true, Some((pid, start_ticks))) = (content.has_keeper, content.owner) {
            journal::wait_for_process_end(pid, start_ticks, KEEPER_END_TIMEOUT);
        }
        Ok(())
    }

    /// Takes the lab called `name` down if its process has ended; another lab may have the name now.
    ///
    /// # Errors
    /// Objects that could not be removed.
    pub fn down_if_owner_ended(name: &str) -> Result<(), LabError> {
        check_name(name)?;
        Ok(journal::undo(name, UndoTarget::OwnerEnded)?)
    }

    /// The current status of the lab called `name`, of any process.
    ///
    /// # Errors
    /// It is not up, or does not answer.
    pub fn status(name: &str) -> Result<LabStatus, LabError> {
        status::request_status(name)
    }

    /// Every step of bringing up `topology`, in order. Changes nothing.
    ///
    /// # Errors
    /// The name is invalid, or this host cannot provide what a site requests.
    pub fn plan(topology: &Topology, options: &UpOptions) -> Result<Vec<Step>, LabError> {
        check_name(&options.name)?;
        up::steps(topology, options)
    }

    /// All labs of this host, by name.
    ///
    /// # Errors
    /// The folder of their journals cannot be read.
    pub fn list() -> Result<LabListings, LabError> {
        list::list_all()
    }

    /// The lab called `name`, if there is one; ignores other entries.
    ///
    /// # Errors
    /// The name is invalid, or its journal cannot be read.
    pub fn find(name: &str) -> Result<Option<LabListing>, LabError> {
        check_name(name)?;
        list::list_one(name)
    }

    fn site_index(&self, site: &str) -> Result<usize, LabError> {
        self.topology
            .site_index(site)
            .ok_or_else(|| LabError::NoSite {
                lab: self.name.clone(),
                site: site.to_owned(),
            })
    }

    /// In reverse order: later services may need earlier ones.
    fn stop_services(&mut self) {
        if let Some(status_server) = self.status_server.take() {
            status_server.stop();
        }
        if let Some(waker) = self.waker.take() {
            waker.stop();
        }
        self.traffic.clear();
        if let Some(rerouting) = self.rerouting.take() {
            rerouting.stop();
        }
        self.tunnels.clear();
        while let Some(service) = self.services.pop() {
            service.stop();
        }
    }

    fn stop_engines(&mut self) -> Result<(), LabError> {
        // All are stopped before waiting for any: closing packet sockets takes the kernel 57 ms per link
        // (measured: 190 links one after the other, 10.8 s).
        let engines = self.engines.drain(..);
        let stopping_engines: Vec<_> = engines.map(RunningEngine::request_stop).collect();
        let mut outcome = Ok(());
        for stopping in stopping_engines {
            if let Err(error) = stopping.wait() {
                outcome = Err(error.into());
            }
        }
        outcome
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop_services();
        if let Err(error) = self.stop_engines() {
            tracing::warn!("lab {}: {error}", self.name);
        }
        if !self.is_abandoned
            && let Err(error) = journal::undo(&self.name, UndoTarget::SameJournal(&self.journal))
        {
            tracing::warn!("lab {}: {error}; take it down by name", self.name);
        }
    }
}

/// The namespace of `site` in the lab called `lab`. Lab names have no hyphen, so the result is unique.
fn namespace_name(lab: &str, site: &str) -> String {
    format!("neph-{lab}-{site}")
}

/// Links of one lab must not draw the same outcomes; the generator spreads the seed itself.
fn link_seed(seed: u64, link: usize) -> u64 {
    seed.wrapping_add(u64::try_from(link).unwrap_or(u64::MAX) << 32)
}

fn check_name(name: &str) -> Result<(), LabError> {
    let is_valid = name.len() <= 16
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_valid {
        Ok(())
    } else {
        Err(LabError::InvalidName {
            name: name.to_owned(),
        })
    }
}

/// Whether a namespace with this name is mounted.
fn namespace_exists(namespace: &str) -> bool {
    std::path::Path::new(netns::FOLDER).join(namespace).exists()
}
