//! Small transfers on the source ports of each latency class, after the fleet has closed them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use neph_documents::flows::EndpointTransfers;
use neph_flows::{alternate_ports, completions_of};
use neph_load::{TransferSpec, run_transfers, run_transfers_with};
use neph_model::{
    ByteSize, ClassTransfer, Ending, ProbeKind, SourcePortOutcome, SourcePortTransfer, Span, Stop,
};
use neph_probe::{FleetSpec, ProbeError, SmallTransfer, now};

use super::Args;
use super::fleet_outcome::FleetOutcome;
use super::recorder::{WaitingFleet, transfers_failed_ending};
use super::transfer_spec::{build_client, build_transfer_spec, transfer_target};
use crate::exit::Failure;
use crate::output;
use neph_text::counted::counted;

/// Minimum time between two records of transfers.
const RECORD_INTERVAL: Span = Span::from_millis(200);

/// Refuses impossible options before anything is measured.
pub(super) fn check(args: &Args, spec: &FleetSpec, stop: &Stop) -> Result<(), Failure> {
    if args.transfers.is_none() {
        return Ok(());
    }
    let usage_error = |message: &str| Err(Failure::Usage(format!("--transfers: {message}")));
    if !matches!(spec.fleet.probe, ProbeKind::Tcp | ProbeKind::Syn) {
        return usage_error(
            "a transfer over TCP need not take the path of a UDP flow; measure syn:// or tcp:// flows",
        );
    }
    if spec.count.is_none() {
        return usage_error(
            "they come after the measurement; say when it ends, with --duration or --count",
        );
    }
    (0..spec.fleet.endpoints.len())
        .try_for_each(|endpoint| check_transfer(args, spec, endpoint, stop))
}

/// A transfer before the measurement, so that an impossible one is reported before hours have passed.
fn check_transfer(
    args: &Args,
    spec: &FleetSpec,
    endpoint: usize,
    stop: &Stop,
) -> Result<(), Failure> {
    let target = transfer_target(spec, endpoint)?;
    let failure_message = |reason: &str| {
        format!(
            "--transfers: {reason}; it needs neph reflect there, or a server with HTTP without TLS"
        )
    };
    let client = build_client(args, spec, &target, endpoint).map_err(|error| match error {
        ProbeError::Transfer { closed: true, .. } => {
            Failure::Refused(failure_message(&error.to_string()))
        }
        ProbeError::Transfer { .. } => Failure::Usage(failure_message(&error.to_string())),
        other => other.into(),
    })?;
    // From any free port.
    let single_transfer_spec = build_transfer_spec(args, spec, endpoint, vec![0]);
    let transfers = run_transfers(&single_transfer_spec, &|| client.exchange(), stop)?;
    match transfers.first().map(|transfer| &transfer.outcome) {
        Some(SourcePortOutcome::Failed(reason)) => {
            let reason = format!("a transfer from {target}: {reason}");
            Err(Failure::Usage(failure_message(&reason)))
        }
        _ => Ok(()),
    }
}

/// Makes the requested transfers, and ends the stored fleet: as incomplete if they cannot be made.
///
/// # Errors
/// The transfers cannot be made or stored; those made before are in `fleet_outcome`.
pub(super) fn make(
    args: &Args,
    spec: &FleetSpec,
    fleet_outcome: &mut FleetOutcome,
    stop: &Stop,
) -> Result<(), Failure> {
    let Some(per_class) = args.transfers else {
        return Ok(());
    };
    let mut waiting_fleet = fleet_outcome.waiting_fleet.take();
    let request = TransferRequest {
        args,
        per_class,
        spec,
    };
    let result = make_all_transfers(&request, fleet_outcome, &mut waiting_fleet, stop);
    let ending = match &result {
        Err(_) => transfers_failed_ending(),
        Ok(()) if stop.is_set() => Ending::Interrupted,
        Ok(()) => Ending::Complete,
    };
    match waiting_fleet
        .map(|waiting_fleet| waiting_fleet.end(&ending))
        .transpose()
    {
        Ok(campaign) => {
            fleet_outcome.campaign = campaign;
            result
        }
        Err(error) => result.and(Err(error)),
    }
}

/// The requested transfers.
struct TransferRequest<'a> {
    args: &'a Args,
    /// The number of transfers per class.
    per_class: u32,
    spec: &'a FleetSpec,
}

/// For each endpoint; ends early when `stop` is set.
fn make_all_transfers(
    request: &TransferRequest<'_>,
    fleet_outcome: &mut FleetOutcome,
    waiting_fleet: &mut Option<WaitingFleet>,
    stop: &Stop,
) -> Result<(), Failure> {
    let TransferRequest {
        args,
        per_class,
        spec,
    } = *request;
    for endpoint in 0..spec.fleet.endpoints.len() {
        if stop.is_set() {
            break;
        }
        let classes = fleet_outcome.result.view.ports_by_class(endpoint);
        let transfer_spec =
            build_transfer_spec(args, spec, endpoint, alternate_ports(&classes, per_class));
        let target = transfer_target(spec, endpoint)?;
        if transfer_spec.source_ports.is_empty() {
            fleet_outcome
                .result
                .transfers
                .push(EndpointTransfers::default());
            continue;
        }
        if !args.quiet {
            output::say(&format!(
                "neph: {} from {}, on the ports of each class",
                counted(transfer_spec.source_ports.len() as u64, "transfer"),
                target
            ));
        }
        let view = &fleet_outcome.result.view;
        let taken_class = |flow_class, transfer: &SourcePortTransfer| {
            view.class_of_transfer(endpoint, flow_class, transfer)
        };
        let size = args.transfer_size as usize;
        let endpoint_transfers = TransferRun::new(endpoint, &classes, &taken_class, size);
        let client = build_client(args, spec, &target, endpoint)?;
        let endpoint_transfers =
            endpoint_transfers.run(&transfer_spec, &client, waiting_fleet.as_mut(), stop)?;
        fleet_outcome.result.transfers.push(EndpointTransfers {
            by_class: completions_of(classes.len(), &endpoint_transfers.transfers),
            n: endpoint_transfers.transfers.len() as u64,
            moved: endpoint_transfers.moved,
        });
    }
    Ok(())
}

