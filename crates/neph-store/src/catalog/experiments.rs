//! Experiments and their flows.

use neph_model::{
    CampaignId, Experiment, ExperimentId, ExperimentStatus, Flow, FlowIndex, FlowRole, ProbeKind,
    Quantities, Span, Tally, Wall,
};
use rusqlite::{Connection, OptionalExtension, Result, Row, named_params};

use super::row::{get_json, get_json_if_any, get_named, get_parsed, get_u64, json, u64_bits};
use super::{Catalog, EndedExperiment, flow_traces, provenance, series};
use crate::StoreError;

impl Catalog {
    /// Adds a running experiment.
    pub(crate) fn add_experiment(&mut self, experiment: &Experiment) -> Result<(), StoreError> {
        self.change("add the experiment", |transaction| {
            insert(transaction, experiment)
        })
    }

    /// Records the end of an experiment with all its data. A second call changes only the values.
    pub(crate) fn end_experiment(&mut self, ended: &EndedExperiment<'_>) -> Result<(), StoreError> {
        self.change("record the experiment's end", |transaction| {
            end(transaction, ended)
        })
    }

    /// Adds an experiment that has ended, with all its data. Refuses one that exists.
    pub(crate) fn add_ended(&mut self, ended: &EndedExperiment<'_>) -> Result<(), StoreError> {
        self.change("add the experiment", |transaction| {
            insert(transaction, ended.experiment)?;
            end(transaction, ended)?;
            let mut trace = ended.flow_trace.into_iter();
            trace.try_for_each(|trace| flow_traces::insert(transaction, ended.experiment.id, trace))
        })
    }

    /// A campaign's experiments, by block, position and attempt.
    pub(crate) fn experiments(&self, campaign: CampaignId) -> Result<Vec<Experiment>, StoreError> {
        self.query("read the experiments", |connection| {
            connection
                .prepare(
                    "SELECT * FROM experiments WHERE campaign_id = ?1
                     ORDER BY block, position, attempt, id",
                )?
                .query_map([campaign.to_string()], |row| experiment(connection, row))?
                .collect()
        })
    }

    /// Experiments with status running, also those that a crash interrupted.
    pub(crate) fn running_experiments(&self) -> Result<Vec<Experiment>, StoreError> {
        self.query("read the running experiments", |connection| {
            connection
                .prepare("SELECT * FROM experiments WHERE status = 'running' ORDER BY id")?
                .query_map([], |row| experiment(connection, row))?
                .collect()
        })
    }

    /// Status of an experiment; `None` if it is unknown.
    pub(crate) fn status_of(
        &self,
        experiment: ExperimentId,
    ) -> Result<Option<ExperimentStatus>, StoreError> {
        self.query("read the experiment's status", |connection| {
            connection
                .prepare_cached("SELECT status FROM experiments WHERE id = ?1")?
                .query_row([experiment.to_string()], |row| {
                    get_named(row, "status", ExperimentStatus::from_name)
                })
                .optional()
        })
    }
}

fn insert(connection: &Connection, experiment: &Experiment) -> Result<()> {
    connection.execute(
        "INSERT INTO experiments (id, campaign_id, scenario_id, block, position, attempt,
            status, started_unix_ns, messages, replies, lost, failed, duplicates,
            reordered, late, warnings_json, anchors_json)
         VALUES (:id, :campaign, :scenario, :block, :position, :attempt,
            'running', 0, 0, 0, 0, 0, 0, 0, 0, '[]', '[]')",
        named_params! {
            ":id": experiment.id.to_string(),
            ":campaign": experiment.campaign.to_string(),
            ":scenario": experiment.scenario.to_string(),
            ":block": experiment.block,
            ":position": experiment.position,
            ":attempt": experiment.attempt,
        },
    )?;
    update(connection, experiment)
}

fn end(connection: &Connection, ended: &EndedExperiment<'_>) -> Result<()> {
    let id = ended.experiment.id;
    update(connection, ended.experiment)?;
    series::replace_events(connection, id, ended.events)?;
    series::replace_samples(connection, id, ended.samples)?;
    ended.provenance.map_or(Ok(()), |provenance| {
        provenance::replace(connection, provenance)
    })
}

