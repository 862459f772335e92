//! A running fleet, and the choice of its transport.

use neph_model::{ProbeKind, Stop};

use super::connect::Connects;
use super::driver;
use super::established::Established;
use super::files::has_files;
use super::reports::FleetReports;
use super::shared::SharedSockets;
use super::sockets::Sockets;
use super::spec::{FleetReport, FleetSpec, Sharing};
use super::syn::Syns;
use super::transport::Transport;
use crate::ProbeError;
use crate::pace;
use crate::raw_tcp;
use crate::running::Running;

/// Messages per second above which separate calls to send, to read the timestamp and to read the reply take
/// most of a core.
const DENSE: f64 = 20_000.0;

/// A fleet that runs on its own thread. Its reports end with [`FleetReport::Ended`].
pub type FleetRun = Running<FleetReport>;

impl FleetRun {
    /// Starts measuring.
    ///
    /// # Errors
    /// When the fleet is invalid (no slots, no endpoint, more messages per second than its cap), or no thread
    /// can be started. [`Self::join`] returns errors of the thread itself.
    pub fn start(spec: FleetSpec, stop: Stop) -> Result<Self, ProbeError> {
        spec.check()?;
        let (sender, reports) = FleetReports::new();
        let name = "neph-fleet".to_owned();
        Self::begin(name, reports, move || run(&spec, sender, &stop))
    }
}

fn run(spec: &FleetSpec, reports: FleetReports, stop: &Stop) -> Result<(), ProbeError> {
    pace::settle_at(spec.site.as_ref(), spec.priority)?;
    let transport = transport(spec)?;
    driver::drive(spec, transport, reports, stop)
}

/// The transport for this kind.
fn transport(spec: &FleetSpec) -> Result<Box<dyn Transport>, ProbeError> {
    match spec.fleet.probe {
        ProbeKind::Udp => udp(spec),
        ProbeKind::Syn if raw_tcp::is_permitted() => Ok(Box::new(Syns::new(spec)?)),
        ProbeKind::Syn => {
            has_files(spec)?;
            Ok(Box::new(Connects::new(spec)?))
        }
        ProbeKind::Tcp => {
            has_files(spec)?;
            Ok(Box::new(Established::new(spec)?))
        }
        kind => Err(ProbeError::Fleet(format!(
            "there is no fleet of {kind} flows"
        ))),
    }
}

/// A socket for each flow if there are enough files, as this needs no privilege. Otherwise, and for dense
/// fleets where permitted, shared sockets.
fn udp(spec: &FleetSpec) -> Result<Box<dyn Transport>, ProbeError> {
    if spec.sharing == Some(Sharing::SharedSockets) {
        return Ok(Box::new(SharedSockets::new(spec)?));
    }
    match has_files(spec) {
        Ok(()) => {
            if spec.rate() > DENSE
                && let Ok(shared) = SharedSockets::new(spec)
            {
                return Ok(Box::new(shared));
            }
            Ok(Box::new(Sockets::new(spec)?))
        }
        Err(too_few) => match SharedSockets::new(spec) {
            Ok(shared) => Ok(Box::new(shared)),
            Err(error) => Err(ProbeError::Fleet(format!("{too_few} ({error})"))),
        },
    }
}
