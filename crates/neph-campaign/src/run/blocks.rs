//! What happens at the start of a block: waiting until it is due, throughput checks, traceroutes.

use neph_model::Span;

use super::{Run, RunError, later, storing};
use crate::carrier::{ThroughputOrder, TracerouteOrder};
use crate::observer::News;

impl Run<'_, '_> {
    /// Returns early, and is done over on resume, when the stop flag is set.
    pub(super) fn begin_block(&mut self, block: u32) -> Result<(), RunError> {
        self.wait_for(block);
        if self.crew.stop.is_set() {
            return Ok(());
        }
        let now = self.crew.clock.now();
        self.begun.entry(block).or_insert(now);
        self.check_throughput(block)?;
        self.trace_routes(block)
    }

    fn wait_for(&mut self, block: u32) {
        let Some(before) = block
            .checked_sub(1)
            .and_then(|before| self.begun.get(&before))
        else {
            return;
        };
        // Checks of this block are there already: it was begun before a crash.
        if self.plan.block_interval == Span::ZERO || self.begun.contains_key(&block) {
            return;
        }
        let until = later(*before, self.plan.block_interval);
        if until > self.crew.clock.now() {
            self.crew.observer.tell(&News::Waiting { block, until });
            self.crew.clock.wait_until(until, self.crew.stop);
        }
    }

    /// A check that is in the store is not done again.
    fn check_throughput(&mut self, block: u32) -> Result<(), RunError> {
        let Some(check) = &self.plan.throughput else {
            return Ok(());
        };
        let id = self.campaign.id;
        let done = storing("read the checks", self.crew.store.throughputs(id))?;
        for server in &check.servers {
            let there = |d: &neph_model::Throughput| d.block == block && d.endpoint == server.name;
            if done.iter().any(there) || self.crew.stop.is_set() {
                continue;
            }
            let order = ThroughputOrder {
                block,
                server: server.clone(),
                duration: check.duration,
                tool: check.tool,
                site: self.plan.lab.as_ref().map(|lab| lab.prober.clone()),
                stop: self.crew.stop.clone(),
            };
            self.crew.observer.tell(&News::CheckBegun(&order));
            let result = self.crew.carrier.check_throughput(&order);
            if self.crew.stop.is_set() {
                // Cut short: its figure would be wrong. On resume it is done over.
                return Ok(());
            }
            storing(
                "add a throughput check",
                self.crew.store.add_throughput(id, &result),
            )?;
            self.crew.observer.tell(&News::Checked(&result));
        }
        Ok(())
    }

    fn trace_routes(&mut self, block: u32) -> Result<(), RunError> {
        let Some(settings) = self.plan.traceroute else {
            return Ok(());
        };
        let id = self.campaign.id;
        let done = storing("read the traceroutes", self.crew.store.traceroutes(id))?;
        for endpoint in &self.plan.endpoints {
            let there =
                |d: &neph_model::Traceroute| d.block == block && d.endpoint == endpoint.name;
            if done.iter().any(there) || self.crew.stop.is_set() {
                continue;
            }
            let result = self.crew.carrier.trace_route(&TracerouteOrder {
                block,
                endpoint: endpoint.name.clone(),
                host: endpoint.target.host.clone(),
                settings,
                site: self.plan.lab.as_ref().map(|lab| lab.prober.clone()),
                stop: self.crew.stop.clone(),
            });
            if self.crew.stop.is_set() {
                return Ok(());
            }
            storing(
                "add a traceroute",
                self.crew.store.add_traceroute(id, &result),
            )?;
            self.crew.observer.tell(&News::Traced(&result));
        }
        Ok(())
    }
}
