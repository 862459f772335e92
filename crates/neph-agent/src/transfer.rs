//! A transfer in the place of a main flow: from an order to the test that it asks for.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use neph_load::{PlannedTransfer, TransferRefused, TransferTerms, Transferred};
use neph_model::{
    ExperimentOrder, MEDIA_PORT, Measure, OrderFailed, Permit, Quantity, Sample, SeriesName, Stop,
    THROUGHPUT_PORT, Target,
};
use neph_probe::{Placement, ProbeError, Resolve, Resolving, at_site};

use crate::failure::{failed, not_found};

/// Seconds that wait to be taken in.
const MAX_PENDING_SECONDS: usize = 1024;

/// A transfer that can begin.
#[derive(Clone, Debug)]
pub(crate) struct TransferSpec {
    pub(crate) transfer: PlannedTransfer,
    site: Option<Placement>,
}

/// The transfer that the order asks for in the place of messages, if it does.
pub(crate) fn transfer_spec(
    order: &ExperimentOrder,
    site: Option<&Placement>,
    permit: &Permit,
) -> Result<Option<TransferSpec>, OrderFailed> {
    let scenario = &order.scenario;
    let measure = scenario.measure();
    if !measure.is_transfer() {
        return Ok(None);
    }
    let operation = || format!("find endpoint '{}'", scenario.endpoint);
    let target = scenario.target.first();
    let target = target.ok_or_else(|| failed(operation(), "its target is not known"))?;
    let parameters = &scenario.parameters;
    let (chosen_port, default_port) = match measure {
        Measure::Media(_) => (parameters.media_port(), MEDIA_PORT),
        _ => (parameters.throughput_port(), THROUGHPUT_PORT),
    };
    let port = chosen_port.map_or(default_port, |port| port.get());
    let target = Target::tcp(target.host(), port).map_err(|error| failed(operation(), error))?;
    let resolving = Resolving {
        site: site.cloned(),
        keep: order.last_address,
        permit: permit.clone(),
        ..Resolving::here(scenario.parameters.ip_version().copied())
    };
    let resolved = target.find(&resolving);
    let resolved = resolved.map_err(|error| not_found(operation(), &error))?;
    let terms = TransferTerms {
        duration: Measure::SECOND.times(i64::try_from(scenario.messages).unwrap_or(i64::MAX)),
        congestion: scenario.parameters.congestion().cloned(),
        timeout: order.timeout,
    };
    let transfer = PlannedTransfer::of(&measure, &terms, resolved.address, permit.clone());
    let site = site.cloned();
    Ok(transfer.map(|transfer| TransferSpec { transfer, site }))
}

/// What a second came to.
type SecondValues = Vec<(Quantity, f64)>;

/// A transfer that runs.
#[derive(Debug)]
pub(crate) struct TransferRun {
    second_values: Receiver<SecondValues>,
    thread: JoinHandle<Result<Transferred, TransferRunError>>,
}

/// Why there is no transfer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferRunError {
    /// The test.
    #[error(transparent)]
    Test(#[from] TransferRefused),
    /// The site cannot be entered.
    #[error(transparent)]
    Site(#[from] ProbeError),
}

impl TransferRun {
    /// Begins on a thread of its own, until its time is over or `stop` is set.
    pub(crate) fn start(spec: TransferSpec, stop: Stop) -> std::io::Result<Self> {
        let (sender, second_values) = sync_channel(MAX_PENDING_SECONDS);
        let thread = Builder::new().name("transfer".to_owned());
        let thread = thread.spawn(move || {
            let work = || {
                spec.transfer.run(&stop, &mut |values| {
                    // The receiver is gone when the experiment is over.
                    let _ = sender.try_send(values);
                })
            };
            Ok(at_site(spec.site.as_ref(), work)??)
        })?;
        Ok(Self {
            second_values,
            thread,
        })
    }

    /// What its seconds came to since the last time, as samples at `at_ns`. Returns whether there may
    /// be more.
    pub(crate) fn take_samples(&self, at_ns: i64, samples: &mut Vec<Sample>) -> bool {
        let sample = |(quantity, value)| Sample {
            series: SeriesName::Quantity(quantity),
            at: at_ns,
            value,
        };
        loop {
            match self.second_values.try_recv() {
                Ok(values) => samples.extend(values.into_iter().map(sample)),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// What it came to.
    pub(crate) fn join(self) -> Result<Transferred, TransferRunError> {
        let result = self.thread.join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
