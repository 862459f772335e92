//! Throughput checks and traceroutes: measured once per block.

use neph_model::{BitRate, CampaignId, Throughput, Traceroute, Wall};
use rusqlite::{Result, Row, named_params};

use super::Catalog;
use super::row::{get_json, get_parsed, get_u64, json, u64_bits};
use crate::StoreError;

impl Catalog {
    pub(crate) fn add_throughput(
        &mut self,
        campaign: CampaignId,
        check: &Throughput,
    ) -> Result<(), StoreError> {
        self.change("add the throughput check", |transaction| {
            transaction.execute(
                "INSERT INTO throughput VALUES (NULL, :campaign, :block, :endpoint, :tool,
                    :started, :goodput, :failure, :seconds, :site)",
                named_params! {
                    ":campaign": campaign.to_string(),
                    ":block": check.block,
                    ":endpoint": check.endpoint,
                    ":tool": check.tool,
                    ":started": check.started.unix_nanos(),
                    ":goodput": u64_bits(check.goodput.bits_per_second()),
                    ":failure": check.failure,
                    ":seconds": json(&check.seconds),
                    ":site": check.site,
                },
            )?;
            Ok(())
        })
    }

    pub(crate) fn add_traceroute(
        &mut self,
        campaign: CampaignId,
        route: &Traceroute,
    ) -> Result<(), StoreError> {
        self.change("add the traceroute", |transaction| {
            transaction.execute(
                "INSERT INTO traceroute VALUES (NULL, :campaign, :block, :endpoint, :destination,
                    :started, :reached, :failure, :hops, :site)",
                named_params! {
                    ":campaign": campaign.to_string(),
                    ":block": route.block,
                    ":endpoint": route.endpoint,
                    ":destination": route.destination.to_string(),
                    ":started": route.started.unix_nanos(),
                    ":reached": route.reached,
                    ":failure": route.failure,
                    ":hops": json(&route.hops),
                    ":site": route.site,
                },
            )?;
            Ok(())
        })
    }

    /// A campaign's throughput checks, by time.
    pub(crate) fn throughputs(&self, campaign: CampaignId) -> Result<Vec<Throughput>, StoreError> {
        self.query("read the throughput checks", |connection| {
            connection
                .prepare(
                    "SELECT * FROM throughput WHERE campaign_id = ?1 ORDER BY started_unix_ns, id",
                )?
                .query_map([campaign.to_string()], throughput)?
                .collect()
        })
    }

    /// A campaign's traceroutes, by time.
    pub(crate) fn traceroutes(&self, campaign: CampaignId) -> Result<Vec<Traceroute>, StoreError> {
        self.query("read the traceroutes", |connection| {
            connection
                .prepare(
                    "SELECT * FROM traceroute WHERE campaign_id = ?1 ORDER BY started_unix_ns, id",
                )?
                .query_map([campaign.to_string()], traceroute)?
                .collect()
        })
    }
}

fn throughput(row: &Row<'_>) -> Result<Throughput> {
    Ok(Throughput {
        block: row.get("block")?,
        endpoint: row.get("endpoint")?,
        site: row.get("site")?,
        tool: row.get("tool")?,
        started: Wall::from_unix_nanos(row.get("started_unix_ns")?),
        seconds: get_json(row, "seconds_json")?,
        goodput: BitRate(get_u64(row, "goodput_bits_per_s")?),
        failure: row.get("failure")?,
    })
}

fn traceroute(row: &Row<'_>) -> Result<Traceroute> {
    Ok(Traceroute {
        block: row.get("block")?,
        endpoint: row.get("endpoint")?,
        site: row.get("site")?,
        destination: get_parsed(row, "destination", "address")?,
        started: Wall::from_unix_nanos(row.get("started_unix_ns")?),
        hops: get_json(row, "hops_json")?,
        reached: row.get("reached")?,
        failure: row.get("failure")?,
    })
}
