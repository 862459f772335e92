//! The state of each router at a moment after the lab's cue, and how to set it in the kernel.

use neph_model::Span;
use neph_sys::netns::NetNs;

use crate::gate::ScheduleEvent;
use crate::lab::LabError;
use crate::plan::HASH_SEED;
use crate::plan::routes::{self, Route, Weights};
use crate::topology::{Reroute, RerouteAction, Topology};
use crate::{program, settings};

/// The routers with scheduled changes.
#[derive(Clone, Debug)]
pub(in crate::lab) struct ScheduledRouters {
    pub(super) reroutes: Vec<Reroute>,
    pub(super) routers: Vec<Router>,
    /// Names for the status: router and link of each entry.
    pub(super) names: Vec<(String, Option<String>)>,
}

/// A router with scheduled changes.
#[derive(Clone, Debug)]
pub(super) struct Router {
    pub(super) site: usize,
    namespace: String,
    /// Routes with several next hops.
    routes: Vec<Route>,
}

/// The state of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RouterState {
    reshuffles: u64,
    weights: Weights,
}

impl ScheduledRouters {
    /// Of a topology whose sites have these namespaces.
    pub(in crate::lab) fn from_topology(topology: &Topology, namespaces: &[String]) -> Self {
        let mut sites: Vec<usize> = topology
            .reroutes
            .iter()
            .map(|reroute| reroute.site)
            .collect();
        sites.sort_unstable();
        sites.dedup();
        let routers = sites.into_iter().map(|site| {
            let mut routes = routes::routes(topology, site);
            routes.retain(Route::is_split);
            Router {
                site,
                namespace: namespaces[site].clone(),
                routes,
            }
        });
        let names = topology.reroutes.iter().map(|reroute| {
            let link = match reroute.action {
                RerouteAction::Reshuffle => None,
                RerouteAction::Weight { link, .. } => Some(topology.links[link].name.clone()),
            };
            (topology.sites[reroute.site].name.clone(), link)
        });
        Self {
            reroutes: topology.reroutes.clone(),
            routers: routers.collect(),
            names: names.collect(),
        }
    }

    /// The state of the router at the site with this index at `time` after the cue.
    pub(super) fn state_at(&self, site: usize, time: Span) -> RouterState {
        let mut state = RouterState::default();
        for reroute in self.reroutes.iter().filter(|reroute| reroute.site == site) {
            let recurrence = reroute.recurrence();
            match reroute.action {
                RerouteAction::Reshuffle => {
                    state.reshuffles += u64::try_from(recurrence.begin_count(time)).unwrap_or(0);
                }
                RerouteAction::Weight { link, weight } if recurrence.is_active_at(time) => {
                    state.weights.insert(link, weight);
                }
                RerouteAction::Weight { .. } => {}
            }
        }
        state
    }

    /// The changes after `before`, up to `until` after the cue: entries and their turns.
    pub(super) fn events(&self, before: Span, until: Span) -> Vec<(usize, ScheduleEvent)> {
        let mut events = Vec::new();
        for (number, reroute) in self.reroutes.iter().enumerate() {
            let recurrence = reroute.recurrence();
            let began = recurrence.begin_count(until) - recurrence.begin_count(before);
            let ended = recurrence.end_count(until) - recurrence.end_count(before);
            let event = match reroute.action {
                RerouteAction::Reshuffle => ScheduleEvent::Reshuffles,
                RerouteAction::Weight { .. } => ScheduleEvent::Begins,
            };
            for (event, times) in [(ScheduleEvent::Ends, ended), (event, began)] {
                events.extend((0..times).map(|_| (number, event)));
            }
        }
        events
    }

    /// When the next change after `time` is due.
    pub(super) fn next_after(&self, time: Span) -> Option<Span> {
        let reroutes = self.reroutes.iter();
        reroutes
            .filter_map(|reroute| reroute.recurrence().next_after(time))
            .min()
    }
}

impl Router {
    /// Changes the router from state `before` to `now`.
    pub(super) fn apply_state(
        &self,
        before: &RouterState,
        now: &RouterState,
    ) -> Result<(), LabError> {
        if now.reshuffles != before.reshuffles {
            let seed = routes::hash_seed(self.site, now.reshuffles).to_string();
            settings::apply(&NetNs::open(&self.namespace)?, &[(HASH_SEED, seed)])?;
        }
        let lines = |state: &RouterState| -> Vec<String> {
            let routes = self.routes.iter();
            routes
                .map(|route| route.line("replace", &state.weights))
                .collect()
        };
        let (old, mut new) = (lines(before), lines(now));
        let mut old = old.iter();
        new.retain(|line| old.next() != Some(line));
        if new.is_empty() {
            return Ok(());
        }
        Ok(program::ip_batch(&self.namespace, &new)?)
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;

    fn routers() -> ScheduledRouters {
        let text = "version = 1\nrouting = \"ecmp\"\nsite = [{name = \"a\"}, {name = \"b\"}]\n\
                    router = [{name = \"m\"}, {name = \"n\"}]\n\
                    link = [{a = \"a\", b = \"m\"}, {a = \"m\", b = \"b\"}, \
                    {a = \"a\", b = \"n\"}, {a = \"n\", b = \"b\"}]\n\
                    reroute = [{site = \"a\", at = \"5s\", every = \"10s\", reshuffle = true}, \
                    {site = \"a\", link = \"a-m\", weight = 0, at = \"10s\", until = \"12s\"}]\n";
        let topology = Topology::parse(&Source::new("diamond", text)).expect("fine");
        ScheduledRouters::from_topology(&topology, &["a", "b", "m", "n"].map(str::to_owned))
    }

    #[test]
    fn the_routing_state_follows_from_the_time_after_the_cue() {
        let routers = routers();
        let secs = Span::from_secs;
        let reshuffles_and_weight = |at| {
            let state = routers.state_at(0, secs(at));
            (state.reshuffles, state.weights.get(&0).copied())
        };
        assert_eq!(
            [4, 5, 10, 12, 15, 25].map(reshuffles_and_weight),
            [
                (0, None),
                (1, None),
                (1, Some(0)),
                (1, None),
                (2, None),
                (3, None)
            ]
        );
        let events = routers.events(secs(4), secs(15));
        let expected = [
            (0, ScheduleEvent::Reshuffles),
            (0, ScheduleEvent::Reshuffles),
            (1, ScheduleEvent::Ends),
            (1, ScheduleEvent::Begins),
        ];
        assert_eq!(events, expected);
        assert_eq!(routers.next_after(secs(10)), Some(secs(12)));
        assert_eq!(
            routers.routers[0].routes.len(),
            1,
            "only b is reached by both"
        );
    }
}
