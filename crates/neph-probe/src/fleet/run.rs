//! A running fleet, and which transport carries it.

use neph_model::ProbeKind;
use neph_sys::files;

use super::connect::Connects;
use super::driver;
use super::established::Established;
use super::reports::FleetReports;
use super::shared::Shared;
use super::sockets::Sockets;
use super::spec::{FleetReport, FleetSpec};
use super::syn::Syns;
use super::transport::Transport;
use crate::ProbeError;
use crate::pace;
use crate::raw_tcp;
use crate::running::Running;
use crate::stop::Stop;

/// Files that a fleet needs beside those of its flows, and that others of this process may want.
const SPARE: u64 = 64;

/// Messages a second above which a call for each to send, to read its stamp and to read its reply
/// takes most of a core.
const DENSE: f64 = 20_000.0;

/// A fleet that runs on a thread of its own; what it tells ends with [`FleetReport::Ended`].
pub type FleetRun = Running<FleetReport>;

impl FleetRun {
    /// Starts measuring.
    ///
    /// # Errors
    /// When the fleet asks for what cannot be (no lanes, no endpoint, more messages a second than
    /// its cap), or no thread can be had. What the thread itself cannot do is told by
    /// [`Self::join`].
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

/// What carries this kind.
fn transport(spec: &FleetSpec) -> Result<Box<dyn Transport>, ProbeError> {
    match spec.fleet.probe {
        ProbeKind::Udp => udp(spec),
        ProbeKind::Syn if raw_tcp::is_permitted() => Ok(Box::new(Syns::new(spec)?)),
        ProbeKind::Syn => {
            has_files(spec, "; or run as root, which needs no file for each")?;
            Ok(Box::new(Connects::new(spec)?))
        }
        ProbeKind::Tcp => {
            has_files(spec, "")?;
            Ok(Box::new(Established::new(spec)?))
        }
        kind => Err(ProbeError::Fleet(format!(
            "there is no fleet of {kind} flows"
        ))),
    }
}

/// Whether there are files for a connection of each flow.
fn has_files(spec: &FleetSpec, or: &str) -> Result<(), ProbeError> {
    let files = files::raise_limit().unwrap_or(u64::MAX);
    let needed = files_needed(spec);
    if needed <= files {
        return Ok(());
    }
    let possible = u64::from(spec.fleet.lanes) * files.saturating_sub(SPARE) / needed;
    Err(ProbeError::Fleet(format!(
        "{} flows need {needed} files and this process may open {files}: ask for {possible} flows, \
         or raise the limit ('ulimit -n'){or}",
        spec.fleet.lanes
    )))
}

/// A socket for each flow where there are files enough, as anybody may; else, and for dense fleets
/// where it is permitted, shared ones.
fn udp(spec: &FleetSpec) -> Result<Box<dyn Transport>, ProbeError> {
    let files = files::raise_limit().unwrap_or(u64::MAX);
    let needed = files_needed(spec);
    if needed <= files {
        if spec.rate() > DENSE
            && let Ok(shared) = Shared::new(spec)
        {
            return Ok(Box::new(shared));
        }
        return Ok(Box::new(Sockets::new(spec)?));
    }
    let shared = Shared::new(spec).map_err(|error| {
        let possible = u64::from(spec.fleet.lanes) * files.saturating_sub(SPARE) / needed;
        ProbeError::Fleet(format!(
            "{} flows need {needed} files and this process may open {files}: ask for {possible} \
             flows, raise the limit ('ulimit -n'), or run as root, which needs no file for each \
             ({error})",
            spec.fleet.lanes
        ))
    })?;
    Ok(Box::new(shared))
}

/// A file for each flow, for those that are over but still take late replies, and some more.
fn files_needed(spec: &FleetSpec) -> u64 {
    let lanes = u64::from(spec.fleet.lanes);
    let leaving = spec.fleet.renewal.map_or(0, |renewal| {
        let timeout = spec.timeout.nanos().max(0).unsigned_abs();
        let renewal = renewal.nanos().max(spec.fleet.interval.nanos()).max(1);
        lanes * timeout.div_ceil(renewal.unsigned_abs())
    });
    lanes + leaving + SPARE
}
