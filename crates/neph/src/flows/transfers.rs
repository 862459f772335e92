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
use super::keep::{WaitingFleet, without_transfers};
use super::transfer_task::{small, target, task};
use super::watched::Watched;
use crate::exit::Failure;
use crate::output;
use neph_text::counted::counted;

/// Minimum time between two records of transfers.
const RECORDED: Span = Span::from_millis(200);

/// Refuses impossible options before anything is measured.
pub(super) fn check(args: &Args, spec: &FleetSpec, stop: &Stop) -> Result<(), Failure> {
    if args.transfers.is_none() {
        return Ok(());
    }
    let wrong = |message: &str| Err(Failure::Usage(format!("--transfers: {message}")));
    if !matches!(spec.fleet.probe, ProbeKind::Tcp | ProbeKind::Syn) {
        return wrong(
            "a transfer over TCP need not take the path of a UDP flow; measure syn:// or tcp:// flows",
        );
    }
    if spec.count.is_none() {
        return wrong(
            "they come after the measurement; say when it ends, with --duration or --count",
        );
    }
    (0..spec.fleet.endpoints.len()).try_for_each(|endpoint| try_one(args, spec, endpoint, stop))
}

/// A transfer before the measurement, so that an impossible one is reported before hours have passed.
fn try_one(args: &Args, spec: &FleetSpec, endpoint: usize, stop: &Stop) -> Result<(), Failure> {
    let target = target(spec, endpoint)?;
    let unable = |why: &str| {
        format!(
            "--transfers: {why}; it needs neph reflect there, or a server with HTTP without TLS"
        )
    };
    let small = small(args, spec, &target, endpoint).map_err(|error| match error {
        ProbeError::Transfer { closed: true, .. } => Failure::Refused(unable(&error.to_string())),
        ProbeError::Transfer { .. } => Failure::Usage(unable(&error.to_string())),
        other => other.into(),
    })?;
    // From any free port.
    let transfer_spec = task(args, spec, endpoint, vec![0]);
    let made = run_transfers(&transfer_spec, &|| small.exchange(), stop)?;
    match made.first().map(|transfer| &transfer.outcome) {
        Some(SourcePortOutcome::Failed(why)) => {
            let why = format!("a transfer from {target}: {why}");
            Err(Failure::Usage(unable(&why)))
        }
        _ => Ok(()),
    }
}

/// Makes the requested transfers, and ends the stored fleet: as incomplete if they cannot be made.
///
/// # Errors
/// The transfers cannot be made or stored; those made before are in `watched`.
pub(super) fn make(
    args: &Args,
    spec: &FleetSpec,
    watched: &mut Watched,
    stop: &Stop,
) -> Result<(), Failure> {
    let Some(of_each) = args.transfers else {
        return Ok(());
    };
    let mut waiting_fleet = watched.waiting_fleet.take();
    let request = TransferRequest {
        args,
        of_each,
        spec,
    };
    let made = make_all(&request, watched, &mut waiting_fleet, stop);
    let ending = match &made {
        Err(_) => without_transfers(),
        Ok(()) if stop.is_set() => Ending::Interrupted,
        Ok(()) => Ending::Complete,
    };
    match waiting_fleet
        .map(|waiting_fleet| waiting_fleet.end(&ending))
        .transpose()
    {
        Ok(campaign) => {
            watched.campaign = campaign;
            made
        }
        Err(error) => made.and(Err(error)),
    }
}

/// The requested transfers.
struct TransferRequest<'a> {
    args: &'a Args,
    /// The number of transfers per class.
    of_each: u32,
    spec: &'a FleetSpec,
}

/// For each endpoint; ends early when `stop` is set.
fn make_all(
    request: &TransferRequest<'_>,
    watched: &mut Watched,
    waiting_fleet: &mut Option<WaitingFleet>,
    stop: &Stop,
) -> Result<(), Failure> {
    let TransferRequest {
        args,
        of_each,
        spec,
    } = *request;
    for endpoint in 0..spec.fleet.endpoints.len() {
        if stop.is_set() {
            break;
        }
        let classes = watched.result.view.ports_by_class(endpoint);
        let transfer_spec = task(args, spec, endpoint, alternate_ports(&classes, of_each));
        let target = target(spec, endpoint)?;
        if transfer_spec.source_ports.is_empty() {
            watched.result.transfers.push(EndpointTransfers::default());
            continue;
        }
        if !args.quiet {
            output::say(&format!(
                "neph: {} from {}, on the ports of each class",
                counted(transfer_spec.source_ports.len() as u64, "transfer"),
                target
            ));
        }
        let view = &watched.result.view;
        let taken =
            |known, transfer: &SourcePortTransfer| view.class_of_transfer(endpoint, known, transfer);
        let size = args.transfer_size as usize;
        let made = EndpointTransfers::new(endpoint, &classes, &taken, size);
        let small = small(args, spec, &target, endpoint)?;
        let made = made.take(&transfer_spec, &small, waiting_fleet.as_mut(), stop)?;
        watched.result.transfers.push(EndpointTransfers {
            by_class: completions_of(classes.len(), &made.transfers),
            n: made.transfers.len() as u64,
            moved: made.moved,
        });
    }
    Ok(())
}

