//! Transfers on the source ports of a fleet's latency classes, by experiment.

use neph_model::{
    ByteSize, ClassTransfer, ExperimentId, Instant, SourcePortOutcome, SourcePortTransfer, Span,
};
use rusqlite::{Result, Row, named_params};

use super::Catalog;
use super::row::{get_index, get_u64, index, u64_bits};
use crate::StoreError;

impl Catalog {
    /// Adds all or none.
    pub(crate) fn add_transfers(
        &mut self,
        experiment: ExperimentId,
        transfers: &[ClassTransfer],
    ) -> Result<(), StoreError> {
        self.change("add the transfers", |transaction| {
            let mut insert = transaction.prepare(
                "INSERT INTO transfer VALUES (NULL, :experiment, :endpoint, :class, :port, :pass,
                    :at, :bytes, :connect, :whole, :failure)",
            )?;
            let id = experiment.to_string();
            for transfer in transfers {
                let flow_transfer = &transfer.transfer;
                insert.execute(named_params! {
                    ":experiment": id,
                    ":endpoint": index(transfer.endpoint),
                    ":class": index(transfer.class),
                    ":port": flow_transfer.source_port,
                    ":pass": flow_transfer.pass,
                    ":at": flow_transfer.begun.nanos(),
                    ":bytes": u64_bits(transfer.size.0),
                    ":connect": flow_transfer.connect().map(Span::nanos),
                    ":whole": flow_transfer.total().map(Span::nanos),
                    ":failure": flow_transfer.failure(),
                })?;
            }
            Ok(())
        })
    }

    /// An experiment's transfers, by time.
    pub(crate) fn transfers(
        &self,
        experiment: ExperimentId,
    ) -> Result<Vec<ClassTransfer>, StoreError> {
        self.query("read the transfers", |connection| {
            connection
                .prepare("SELECT * FROM transfer WHERE experiment_id = ?1 ORDER BY at_ns, id")?
                .query_map([experiment.to_string()], transfer)?
                .collect()
        })
    }
}

fn transfer(row: &Row<'_>) -> Result<ClassTransfer> {
    let connect: Option<i64> = row.get("connect_ns")?;
    let times = connect.zip(row.get("whole_ns")?);
    let failure: Option<String> = row.get("failure")?;
    Ok(ClassTransfer {
        endpoint: get_index(row, "endpoint")?,
        class: get_index(row, "class")?,
        size: ByteSize(get_u64(row, "bytes")?),
        transfer: SourcePortTransfer {
            source_port: row.get("source_port")?,
            pass: row.get("pass")?,
            begun: Instant::from_nanos(row.get("at_ns")?),
            outcome: match times {
                Some((connect, total_time)) => SourcePortOutcome::Done {
                    connect: Span::from_nanos(connect),
                    total: Span::from_nanos(total_time),
                },
                None => SourcePortOutcome::Failed(failure.unwrap_or_default()),
            },
        },
    })
}
