//! The routes of flows, by experiment.

use neph_model::{ExperimentId, FlowTrace, TraceKind, Wall};
use rusqlite::{Connection, Result, Row, named_params};

use super::Catalog;
use super::row::{get_json, get_named, get_parsed, json};
use crate::StoreError;

impl Catalog {
    pub(crate) fn add_flow_trace(
        &mut self,
        experiment: ExperimentId,
        trace: &FlowTrace,
    ) -> Result<(), StoreError> {
        self.change("add the routes of flows", |transaction| {
            insert(transaction, experiment, trace)
        })
    }

    /// An experiment's traces of flows, by time.
    pub(crate) fn flow_traces(
        &self,
        experiment: ExperimentId,
    ) -> Result<Vec<FlowTrace>, StoreError> {
        self.query("read the routes of flows", |connection| {
            connection
                .prepare(
                    "SELECT * FROM flow_trace WHERE experiment_id = ?1
                     ORDER BY started_unix_ns, id",
                )?
                .query_map([experiment.to_string()], flow_trace)?
                .collect()
        })
    }
}

pub(super) fn insert(
    connection: &Connection,
    experiment: ExperimentId,
    trace: &FlowTrace,
) -> Result<()> {
    connection.execute(
        "INSERT INTO flow_trace VALUES (NULL, :experiment, :destination, :kind, :started,
            :enough, :routes)",
        named_params! {
            ":experiment": experiment.to_string(),
            ":destination": trace.destination.to_string(),
            ":kind": trace.kind.scheme(),
            ":started": trace.started.unix_nanos(),
            ":enough": trace.enough,
            ":routes": json(&trace.routes),
        },
    )?;
    Ok(())
}

fn flow_trace(row: &Row<'_>) -> Result<FlowTrace> {
    Ok(FlowTrace {
        destination: get_parsed(row, "destination", "address with a port")?,
        kind: get_named(row, "kind", TraceKind::from_name)?,
        started: Wall::from_unix_nanos(row.get("started_unix_ns")?),
        routes: get_json(row, "routes_json")?,
        enough: row.get("enough")?,
    })
}
