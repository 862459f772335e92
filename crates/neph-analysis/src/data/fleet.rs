//! From a fleet's messages to what figures and tables are drawn from, in two passes: one that
//! finds everything that is bounded, and one that picks the messages of a few flows.

use neph_flows::{Digest, Dissector, FleetView, Settings, StatsError, advise};
use neph_model::{Fleet, FleetMessage};

/// So many flows are taken apart, message by message.
const DISSECTED: usize = 3;

/// Reads a fleet. `visit` hands every message, in the order of sending, to what it is given; it is
/// called twice and has to hand out the same.
///
/// # Errors
/// What `visit` refused, or that the numbers of the detection do not fit together.
pub fn read_fleet<E: From<StatsError>>(
    fleet: &Fleet,
    settings: Settings,
    mut visit: impl FnMut(&mut dyn FnMut(&FleetMessage)) -> Result<(), E>,
) -> Result<FleetView, E> {
    let mut view = digest_fleet(fleet, settings, &mut visit)?;
    let mut dissector = Dissector::new(&view, DISSECTED);
    visit(&mut |message| dissector.push(message))?;
    view.dissected = dissector.finish();
    view.advice = (0..fleet.endpoints.len())
        .map(|endpoint| advise(&view, endpoint))
        .collect();
    Ok(view)
}

/// The first of the two passes: everything that is bounded. `visit` is called once.
///
/// # Errors
/// As [`read_fleet`].
pub(crate) fn digest_fleet<E: From<StatsError>>(
    fleet: &Fleet,
    settings: Settings,
    visit: impl FnOnce(&mut dyn FnMut(&FleetMessage)) -> Result<(), E>,
) -> Result<FleetView, E> {
    let mut digest = Digest::new(fleet, settings)?.without_news();
    visit(&mut |message| digest.push(message))?;
    digest.finish();
    Ok(digest.view())
}