/// The class whose path a transfer took, from that of its flow.
type ClassOfTransfer<'a> = dyn Fn(usize, &SourcePortTransfer) -> usize + Sync + 'a;

/// The transfers to one endpoint.
struct EndpointTransfers<'a> {
    endpoint: usize,
    /// The class whose path a transfer took, from that of its flow.
    taken: &'a ClassOfTransfer<'a>,
    class_of: BTreeMap<u16, usize>,
    /// The number of transfers per port.
    passes: BTreeMap<u16, u32>,
    size: ByteSize,
    moved: u64,
    transfers: Vec<ClassTransfer>,
}

impl<'a> EndpointTransfers<'a> {
    fn new(
        endpoint: usize,
        classes: &[Vec<u16>],
        taken: &'a ClassOfTransfer<'a>,
        size: usize,
    ) -> Self {
        let ports = classes.iter().enumerate();
        let class_of =
            ports.flat_map(|(class, ports)| ports.iter().map(move |port| (*port, class)));
        Self {
            endpoint,
            taken,
            class_of: class_of.collect(),
            passes: BTreeMap::new(),
            size: ByteSize(size as u64),
            moved: 0,
            transfers: Vec::new(),
        }
    }

    /// Makes the transfers. They are stored as they end: a kill loses only the last ones.
    fn take(
        mut self,
        spec: &TransferSpec,
        small: &SmallTransfer,
        mut waiting_fleet: Option<&mut WaitingFleet>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let (mut is_kept, mut recorded, mut refused) = (0, now(), Ok(()));
        run_transfers_with(spec, &|| small.exchange(), stop, |transfer| {
            self.push(transfer);
            if now() - recorded < RECORDED {
                return ControlFlow::Continue(());
            }
            if let Some(waiting_fleet) = &mut waiting_fleet {
                refused = waiting_fleet.transfers(&self.transfers[is_kept..]);
            }
            (is_kept, recorded) = (self.transfers.len(), now());
            match refused {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        refused?;
        if let Some(waiting_fleet) = waiting_fleet {
            waiting_fleet.transfers(&self.transfers[is_kept..])?;
        }
        Ok(self)
    }

    /// One pass covers all of them; a port is used several times if its class has few.
    fn push(&mut self, mut transfer: SourcePortTransfer) {
        if let Some(&known) = self.class_of.get(&transfer.source_port) {
            let class = (self.taken)(known, &transfer);
            self.moved += u64::from(class != known);
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
    fn each_further_transfer_from_a_port_is_of_a_further_pass() {
        let classes = [vec![1, 2, 3], vec![4]];
        let stayed = |known, _: &SourcePortTransfer| known;
        let mut made = EndpointTransfers::new(0, &classes, &stayed, 1024);
        for source_port in alternate_ports(&classes, 4) {
            made.push(SourcePortTransfer {
                source_port,
                pass: 0,
                begun: Instant::from_nanos(5),
                outcome: SourcePortOutcome::Failed("refused".to_owned()),
            });
        }
        let of = |transfer: &ClassTransfer| (transfer.transfer.source_port, transfer.transfer.pass);
        let passes: Vec<(u16, u32)> = made.transfers.iter().map(of).collect();
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
        let taken = |known, transfer: &SourcePortTransfer| {
            if transfer.source_port == 4 { 0 } else { known }
        };
        let mut made = EndpointTransfers::new(0, &classes, &taken, 1024);
        for source_port in alternate_ports(&classes, 3) {
            made.push(SourcePortTransfer {
                source_port,
                pass: 0,
                begun: Instant::from_nanos(5),
                outcome: SourcePortOutcome::Failed("refused".to_owned()),
            });
        }
        let transfers = EndpointTransfers {
            by_class: completions_of(2, &made.transfers),
            n: made.transfers.len() as u64,
            moved: made.moved,
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
