//! What the caps of reflectors refused to fleets, and what their kernels dropped. Neither gets an
//! answer, so that only the reflector knows why it was lost: it told what it had refused before when it was discovered,
//! and is asked again when the fleet is over, if anything got no answer.

use std::thread;

use neph_model::Warning;
use neph_probe::{Discovery, FleetSpec, RefusalWatch, Refusals};

/// What is to be asked again later; nothing of a stranger, who tells nothing.
pub(super) fn watch(found: &Discovery, fleet: &FleetSpec) -> Option<RefusalWatch> {
    let endpoint = fleet.fleet.endpoints.first()?.clone();
    let site = fleet.site.clone();
    found
        .refused
        .map(|refused| RefusalWatch::told(endpoint, refused, site))
}

/// What each fleet's reflector refused meanwhile. All are asked at the same time: where many pairs
/// lost something, one after the other would take minutes.
pub(super) fn refused(watches: Vec<Option<RefusalWatch>>) -> Vec<Vec<Warning>> {
    thread::scope(|scope| {
        let asking: Vec<_> = watches
            .into_iter()
            .map(|watch| watch.map(|watch| scope.spawn(|| watch.end())))
            .collect();
        let told = asking.into_iter().map(|one| {
            let told = one.and_then(|one| one.join().ok()).unwrap_or_default();
            told.iter()
                .flat_map(|(_, told)| refusal_warnings(told))
                .collect()
        });
        told.collect()
    })
}

/// What is to be said of what a reflector refused, and of what its kernel dropped: nothing, where that
/// is nothing.
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
