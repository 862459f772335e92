//! The loads that an experiment requests at sites of its lab, while it runs.
//!
//! Owns which loads there are and the orders for them; each one, from its start to its end, is in
//! [`running`], and whether it did so in [`load_checks`].

mod by_second;
mod guest_cpu;
mod load_checks;
mod running;

use neph_lab::Lab;
use neph_model::{LoadOrder, Order, SiteLoad, Span};

use crate::LoadResults;
use guest_cpu::GuestCpu;
use running::RunningLoad;

/// It is ended when the experiment is over; if no process is left to do that, by itself.
const MAX_LOAD_DURATION: Span = Span::from_secs(24 * 3600);
/// How long loads may take until they work.
const START_TIMEOUT: Span = Span::from_secs(3);

/// Loads that run now; those at this machine end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Stressing {
    running: Vec<RunningLoad>,
    guests: Vec<GuestCpu>,
}

impl Stressing {
    /// Ends what runs, starts what is wanted, and waits until it works, but not for ever. What that which
    /// ran did.
    pub(super) fn set(
        &mut self,
        lab: &Lab,
        requested_loads: &[SiteLoad],
    ) -> Result<LoadResults, String> {
        let results = self.end_all(lab)?;
        for (number, load) in requested_loads.iter().enumerate() {
            let order = Order::Load(LoadOrder {
                work: load.load.clone().into(),
                duration: MAX_LOAD_DURATION,
            });
            let started = RunningLoad::start(load, lab, number, &order);
            let started = started.map_err(|error| format!("load site '{}': {error}", load.site))?;
            self.running.push(started);
        }
        self.await_all(lab)?;
        self.guests = GuestCpu::begin(lab, requested_loads);
        Ok(results)
    }

    fn end_all(&mut self, lab: &Lab) -> Result<LoadResults, String> {
        let (mut refused, mut results) = (None, LoadResults::default());
        // All of them, also after one that cannot be ended.
        while let Some(running) = self.running.pop() {
            let (load, is_late) = (running.requested.clone(), running.is_late);
            // They are started in the plan's order, so the last one's number is how many there are.
            let number = u16::try_from(self.running.len() + 1).unwrap_or(u16::MAX);
            let ended = neph_probe::now();
            match running.end(lab) {
                Ok(output) => {
                    let late_warning = is_late.then(|| load_checks::late_start_warning(&load));
                    results
                        .warnings
                        .extend(load_checks::check_load(&load, &output).or(late_warning));
                    results
                        .seconds
                        .extend(by_second::load_samples(&output, number, ended));
                }
                Err(error) => {
                    let site = load.site;
                    refused.get_or_insert_with(|| format!("end the load at '{site}': {error}"));
                }
            }
        }
        let guests = self.guests.drain(..);
        results
            .seconds
            .extend(guests.flat_map(|guest| guest.end(lab)));
        refused.map_or(Ok(results), Err)
    }

    /// They have the same time, from now on.
    fn await_all(&mut self, lab: &Lab) -> Result<(), String> {
        let deadline = neph_probe::now() + START_TIMEOUT;
        for running in &mut self.running {
            let works = running.works_by(deadline, lab).map_err(|error| {
                format!("wait for the load at '{}': {error}", running.requested.site)
            })?;
            if !works {
                running.is_late = true;
                tracing::warn!(
                    "the load {} has not reached its target after {START_TIMEOUT}; the measurement continues with the load as it is",
                    running.requested
                );
            }
        }
        Ok(())
    }
}
