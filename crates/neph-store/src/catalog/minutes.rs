//! Reduced experiments and their minutes.

use std::collections::BTreeSet;

use neph_model::{ExperimentId, FlowIndex, Minute, Tally, Wall};
use rusqlite::{OptionalExtension, Row, named_params};

use super::Catalog;
use crate::StoreError;
use crate::store::Reduction;

impl Catalog {
    /// Stores the minutes and marks the experiment as reduced, in one transaction.
    pub(crate) fn reduce(
        &mut self,
        experiment: ExperimentId,
        minutes: &[Minute],
        at: Wall,
    ) -> Result<(), StoreError> {
        self.change("reduce an experiment", |transaction| {
            transaction.execute(
                "INSERT INTO reductions VALUES (?1, ?2, NULL)",
                (experiment.to_string(), at.unix_nanos()),
            )?;
            let mut insert = transaction.prepare(
                "INSERT INTO minutes VALUES (:experiment, :flow, :minute, :messages, :replies, :errors, :lost,
                    :failed, :duplicates, :reordered, :times)",
            )?;
            for minute in minutes {
                let tally = &minute.tally;
                insert.execute(named_params! {
                    ":experiment": experiment.to_string(),
                    ":flow": minute.flow.0,
                    ":minute": minute.minute,
                    ":messages": sql_count(tally.messages),
                    ":replies": sql_count(tally.replies),
                    ":errors": sql_count(tally.errors),
                    ":lost": sql_count(tally.lost),
                    ":failed": sql_count(tally.failed),
                    ":duplicates": sql_count(tally.duplicates),
                    ":reordered": sql_count(tally.reordered),
                    ":times": minute.times,
                })?;
            }
            Ok(())
        })
    }

    /// Removes the minutes of an experiment.
    pub(crate) fn remove_minutes(
        &mut self,
        experiment: ExperimentId,
        at: Wall,
    ) -> Result<(), StoreError> {
        self.change("remove the minutes of an experiment", |transaction| {
            transaction.execute(
                "UPDATE reductions SET minutes_removed_unix_ns = ?2
                    WHERE experiment_id = ?1 AND minutes_removed_unix_ns IS NULL",
                (experiment.to_string(), at.unix_nanos()),
            )?;
            transaction.execute(
                "DELETE FROM minutes WHERE experiment_id = ?1",
                [experiment.to_string()],
            )?;
            Ok(())
        })
    }

    /// When an experiment was reduced; `None` if it was not.
    pub(crate) fn reduction(
        &self,
        experiment: ExperimentId,
    ) -> Result<Option<Reduction>, StoreError> {
        if !self.has_reductions {
            return Ok(None);
        }
        self.query("read the reduction of an experiment", |connection| {
            connection
                .query_row(
                    "SELECT * FROM reductions WHERE experiment_id = ?1",
                    [experiment.to_string()],
                    |row| {
                        let removed: Option<i64> = row.get("minutes_removed_unix_ns")?;
                        Ok(Reduction {
                            at: Wall::from_unix_nanos(row.get("at_unix_ns")?),
                            minutes_removed: removed.map(Wall::from_unix_nanos),
                        })
                    },
                )
                .optional()
        })
    }

    /// All experiments whose messages were reduced.
    pub(crate) fn reduced(&self) -> Result<BTreeSet<ExperimentId>, StoreError> {
        self.query("read the reduced experiments", |connection| {
            let mut statement = connection.prepare("SELECT experiment_id FROM reductions")?;
            let ids = statement
                .query_map([], |row| super::row::get_parsed(row, "experiment_id", "id"))?;
            ids.collect()
        })
    }

    /// The minutes of a reduced experiment, by flow and time.
    pub(crate) fn minutes(&self, experiment: ExperimentId) -> Result<Vec<Minute>, StoreError> {
        if !self.has_reductions {
            return Ok(Vec::new());
        }
        self.query("read the minutes of an experiment", |connection| {
            connection
                .prepare("SELECT * FROM minutes WHERE experiment_id = ?1 ORDER BY flow, minute")?
                .query_map([experiment.to_string()], minute)?
                .collect()
        })
    }
}

/// Counts are far below the limit of `i64`.
fn sql_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn minute(row: &Row<'_>) -> rusqlite::Result<Minute> {
    let count = |column: &str| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(Minute {
        flow: FlowIndex(row.get("flow")?),
        minute: row.get("minute")?,
        tally: Tally {
            messages: count("messages")?,
            replies: count("replies")?,
            errors: count("errors")?,
            lost: count("lost")?,
            failed: count("failed")?,
            duplicates: count("duplicates")?,
            reordered: count("reordered")?,
            late: 0,
        },
        times: row.get("response_times")?,
    })
}
