//! Routes that were traced during an experiment.

use neph_model::{ExperimentId, FlowRoute, Instant, Slot, TracedChange, TracedRoute};
use rusqlite::{Result, Row, named_params};

use super::Catalog;
use super::row::{get_hash, get_hash_if_any, get_json, json};
use crate::StoreError;
use crate::store::RouteVisitor;

/// Routes per batch: some hundred KiB.
const BATCH: usize = 256;

impl Catalog {
    /// Adds all or none.
    pub(crate) fn add_traced_routes(
        &mut self,
        experiment: ExperimentId,
        routes: &[TracedRoute],
    ) -> Result<(), StoreError> {
        self.change("add the routes of flows", |transaction| {
            let mut insert = transaction.prepare(
                "INSERT INTO traced_route VALUES (NULL, :experiment, :slot, :port, :at, :hash,
                    :hops, :end, :change, :before, :others)",
            )?;
            let id = experiment.to_string();
            for TracedRoute {
                slot,
                at,
                route,
                change,
            } in routes
            {
                insert.execute(named_params! {
                    ":experiment": id,
                    ":slot": slot.0,
                    ":port": route.source_port,
                    ":at": at.nanos(),
                    ":hash": route.hash.to_string(),
                    ":hops": json(&route.hops),
                    ":end": json(&route.end),
                    ":change": change.map(|change| change.at.nanos()),
                    ":before": change.and_then(|change| change.before).map(String::from),
                    ":others": change.and_then(|change| change.other_routers),
                })?;
            }
            Ok(())
        })
    }

    /// Passes an experiment's traced routes to `visit`, by time.
    pub(crate) fn visit_traced_routes(
        &self,
        experiment: ExperimentId,
        visit: &mut RouteVisitor<'_>,
    ) -> Result<(), StoreError> {
        // A refusal of the visitor is not an SQLite error.
        let mut refused = Ok(());
        self.query("read the routes of flows", |connection| {
            let mut select = connection.prepare(
                "SELECT * FROM traced_route WHERE experiment_id = ?1 ORDER BY at_ns, id",
            )?;
            let mut rows = select.query([experiment.to_string()])?;
            let mut batch = Vec::new();
            while let Some(row) = rows.next()? {
                batch.push(traced_route(row)?);
                if batch.len() == BATCH {
                    refused = visit(&batch);
                    if refused.is_err() {
                        return Ok(());
                    }
                    batch.clear();
                }
            }
            if !batch.is_empty() {
                refused = visit(&batch);
            }
            Ok(())
        })?;
        refused
    }
}

fn traced_route(row: &Row<'_>) -> Result<TracedRoute> {
    let change_at: Option<i64> = row.get("change_at_ns")?;
    let before = get_hash_if_any(row, "hash_before")?;
    let other_routers = row.get("other_routers")?;
    Ok(TracedRoute {
        // Named `lane` before version 11 of the catalog.
        slot: Slot(row.get("slot").or_else(|_| row.get("lane"))?),
        at: Instant::from_nanos(row.get("at_ns")?),
        route: FlowRoute {
            source_port: row.get("source_port")?,
            hops: get_json(row, "hops_json")?,
            hash: get_hash(row, "hash")?,
            end: get_json(row, "end_json")?,
        },
        change: change_at.map(|at| TracedChange {
            at: Instant::from_nanos(at),
            before,
            other_routers,
        }),
    })
}
