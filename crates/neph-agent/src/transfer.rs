//! A transfer in the place of a main flow: from an order to the throughput test that it asks for.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use neph_load::throughput::{Asked, Measured, Second, ThroughputError, ask, measure};
use neph_model::{
    ExperimentOrder, OrderFailed, Permit, Quantity, Sample, SeriesName, Stop, THROUGHPUT_PORT,
    Target, ThroughputMeasure,
};
use neph_probe::{Place, ProbeError, Resolve, Resolving, at_site};

use crate::failure::failed;

/// Seconds that wait to be taken in.
const MOST_WAITING: usize = 1024;

/// A transfer that can begin.
#[derive(Clone, Debug)]
pub(crate) struct TransferSpec {
    /// Where it is served.
    pub(crate) server: SocketAddr,
    test: ThroughputMeasure,
    congestion: Option<String>,
    seconds: u64,
    permit: Permit,
    site: Option<Place>,
}

/// The transfer that the order asks for in the place of messages, if it does.
pub(crate) fn transfer(
    order: &ExperimentOrder,
    site: Option<&Place>,
    permit: &Permit,
) -> Result<Option<TransferSpec>, OrderFailed> {
    let scenario = &order.scenario;
    let Some(test) = scenario.measure().throughput().copied() else {
        return Ok(None);
    };
    let operation = || format!("find endpoint '{}'", scenario.endpoint);
    let target = scenario.target.first();
    let target = target.ok_or_else(|| failed(operation(), "its target is not known"))?;
    let port = scenario.parameters.throughput_port();
    let port = port.map_or(THROUGHPUT_PORT, |port| port.get());
    let target = Target::tcp(target.host(), port).map_err(|error| failed(operation(), error))?;
    let how = Resolving {
        site: site.cloned(),
        keep: order.last_address,
        permit: permit.clone(),
        ..Resolving::here(scenario.parameters.ip_version().copied())
    };
    let found = target.find(&how);
    let found = found.map_err(|error| failed(operation(), error))?;
    Ok(Some(TransferSpec {
        server: found.address,
        test,
        congestion: scenario.parameters.congestion().cloned(),
        seconds: scenario.messages,
        permit: permit.clone(),
        site: site.cloned(),
    }))
}

/// A transfer that runs.
#[derive(Debug)]
pub(crate) struct TransferRun {
    seconds: Receiver<Second>,
    thread: JoinHandle<Result<Measured, TransferFailed>>,
}

/// Why there is no transfer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferFailed {
    /// The test.
    #[error(transparent)]
    Test(#[from] ThroughputError),
    /// The site cannot be entered.
    #[error(transparent)]
    Site(#[from] ProbeError),
}

impl TransferRun {
    /// Begins on a thread of its own, until its time is over or `stop` is set.
    pub(crate) fn start(spec: TransferSpec, stop: Stop) -> std::io::Result<Self> {
        let (sender, seconds) = sync_channel(MOST_WAITING);
        let thread = Builder::new().name("transfer".to_owned());
        let thread = thread.spawn(move || {
            let second = neph_model::Span::from_secs(1);
            let duration = second.times(i64::try_from(spec.seconds).unwrap_or(i64::MAX));
            let ask = ask(&spec.test, duration, spec.congestion.clone());
            let asked = Asked {
                server: spec.server,
                ask: &ask,
                permit: &spec.permit,
            };
            let work = || {
                measure(asked, &stop, &mut |second| {
                    // Nobody takes it when the experiment is over.
                    let _ = sender.try_send(second.clone());
                })
            };
            Ok(at_site(spec.site.as_ref(), work)??)
        })?;
        Ok(Self { seconds, thread })
    }

    /// What its seconds came to since the last time, as samples at `at`; whether there may be more.
    pub(crate) fn take(&self, at: i64, samples: &mut Vec<Sample>) -> bool {
        loop {
            match self.seconds.try_recv() {
                Ok(second) => samples.extend(samples_of(&second, at)),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// What it came to.
    pub(crate) fn join(self) -> Result<Measured, TransferFailed> {
        let joined = self.thread.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn samples_of(second: &Second, at: i64) -> impl Iterator<Item = Sample> {
    let values = second.quantities().into_iter();
    values.map(move |(quantity, value): (Quantity, f64)| Sample {
        series: SeriesName::Quantity(quantity),
        at,
        value,
    })
}
