//! Provenance of experiments that have ended.

use neph_model::{ExperimentId, HostFacts, Load, Provenance, Span};
use rusqlite::{Connection, OptionalExtension, Result, Row, named_params};

use super::Catalog;
use super::row::{get_json, get_parsed, json};
use crate::StoreError;

impl Catalog {
    /// An experiment's provenance; `None` before its end.
    pub(crate) fn provenance(
        &self,
        experiment: ExperimentId,
    ) -> Result<Option<Provenance>, StoreError> {
        self.query("read the provenance", |connection| {
            connection
                .query_row(
                    "SELECT * FROM provenance WHERE experiment_id = ?1",
                    [experiment.to_string()],
                    provenance,
                )
                .optional()
        })
    }
}

pub(super) fn replace(connection: &Connection, provenance: &Provenance) -> Result<()> {
    let host = &provenance.host;
    connection.execute(
        "INSERT OR REPLACE INTO provenance VALUES (:experiment, :version, :commit, :plan_hash,
            :site, :host, :kernel, :cpu, :cores, :clock_source, :clock_sync, :congestion_control,
            :busy, :steal, :load, :lateness_p50, :lateness_p99, :offloads, :sysctls)",
        named_params! {
            ":experiment": provenance.experiment.to_string(),
            ":version": provenance.version,
            ":commit": provenance.commit,
            ":plan_hash": provenance.plan_hash,
            ":site": provenance.site,
            ":host": host.host,
            ":kernel": host.kernel,
            ":cpu": host.cpu,
            ":cores": host.cores,
            ":clock_source": host.clock_source,
            ":clock_sync": host.clock_sync,
            ":congestion_control": host.congestion_control,
            ":busy": provenance.load.map(|load| load.busy_percent),
            ":steal": provenance.load.map(|load| load.steal_percent),
            ":load": provenance.load.map(|load| load.load_average),
            ":lateness_p50": provenance.lateness_p50.map(Span::nanos),
            ":lateness_p99": provenance.lateness_p99.map(Span::nanos),
            ":offloads": json(&host.offloads),
            ":sysctls": json(&host.sysctls),
        },
    )?;
    Ok(())
}

fn provenance(row: &Row<'_>) -> Result<Provenance> {
    let span = |column| {
        row.get::<_, Option<i64>>(column)
            .map(|nanos| nanos.map(Span::from_nanos))
    };
    Ok(Provenance {
        experiment: get_parsed(row, "experiment_id", "experiment id")?,
        version: row.get("version")?,
        commit: row.get("commit_hash")?,
        plan_hash: row.get("plan_hash")?,
        site: row.get("site")?,
        host: host(row)?,
        load: load(row)?,
        lateness_p50: span("lateness_p50_ns")?,
        lateness_p99: span("lateness_p99_ns")?,
    })
}

fn host(row: &Row<'_>) -> Result<HostFacts> {
    Ok(HostFacts {
        host: row.get("host")?,
        kernel: row.get("kernel")?,
        cpu: row.get("cpu")?,
        cores: row.get("cores")?,
        clock_source: row.get("clock_source")?,
        clock_sync: row.get("clock_sync")?,
        offloads: get_json(row, "offloads_json")?,
        sysctls: get_json(row, "sysctls_json")?,
        congestion_control: row.get("congestion_control")?,
    })
}

/// `None` if it is not known.
fn load(row: &Row<'_>) -> Result<Option<Load>> {
    let columns = (
        row.get("busy_percent")?,
        row.get("steal_percent")?,
        row.get("load_average")?,
    );
    let (Some(busy_percent), Some(steal_percent), Some(load_average)) = columns else {
        return Ok(None);
    };
    Ok(Some(Load {
        busy_percent,
        steal_percent,
        load_average,
    }))
}
