//! Pings between experiments.

use neph_model::{CampaignId, Outcome, PingBetween, Span, Wall};
use rusqlite::{Result, Row, named_params};

use super::Catalog;
use super::row::{get_named, get_parsed};
use crate::StoreError;

impl Catalog {
    pub(crate) fn add_pings_between(
        &mut self,
        campaign: CampaignId,
        pings: &[PingBetween],
    ) -> Result<(), StoreError> {
        self.change("add pings between experiments", |transaction| {
            let mut insert = transaction.prepare(
                "INSERT INTO pings_between VALUES (NULL, :campaign, :block, :name, :address, :sent,
                    :outcome, :round_trip)",
            )?;
            for ping in pings {
                insert.execute(named_params! {
                    ":campaign": campaign.to_string(),
                    ":block": ping.block,
                    ":name": ping.name,
                    ":address": ping.address.to_string(),
                    ":sent": ping.sent.unix_nanos(),
                    ":outcome": ping.outcome.name(),
                    ":round_trip": ping.round_trip.map(Span::nanos),
                })?;
            }
            Ok(())
        })
    }

    /// A campaign's pings between experiments, by time.
    pub(crate) fn pings_between(
        &self,
        campaign: CampaignId,
    ) -> Result<Vec<PingBetween>, StoreError> {
        self.query("read the pings between experiments", |connection| {
            connection
                .prepare(
                    "SELECT * FROM pings_between WHERE campaign_id = ?1 ORDER BY sent_unix_ns, id",
                )?
                .query_map([campaign.to_string()], ping)?
                .collect()
        })
    }
}

fn ping(row: &Row<'_>) -> rusqlite::Result<PingBetween> {
    Ok(PingBetween {
        block: row.get("block")?,
        name: row.get("name")?,
        address: get_parsed(row, "address", "address")?,
        sent: Wall::from_unix_nanos(row.get("sent_unix_ns")?),
        outcome: get_named(row, "outcome", Outcome::from_name)?,
        round_trip: row
            .get::<_, Option<i64>>("round_trip_ns")?
            .map(Span::from_nanos),
    })
}
