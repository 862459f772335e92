//! What happens at the start of a block: waiting until it is due, then throughput checks and
//! traceroutes of every pair that the plan measures.

use neph_model::{
    BitRate, Order, OrderFailed, OrderResult, PingOrder, Span, Throughput, ThroughputOrder,
    Traceroute, TracerouteOrder, Update, Wall,
};

use super::{Run, RunError, map_store_error};
use crate::observer::CampaignEvent;
use crate::pairs::{site_of, sites_to_endpoint, sites_to_server};

/// When blocks with a period begin: at the first one's start and every period after it.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    first_start: Wall,
    /// Above zero.
    period: Span,
}

impl Schedule {
    /// The start of the block after one that began at `previous_start`. One that took longer, or that
    /// was interrupted for a while, does not shift those that follow: a period is skipped.
    fn next_start(self, previous_start: Wall, now: Wall) -> Wall {
        let elapsed_nanos = |time: Wall| {
            time.unix_nanos()
                .saturating_sub(self.first_start.unix_nanos())
        };
        let period = self.period.nanos().max(1);
        // A block begins some milliseconds after its scheduled time.
        let previous_period = elapsed_nanos(previous_start)
            .saturating_add(period / 2)
            .div_euclid(period);
        let due_period = elapsed_nanos(now).saturating_sub(1).div_euclid(period);
        self.first_start
            + self
                .period
                .times(previous_period.max(due_period).saturating_add(1))
    }
}

impl Run<'_, '_> {
    /// Returns early, and is done over on resume, when the stop flag is set.
    pub(super) fn begin_block(&mut self, block: u32) -> Result<(), RunError> {
        self.wait_for_block(block)?;
        if self.participants.stop.is_set() {
            return Ok(());
        }
        let now = self.participants.clock.now();
        self.block_starts.entry(block).or_insert(now);
        self.check_throughput(block)?;
        self.trace_routes(block)
    }

    fn wait_for_block(&mut self, block: u32) -> Result<(), RunError> {
        let Some(previous) = block
            .checked_sub(1)
            .and_then(|previous| self.block_starts.get(&previous))
        else {
            return Ok(());
        };
        // Checks of this block are there already: it was begun before a crash.
        if self.plan.block_interval == Span::ZERO || self.block_starts.contains_key(&block) {
            return Ok(());
        }
        let wait_end = match (
            &self.plan.strict_block_interval,
            self.block_starts.values().min(),
        ) {
            (Some(block_period), Some(first_start)) => {
                let schedule = Schedule {
                    first_start: *first_start,
                    period: block_period.value,
                };
                schedule.next_start(*previous, self.participants.clock.now())
            }
            _ => *previous + self.plan.block_interval,
        };
        if wait_end > self.participants.clock.now() {
            self.participants.observer.report(&CampaignEvent::Waiting {
                block,
                until: wait_end,
            });
            self.wait_until(block, wait_end)?;
        }
        Ok(())
    }

    /// Waits, and pings the plan's destinations meanwhile.
    pub(super) fn wait_until(&mut self, block: u32, until: Wall) -> Result<(), RunError> {
        if let (false, Some(scenario)) = (self.plan.pings.is_empty(), self.matrix.first()) {
            let order = PingOrder {
                block,
                pings: self.pings(),
                until,
                timeout: self.plan.timeout,
                site: site_of(self.plan, scenario),
            };
            self.ping(order)?;
        }
        self.wait(until)
    }

    /// That no ping could be sent is reported by the experiments.
    fn ping(&mut self, order: PingOrder) -> Result<(), RunError> {
        let outcome = self.follow(Order::Pings(order), |run, update| {
            let Update::Pinged(pings) = update else {
                return Ok(());
            };
            let added = run
                .participants
                .store
                .add_pings_between(run.campaign.id, &pings);
            map_store_error("add pings between experiments", added)
        })?;
        if let Err(failure) = outcome {
            tracing::warn!("{failure}");
        }
        Ok(())
    }

