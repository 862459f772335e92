//! The end of an experiment.

use neph_model::{
    Ending, Experiment, ExperimentResult, ExperimentStatus, HostFacts, Load, OrderFailed,
};

/// How an experiment ended, as the store keeps it.
pub(crate) struct RunEnd {
    pub(crate) status: ExperimentStatus,
    pub(super) reason: Option<String>,
    /// Another try would fail in the same way.
    pub(super) is_permanent: bool,
    pub(super) host: HostFacts,
    pub(super) load: Option<Load>,
}

impl RunEnd {
    pub(super) fn failed(reason: String) -> Self {
        Self {
            status: ExperimentStatus::Failed,
            reason: Some(reason),
            is_permanent: false,
            host: HostFacts::default(),
            load: None,
        }
    }

    pub(super) fn from_failure(failure: &OrderFailed) -> Self {
        Self {
            is_permanent: failure.is_permanent,
            ..Self::failed(failure.to_string())
        }
    }
}

/// What the executor reports becomes part of the experiment.
pub(crate) fn apply_executor_result(
    result: ExperimentResult,
    experiment: &mut Experiment,
) -> RunEnd {
    experiment.ended = Some(result.ended);
    experiment.flows = result.flows;
    experiment.quantities = result.quantities;
    experiment.anchors = result.anchors;
    experiment.warnings = result.warnings;
    let (status, reason) = match result.ending {
        Ending::Complete => (ExperimentStatus::Complete, None),
        Ending::Interrupted => (
            ExperimentStatus::Interrupted,
            Some("stopped before its end".to_owned()),
        ),
        Ending::Failed(reason) => (ExperimentStatus::Failed, Some(reason)),
    };
    RunEnd {
        status,
        reason,
        is_permanent: false,
        host: result.host,
        load: result.load,
    }
}
