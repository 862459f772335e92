//! Events and samples of experiments that have ended.

use neph_model::{Event, EventKind, ExperimentId, FlowIndex, Sample, SeriesName};
use rusqlite::{Connection, Result, params};

use super::Catalog;
use super::row::get_named;
use crate::StoreError;

impl Catalog {
    /// An experiment's events, by time.
    pub(crate) fn events(&self, experiment: ExperimentId) -> Result<Vec<Event>, StoreError> {
        self.query("read the events", |connection| {
            connection
                .prepare("SELECT * FROM events WHERE experiment_id = ?1 ORDER BY at_ns, rowid")?
                .query_map([experiment.to_string()], |row| {
                    Ok(Event {
                        flow: FlowIndex(row.get("flow")?),
                        at: row.get("at_ns")?,
                        kind: get_named(row, "kind", EventKind::from_name)?,
                        text: row.get("text")?,
                    })
                })?
                .collect()
        })
    }

    /// An experiment's samples, by series and time.
    pub(crate) fn samples(&self, experiment: ExperimentId) -> Result<Vec<Sample>, StoreError> {
        let mut samples: Vec<Sample> = self.query("read the samples", |connection| {
            connection
                .prepare("SELECT * FROM samples WHERE experiment_id = ?1 ORDER BY at_ns, rowid")?
                .query_map([experiment.to_string()], |row| {
                    Ok(Sample {
                        series: get_named(row, "series", SeriesName::from_name)?,
                        at: row.get("at_ns")?,
                        value: row.get::<_, Option<f64>>("value")?.unwrap_or(f64::NAN),
                    })
                })?
                .collect()
        })?;
        samples.sort_by_key(|sample| (sample.series, sample.at));
        Ok(samples)
    }
}

pub(super) fn replace_events(
    connection: &Connection,
    experiment: ExperimentId,
    events: &[Event],
) -> Result<()> {
    let id = experiment.to_string();
    connection.execute("DELETE FROM events WHERE experiment_id = ?1", [&id])?;
    let mut insert = connection.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for event in events {
        insert.execute(params![
            id,
            event.flow.0,
            event.at,
            event.kind.name(),
            event.text
        ])?;
    }
    Ok(())
}

pub(super) fn replace_samples(
    connection: &Connection,
    experiment: ExperimentId,
    samples: &[Sample],
) -> Result<()> {
    let id = experiment.to_string();
    connection.execute("DELETE FROM samples WHERE experiment_id = ?1", [&id])?;
    let mut insert = connection.prepare("INSERT INTO samples VALUES (?1, ?2, ?3, ?4)")?;
    for sample in samples {
        insert.execute(params![
            id,
            sample.series.to_string(),
            sample.at,
            sample.value
        ])?;
    }
    Ok(())
}