    /// A check that is in the store is not done again.
    fn check_throughput(&mut self, block: u32) -> Result<(), RunError> {
        let Some(check) = &self.plan.throughput else {
            return Ok(());
        };
        let id = self.campaign.id;
        let existing = map_store_error("read the checks", self.participants.store.throughputs(id))?;
        let pairs = check.servers.iter().flat_map(|server| {
            let sites = sites_to_server(self.plan, &self.matrix, &server.value);
            sites.into_iter().map(move |site| (&server.value, site))
        });
        for (server, site) in pairs.collect::<Vec<_>>() {
            let is_same = |stored: &Throughput| {
                (stored.block, &stored.endpoint, &stored.site) == (block, &server.name, &site)
            };
            if existing.iter().any(is_same) || self.participants.stop.is_set() {
                continue;
            }
            let order = ThroughputOrder {
                block,
                server: server.clone(),
                duration: check.duration,
                tool: check.tool,
                site: site.clone(),
            };
            self.participants
                .observer
                .report(&CampaignEvent::CheckBegun(&order));
            let check_result = Throughput {
                site,
                ..self.run_check(&order)?
            };
            if self.participants.stop.is_set() {
                // Cut short: its figure would be wrong. On resume it is done over.
                return Ok(());
            }
            let added = self.participants.store.add_throughput(id, &check_result);
            map_store_error("add a throughput check", added)?;
            self.participants
                .observer
                .report(&CampaignEvent::CheckEnded(&check_result));
        }
        Ok(())
    }

    fn trace_routes(&mut self, block: u32) -> Result<(), RunError> {
        let Some(limits) = self.plan.traceroute else {
            return Ok(());
        };
        let id = self.campaign.id;
        let existing = self.participants.store.traceroutes(id);
        let existing = map_store_error("read the traceroutes", existing)?;
        let pairs = self.plan.endpoints.iter().flat_map(|endpoint| {
            let sites = sites_to_endpoint(self.plan, &self.matrix, &endpoint.name);
            sites.into_iter().map(move |site| (endpoint, site))
        });
        for (endpoint, site) in pairs.collect::<Vec<_>>() {
            let is_same = |stored: &Traceroute| {
                (stored.block, &stored.endpoint, &stored.site) == (block, &endpoint.name, &site)
            };
            if existing.iter().any(is_same) || self.participants.stop.is_set() {
                continue;
            }
            let order = TracerouteOrder {
                block,
                endpoint: endpoint.name.clone(),
                host: endpoint.target.host().to_owned(),
                limits,
                site: site.clone(),
            };
            let route = Traceroute {
                site,
                ..self.run_trace(&order)?
            };
            if self.participants.stop.is_set() {
                return Ok(());
            }
            let added = self.participants.store.add_traceroute(id, &route);
            map_store_error("add a traceroute", added)?;
            self.participants
                .observer
                .report(&CampaignEvent::TracerouteEnded(&route));
        }
        Ok(())
    }

    /// Has a check carried out; a failure is part of it.
    fn run_check(&mut self, order: &ThroughputOrder) -> Result<Throughput, RunError> {
        let start = self.participants.clock.now();
        let failed_result = |failure: &OrderFailed| Throughput {
            block: order.block,
            endpoint: order.server.name.clone(),
            site: None,
            tool: order.tool.name().to_owned(),
            started: start,
            seconds: Vec::new(),
            goodput: BitRate(0),
            failure: Some(failure.to_string()),
        };
        Ok(
            match self.follow(Order::Throughput(order.clone()), |_, _| Ok(()))? {
                Ok(OrderResult::Throughput(checked)) => checked,
                Ok(_) => failed_result(&OrderFailed::another_result("check the throughput")),
                Err(failure) => failed_result(&failure),
            },
        )
    }

    /// Has a route traced; a failure is part of it.
    fn run_trace(&mut self, order: &TracerouteOrder) -> Result<Traceroute, RunError> {
        let start = self.participants.clock.now();
        let failed_result = |failure: &OrderFailed| Traceroute {
            block: order.block,
            endpoint: order.endpoint.clone(),
            site: None,
            destination: [0, 0, 0, 0].into(),
            started: start,
            hops: Vec::new(),
            reached: false,
            failure: Some(failure.to_string()),
        };
        Ok(
            match self.follow(Order::Traceroute(order.clone()), |_, _| Ok(()))? {
                Ok(OrderResult::Traceroute(traced)) => traced,
                Ok(_) => failed_result(&OrderFailed::another_result("trace the route")),
                Err(failure) => failed_result(&failure),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_the_period_of_the_first_block() {
        let at = |millis| Wall::from_unix_nanos(7) + Span::from_millis(millis);
        let schedule = Schedule {
            first_start: at(0),
            period: Span::from_secs(10),
        };
        assert_eq!(schedule.next_start(at(0), at(4_000)), at(10_000));
        // Begun 30 ms late, which shifts nothing.
        assert_eq!(schedule.next_start(at(10_030), at(14_000)), at(20_000));
        assert_eq!(schedule.next_start(at(10_030), at(20_000)), at(20_000));
        // It took too long, or was interrupted.
        assert_eq!(schedule.next_start(at(10_030), at(20_001)), at(30_000));
        assert_eq!(
            schedule.next_start(at(10_030), at(86_400_000)),
            at(86_400_000)
        );
    }
}
