//! Reduces the messages of a fleet to the data of figures and tables, in two passes. The first pass collects
//! everything of bounded size; the second collects the messages of a few flows.

use neph_flows::{Digest, Dissector, FleetView, Settings, StatsError, add_advice};
use neph_model::{Fleet, FleetMessage};

/// Number of flows that are dissected message by message.
const DISSECTED: usize = 3;

/// Reads a fleet. `visit` passes every message, in the order of sending, to the given function. It is called
/// twice and must pass the same messages both times.
///
/// # Errors
/// The error of `visit`, or an inconsistent number in the detection.
pub fn read_fleet<E: From<StatsError>>(
    fleet: &Fleet,
    settings: Settings,
    mut visit: impl FnMut(&mut dyn FnMut(&FleetMessage)) -> Result<(), E>,
) -> Result<FleetView, E> {
    let mut view = digest_fleet(fleet, settings, &mut visit)?;
    let mut dissector = Dissector::new(&view, DISSECTED);
    visit(&mut |message| dissector.push(message))?;
    view.dissected = dissector.finish();
    add_advice(&mut view);
    Ok(view)
}

/// The first pass: everything of bounded size. `visit` is called once.
///
/// # Errors
/// As [`read_fleet`].
pub(crate) fn digest_fleet<E: From<StatsError>>(
    fleet: &Fleet,
    settings: Settings,
    visit: impl FnOnce(&mut dyn FnMut(&FleetMessage)) -> Result<(), E>,
) -> Result<FleetView, E> {
    let mut digest = Digest::new(fleet, settings)?.without_events();
    visit(&mut |message| digest.push(message))?;
    digest.finish();
    Ok(digest.view())
}