/// The class whose path a transfer took, from that of its flow.
type ClassOfTransfer<'a> = dyn Fn(usize, &SourcePortTransfer) -> usize + Sync + 'a;

/// The transfers to one endpoint.
struct TransferRun<'a> {
    endpoint: usize,
    /// The class whose path a transfer took, from that of its flow.
    taken_class: &'a ClassOfTransfer<'a>,
    class_by_port: BTreeMap<u16, usize>,
    /// The number of transfers per port.
    passes: BTreeMap<u16, u32>,
    size: ByteSize,
    moved: u64,
    transfers: Vec<ClassTransfer>,
}

impl<'a> TransferRun<'a> {
    fn new(
        endpoint: usize,
        classes: &[Vec<u16>],
        taken_class: &'a ClassOfTransfer<'a>,
        size: usize,
    ) -> Self {
        let ports = classes.iter().enumerate();
        let class_by_port =
            ports.flat_map(|(class, ports)| ports.iter().map(move |port| (*port, class)));
        Self {
            endpoint,
            taken_class,
            class_by_port: class_by_port.collect(),
            passes: BTreeMap::new(),
            size: ByteSize(size as u64),
            moved: 0,
            transfers: Vec::new(),
        }
    }

    /// Makes the transfers. They are stored as they end: a kill loses only the last ones.
    fn run(
        mut self,
        spec: &TransferSpec,
        client: &SmallTransfer,
        mut waiting_fleet: Option<&mut WaitingFleet>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let (mut stored_count, mut last_record, mut store_result) = (0, now(), Ok(()));
        run_transfers_with(spec, &|| client.exchange(), stop, |transfer| {
            self.push(transfer);
            if now() - last_record < RECORD_INTERVAL {
                return ControlFlow::Continue(());
            }
            if let Some(waiting_fleet) = &mut waiting_fleet {
                store_result = waiting_fleet.add_transfers(&self.transfers[stored_count..]);
            }
            (stored_count, last_record) = (self.transfers.len(), now());
            match store_result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        store_result?;
        if let Some(waiting_fleet) = waiting_fleet {
            waiting_fleet.add_transfers(&self.transfers[stored_count..])?;
        }
        Ok(self)
    }

    /// One pass covers all of them; a port is used several times if its class has few.
    fn push(&mut self, mut transfer: SourcePortTransfer) {
        if let Some(&flow_class) = self.class_by_port.get(&transfer.source_port) {
            let class = (self.taken_class)(flow_class, &transfer);
            self.moved += u64::from(class != flow_class);
            let pass = self.passes.entry(transfer.source_port).or_default();
            transfer.pass = *pass;
            *pass += 1;
            self.transfers.push(ClassTransfer {
                endpoint: self.endpoint,
                class,
                size: self.size,
                transfer,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Instant;

    use super::*;

    #[test]
    fn each_further_transfer_from_a_port_starts_a_new_pass() {
        let classes = [vec![1, 2, 3], vec![4]];
        let same_class = |flow_class, _: &SourcePortTransfer| flow_class;
        let mut endpoint_transfers = TransferRun::new(0, &classes, &same_class, 1024);
        for source_port in alternate_ports(&classes, 4) {
            endpoint_transfers.push(SourcePortTransfer {
                source_port,
                pass: 0,
                begun: Instant::from_nanos(5),
                outcome: SourcePortOutcome::Failed("refused".to_owned()),
            });
        }
        let port_and_pass =
            |transfer: &ClassTransfer| (transfer.transfer.source_port, transfer.transfer.pass);
        let passes: Vec<(u16, u32)> = endpoint_transfers
            .transfers
            .iter()
            .map(port_and_pass)
            .collect();
        let expected = [
            (1, 0),
            (4, 0),
            (2, 0),
            (4, 1),
            (3, 0),
            (4, 2),
            (1, 1),
            (4, 3),
        ];
        assert_eq!(passes, expected);
    }

    #[test]
    fn a_transfer_that_took_another_path_counts_for_that_class() {
        let classes = [vec![1, 2], vec![4]];
        let taken_class = |flow_class, transfer: &SourcePortTransfer| {
            if transfer.source_port == 4 {
                0
            } else {
                flow_class
            }
        };
        let mut endpoint_transfers = TransferRun::new(0, &classes, &taken_class, 1024);
        for source_port in alternate_ports(&classes, 3) {
            endpoint_transfers.push(SourcePortTransfer {
                source_port,
                pass: 0,
                begun: Instant::from_nanos(5),
                outcome: SourcePortOutcome::Failed("refused".to_owned()),
            });
        }
        let transfers = EndpointTransfers {
            by_class: completions_of(2, &endpoint_transfers.transfers),
            n: endpoint_transfers.transfers.len() as u64,
            moved: endpoint_transfers.moved,
        };
        assert_eq!(
            (
                transfers.moved,
                transfers.by_class[0].n,
                transfers.by_class[1].n
            ),
            (3, 6, 0)
        );
        assert!(
            transfers
                .text()
                .contains("3 of 6 transfers (50 %) took another path")
        );
        assert!(
            transfers
                .text()
                .contains("the network moved flows during the transfers")
        );
    }
}