/// Updates all columns that can change after an experiment was added.
fn update(connection: &Connection, experiment: &Experiment) -> Result<()> {
    let tally = &experiment.tally;
    let changed = connection.execute(
        "UPDATE experiments SET status = :status, reason = :reason, started_unix_ns = :started,
            ended_unix_ns = :ended, messages = :messages, replies = :replies, errors = :errors, lost = :lost,
            failed = :failed, duplicates = :duplicates, reordered = :reordered, late = :late,
            response_p50_ns = :response_p50, warnings_json = :warnings, anchors_json = :anchors, fleet_json = :fleet,
            quantities_json = :quantities
         WHERE id = :id",
        named_params! {
            ":id": experiment.id.to_string(),
            ":status": experiment.status.name(),
            ":reason": experiment.reason,
            ":started": experiment.started.unix_nanos(),
            ":ended": experiment.ended.map(Wall::unix_nanos),
            ":messages": u64_bits(tally.messages),
            ":replies": u64_bits(tally.replies),
            ":errors": u64_bits(tally.errors),
            ":lost": u64_bits(tally.lost),
            ":failed": u64_bits(tally.failed),
            ":duplicates": u64_bits(tally.duplicates),
            ":reordered": u64_bits(tally.reordered),
            ":late": u64_bits(tally.late),
            ":response_p50": experiment.response_p50.map(Span::nanos),
            ":warnings": json(&experiment.warnings),
            ":anchors": json(&experiment.anchors),
            ":fleet": experiment.fleet.as_ref().map(json),
            ":quantities": experiment.quantities.as_ref().map(json),
        },
    )?;
    if changed == 0 {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    replace_flows(connection, experiment)
}

fn replace_flows(connection: &Connection, experiment: &Experiment) -> Result<()> {
    let id = experiment.id.to_string();
    connection.execute("DELETE FROM flows WHERE experiment_id = ?1", [&id])?;
    let mut insert = connection.prepare(
        "INSERT INTO flows VALUES (:experiment, :flow, :role, :probe, :name, :source, :target,
            :reflector, :same_clock)",
    )?;
    for flow in &experiment.flows {
        insert.execute(named_params! {
            ":experiment": id,
            ":flow": flow.index.0,
            ":role": flow.role.name(),
            ":probe": flow.probe.name(),
            ":name": flow.name,
            ":source": flow.source.map(|address| address.to_string()),
            ":target": flow.target.to_string(),
            ":reflector": flow.reflector,
            ":same_clock": flow.same_clock,
        })?;
    }
    Ok(())
}

fn experiment(connection: &Connection, row: &Row<'_>) -> Result<Experiment> {
    let id: ExperimentId = get_parsed(row, "id", "experiment id")?;
    Ok(Experiment {
        id,
        campaign: get_parsed(row, "campaign_id", "campaign id")?,
        scenario: get_parsed(row, "scenario_id", "scenario id")?,
        block: row.get("block")?,
        position: row.get("position")?,
        attempt: row.get("attempt")?,
        status: get_named(row, "status", ExperimentStatus::from_name)?,
        reason: row.get("reason")?,
        started: Wall::from_unix_nanos(row.get("started_unix_ns")?),
        ended: row
            .get::<_, Option<i64>>("ended_unix_ns")?
            .map(Wall::from_unix_nanos),
        flows: flows(connection, id)?,
        fleet: get_json_if_any(row, "fleet_json")?,
        quantities: quantities(row)?,
        tally: tally(row)?,
        response_p50: row
            .get::<_, Option<i64>>("response_p50_ns")?
            .map(Span::from_nanos),
        warnings: get_json(row, "warnings_json")?,
        anchors: get_json(row, "anchors_json")?,
    })
}

/// Catalogs before version 9 have none.
fn quantities(row: &Row<'_>) -> Result<Option<Quantities>> {
    const COLUMN: &str = "quantities_json";
    match row.as_ref().column_index(COLUMN) {
        Ok(_) => get_json_if_any(row, COLUMN),
        Err(_) => Ok(None),
    }
}

fn tally(row: &Row<'_>) -> Result<Tally> {
    Ok(Tally {
        messages: get_u64(row, "messages")?,
        replies: get_u64(row, "replies")?,
        errors: get_u64(row, "errors")?,
        lost: get_u64(row, "lost")?,
        failed: get_u64(row, "failed")?,
        duplicates: get_u64(row, "duplicates")?,
        reordered: get_u64(row, "reordered")?,
        late: get_u64(row, "late")?,
    })
}

fn flows(connection: &Connection, experiment: ExperimentId) -> Result<Vec<Flow>> {
    connection
        .prepare_cached("SELECT * FROM flows WHERE experiment_id = ?1 ORDER BY flow")?
        .query_map([experiment.to_string()], flow)?
        .collect()
}

fn flow(row: &Row<'_>) -> Result<Flow> {
    let source = match row.get::<_, Option<String>>("source")? {
        Some(_) => Some(get_parsed(row, "source", "address")?),
        None => None,
    };
    Ok(Flow {
        index: FlowIndex(row.get("flow")?),
        role: get_named(row, "role", role_named)?,
        probe: get_named(row, "probe", ProbeKind::from_name)?,
        name: row.get("name")?,
        source,
        target: get_parsed(row, "target", "address")?,
        reflector: row.get("reflector")?,
        same_clock: row.get("same_clock")?,
    })
}

fn role_named(name: &str) -> Option<FlowRole> {
    [
        FlowRole::Main,
        FlowRole::Companion,
        FlowRole::PingDestination,
    ]
    .into_iter()
    .find(|role| role.name() == name)
}
