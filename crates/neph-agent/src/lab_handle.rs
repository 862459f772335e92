//! The lab that orders are carried out in, shared by those that run at the same time.
//!
//! Owns which orders use it: orders of one season and one load may share it. Another order fails; it
//! does not wait here.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use neph_model::{ExperimentOrder, OrderFailed, SiteLoad, Stress, Warning};
use neph_probe::Placement;

use crate::failure::failed;
use crate::{LinkCounters, LoadResults, link_counters};

/// The lab that an executor measures in, as far as the executor needs to know it.
pub trait LabAccess: std::fmt::Debug + Send {
    /// The lab becomes what it is in a season; nothing to do where it is the same in all.
    ///
    /// # Errors
    /// It could not be brought up, in a sentence.
    fn enter(&mut self, season: Option<&str>) -> Result<(), String>;
    /// Where what measures at a site runs: in its network namespace, within its limits.
    fn placement(&self, site: &str) -> Option<Placement>;
    /// Whether one of the lab's own reflectors listens there.
    fn reflects(&self, address: SocketAddr) -> bool;
    /// An experiment begins: what the lab does at given times counts from now.
    fn cue(&self);
    /// What each direction of each link did so far, in the same order each time.
    fn links(&self) -> Vec<LinkCounters>;
    /// Warnings about everything that is measured in it, for any outcome.
    fn warnings(&self) -> Vec<Warning>;
    /// Loads these sites from now on, and no others; without any, none. What the loads that end with this
    /// did, over all of their time.
    ///
    /// # Errors
    /// A load could not be started or ended, in a sentence.
    fn stress(&mut self, requested: &[SiteLoad]) -> Result<LoadResults, String>;
}

/// The lab, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct LabHandle(Option<Arc<Mutex<SharedLab>>>);

#[derive(Debug)]
struct SharedLab {
    lab: Box<dyn LabAccess>,
    users: usize,
    state: LabState,
}

/// What the orders that use the lab have in common.
#[derive(Clone, Debug, Default, PartialEq)]
struct LabState {
    season: Option<String>,
    loads: Vec<SiteLoad>,
}

impl LabState {
    /// What runs at the same time is of one season and under one load.
    fn of(order: &ExperimentOrder) -> Self {
        let loads = order.scenario.parameters.stress().map(Stress::loads);
        Self {
            season: order.scenario.season().map(str::to_owned),
            loads: loads.unwrap_or_default().to_vec(),
        }
    }
}

impl LabHandle {
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(crate) fn of(lab: Box<dyn LabAccess>) -> Self {
        let shared = SharedLab {
            lab,
            users: 0,
            state: LabState::default(),
        };
        Self(Some(Arc::new(Mutex::new(shared))))
    }

    fn lock(&self) -> Option<MutexGuard<'_, SharedLab>> {
        let shared = self.0.as_ref()?;
        Some(shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The place of a site that an order names.
    pub(crate) fn placement(&self, site: Option<&str>) -> Result<Option<Placement>, OrderFailed> {
        let Some(site) = site else {
            return Ok(None);
        };
        let found_placement = self.lock().and_then(|shared| shared.lab.placement(site));
        found_placement
            .map(Some)
            .ok_or_else(|| failed(format!("find site '{site}'"), "no lab has this site"))
    }

    /// Whether one of the lab's own reflectors listens there.
    pub(crate) fn reflects(&self, address: SocketAddr) -> bool {
        let shared = self.lock();
        shared.is_some_and(|shared| shared.lab.reflects(address))
    }

    /// Makes the lab what experiments need, until the stay ends.
    pub(crate) fn enter(&self, orders: &[ExperimentOrder]) -> Result<Stay<'_>, OrderFailed> {
        let (Some(mut shared), Some(first_order)) = (self.lock(), orders.first()) else {
            return Ok(Stay::of(self));
        };
        let state = LabState::of(first_order);
        if shared.users > 0 && shared.state != state {
            let reason = "another order needs it in another season or under another load";
            return Err(failed("use the lab", reason));
        }
        if shared.users == 0 {
            let entered = shared.lab.enter(state.season.as_deref());
            entered.map_err(|reason| failed("bring the season's lab up", reason))?;
            // What ended here had nothing measured during it.
            let stress_result = shared.lab.stress(&state.loads).map(drop);
            stress_result.map_err(|reason| failed("load the lab's sites", reason))?;
            shared.state = state;
        }
        shared.users += 1;
        Ok(Stay::of(self))
    }
}

/// An order's use of the lab.
#[derive(Debug)]
pub(crate) struct Stay<'a> {
    lab_handle: &'a LabHandle,
    is_over: bool,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<'a> Stay<'a> {
    const fn of(lab_handle: &'a LabHandle) -> Self {
        Self {
            lab_handle,
            is_over: false,
        }
    }

    /// The experiments begin: the lab's cue is given. What its links did until now.
    pub(crate) fn begin(&self) -> Vec<LinkCounters> {
        let Some(shared) = self.lab_handle.lock() else {
            return Vec::new();
        };
        let before = shared.lab.links();
        // Given twice, it would move what an order in progress counts from.
        if shared.users == 1 {
            shared.lab.cue();
        }
        before
    }

    /// What the lab earns, where its links had done `before` when the experiments began.
    pub(crate) fn warnings(&self, before: &[LinkCounters]) -> Vec<Warning> {
        let Some(shared) = self.lab_handle.lock() else {
            return Vec::new();
        };
        let lab_warnings = shared.lab.warnings();
        let link_warnings = link_counters::warnings(before, &shared.lab.links());
        lab_warnings.into_iter().chain(link_warnings).collect()
    }

    /// The stay ends; with the last one the load. What the load did.
    pub(crate) fn end(mut self) -> LoadResults {
        self.leave()
    }

    fn leave(&mut self) -> LoadResults {
        let was_over = std::mem::replace(&mut self.is_over, true);
        let Some(mut shared) = self.lab_handle.lock().filter(|_| !was_over) else {
            return LoadResults::default();
        };
        shared.users = shared.users.saturating_sub(1);
        if shared.users > 0 {
            return LoadResults::default();
        }
        shared.lab.stress(&[]).unwrap_or_else(|reason| {
            tracing::warn!("{reason}");
            LoadResults::default()
        })
    }
}
