//! Campaigns.

use neph_model::{BlockOrder, Campaign, CampaignId, CampaignStatus, Scenario, Wall};
use rusqlite::{Connection, Result, Row, named_params};

use super::row::{get_named, get_parsed};
use super::{Catalog, scenarios};
use crate::StoreError;

const fn order_name(order: BlockOrder) -> &'static str {
    match order {
        BlockOrder::Random => "random",
        BlockOrder::Sequential => "sequential",
    }
}

fn order_named(name: &str) -> Option<BlockOrder> {
    [BlockOrder::Random, BlockOrder::Sequential]
        .into_iter()
        .find(|order| order_name(*order) == name)
}

impl Catalog {
    /// Adds a campaign with its matrix.
    pub(crate) fn add_campaign(
        &mut self,
        campaign: &Campaign,
        matrix: &[Scenario],
    ) -> Result<(), StoreError> {
        self.change("add the campaign", |transaction| {
            insert(transaction, campaign)?;
            matrix
                .iter()
                .try_for_each(|scenario| scenarios::insert(transaction, campaign.id, scenario))
        })
    }

    /// Removes a campaign without any data; returns whether it was removed.
    pub(crate) fn remove_empty_campaign(
        &mut self,
        campaign: CampaignId,
    ) -> Result<bool, StoreError> {
        const TABLES_WITH_DATA: [&str; 4] =
            ["experiments", "throughput", "traceroute", "pings_between"];
        let mut is_removed = false;
        self.change("remove an empty campaign", |transaction| {
            let id = campaign.to_string();
            for table in TABLES_WITH_DATA {
                let query = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE campaign_id = ?1)");
                if transaction.query_row(&query, [&id], |row| row.get(0))? {
                    return Ok(());
                }
            }
            transaction.execute("DELETE FROM scenarios WHERE campaign_id = ?1", [&id])?;
            let count = transaction.execute("DELETE FROM campaigns WHERE id = ?1", [&id])?;
            is_removed = count > 0;
            Ok(())
        })?;
        Ok(is_removed)
    }

    pub(crate) fn set_campaign_status(
        &mut self,
        campaign: CampaignId,
        status: CampaignStatus,
        ended: Option<Wall>,
    ) -> Result<(), StoreError> {
        self.change("set the campaign's status", |transaction| {
            let changed = transaction.execute(
                "UPDATE campaigns SET status = :status, ended_unix_ns = :ended WHERE id = :id",
                named_params! {
                    ":status": status.name(),
                    ":ended": ended.map(Wall::unix_nanos),
                    ":id": campaign.to_string(),
                },
            )?;
            match changed {
                0 => Err(rusqlite::Error::QueryReturnedNoRows),
                _ => Ok(()),
            }
        })
    }

    /// Marks campaigns whose process ended as interrupted, as Ctrl-C does.
    pub(crate) fn interrupt_running_campaigns(&mut self) -> Result<(), StoreError> {
        let [from, to] = [CampaignStatus::Running, CampaignStatus::Interrupted];
        self.change("end campaigns that were cut off", |transaction| {
            let sql = "UPDATE campaigns SET status = ?2 WHERE status = ?1";
            transaction.execute(sql, [from.name(), to.name()])?;
            Ok(())
        })
    }

    /// All campaigns, oldest first.
    pub(crate) fn campaigns(&self) -> Result<Vec<Campaign>, StoreError> {
        self.query("read the campaigns", |connection| {
            connection
                .prepare("SELECT * FROM campaigns ORDER BY started_unix_ns, id")?
                .query_map([], campaign)?
                .collect()
        })
    }
}

fn insert(connection: &Connection, campaign: &Campaign) -> Result<()> {
    connection.execute(
        "INSERT INTO campaigns VALUES (:id, :name, :plan_text, :plan_hash, :plan_path, :seed,
            :scenario_order, :blocks, :status, :started, :ended, :topology_text, :topology_hash)",
        named_params! {
            ":id": campaign.id.to_string(),
            ":name": campaign.name,
            ":plan_text": campaign.plan_text,
            ":plan_hash": campaign.plan_hash,
            ":plan_path": campaign.plan_path,
            ":seed": campaign.seed.to_string(),
            ":scenario_order": order_name(campaign.order),
            ":blocks": campaign.blocks,
            ":status": campaign.status.name(),
            ":started": campaign.started.unix_nanos(),
            ":ended": campaign.ended.map(Wall::unix_nanos),
            ":topology_text": campaign.topology_text,
            ":topology_hash": campaign.topology_hash,
        },
    )?;
    Ok(())
}

fn campaign(row: &Row<'_>) -> Result<Campaign> {
    Ok(Campaign {
        id: get_parsed(row, "id", "campaign id")?,
        name: row.get("name")?,
        plan_text: row.get("plan_text")?,
        plan_hash: row.get("plan_hash")?,
        plan_path: row.get("plan_path")?,
        topology_text: row.get("topology_text")?,
        topology_hash: row.get("topology_hash")?,
        seed: get_parsed(row, "seed", "seed")?,
        order: get_named(row, "scenario_order", order_named)?,
        blocks: row.get("blocks")?,
        status: get_named(row, "status", CampaignStatus::from_name)?,
        started: Wall::from_unix_nanos(row.get("started_unix_ns")?),
        ended: row
            .get::<_, Option<i64>>("ended_unix_ns")?
            .map(Wall::from_unix_nanos),
    })
}
