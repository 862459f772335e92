//! What the caps of reflectors refused to fleets, and what their kernels dropped. Neither gets an
//! answer, so only the reflector knows why it was lost. The reflector reports its counts when it is
//! discovered. If messages got no answer, neph asks for them at the end of the fleet too.

use std::thread;

use neph_model::{FleetEndpoint, Warning};
use neph_probe::{Discovery, FleetSpec, Placement, RefusalWatch, Refusals};

/// A reflector to ask later, from where, and what it had refused before.
#[derive(Clone, Debug)]
pub(crate) struct EarlierRefusals {
    endpoint: FleetEndpoint,
    refused: Refusals,
    site: Option<Placement>,
}

impl EarlierRefusals {
    /// Nothing of a third-party server, which reports no counts.
    pub(crate) fn of(discovery: &Discovery, fleet: &FleetSpec) -> Option<Self> {
        Some(Self {
            endpoint: fleet.fleet.endpoints.first()?.clone(),
            refused: discovery.refused?,
            site: fleet.site.clone(),
        })
    }
}

/// What each fleet's reflector refused meanwhile. All are asked at the same time, those of one site
/// together: where many pairs lost something, one after the other would take minutes.
pub(crate) fn collect_refusals(earlier: &[Option<EarlierRefusals>]) -> Vec<Vec<Warning>> {
    let mut sites: Vec<Option<&Placement>> = Vec::new();
    for earlier_refusals in earlier.iter().flatten() {
        if !sites.contains(&earlier_refusals.site.as_ref()) {
            sites.push(earlier_refusals.site.as_ref());
        }
    }
    let refusals_by_site: Vec<Vec<(FleetEndpoint, Refusals)>> = thread::scope(|scope| {
        let watches = sites.iter().map(|site| {
            let known_refusals = earlier.iter().flatten();
            let refusals_of_site = known_refusals.filter(|earlier| earlier.site.as_ref() == *site);
            let earlier_counts =
                refusals_of_site.map(|earlier| (earlier.endpoint.clone(), earlier.refused));
            let watch = RefusalWatch::of_known(earlier_counts, site.cloned());
            scope.spawn(|| watch.end())
        });
        let watches: Vec<_> = watches.collect();
        let refusals = watches
            .into_iter()
            .map(|scoped_join_handle| scoped_join_handle.join().unwrap_or_default());
        refusals.collect()
    });
    let warnings_of = |earlier: &EarlierRefusals| -> Option<Vec<Warning>> {
        let site = sites
            .iter()
            .position(|site| *site == earlier.site.as_ref())?;
        let mut site_refusals = refusals_by_site[site].iter();
        let (_, refused) =
            site_refusals.find(|(endpoint, _)| endpoint.address == earlier.endpoint.address)?;
        Some(refusal_warnings(refused).collect())
    };
    let refusals = earlier.iter();
    refusals
        .map(|earlier| earlier.as_ref().and_then(warnings_of).unwrap_or_default())
        .collect()
}

/// Warnings about what a reflector refused, and about what its kernel dropped; none if both are
/// zero.
pub fn refusal_warnings(refused: &Refusals) -> impl Iterator<Item = Warning> {
    let messages = (refused.messages > 0).then_some(Warning::MessagesRefused {
        messages: refused.messages,
        per_second: refused.messages_per_second,
    });
    let connections = (refused.connections > 0).then_some(Warning::ConnectionsRefused {
        connections: refused.connections,
        at_a_time: refused.connections_per_peer,
    });
    let dropped = (refused.dropped > 0).then_some(Warning::ReflectorDropped {
        packets: refused.dropped,
    });
    messages.into_iter().chain(connections).chain(dropped)
}
