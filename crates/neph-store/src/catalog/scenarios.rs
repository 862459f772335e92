//! Scenarios: a campaign's matrix.

use neph_model::{ByteSize, CampaignId, ProbeKind, Scenario, Span, Targets};
use rusqlite::{Connection, Result, Row, named_params};

use super::Catalog;
use super::row::{get_json, get_named, get_parsed, get_u64, json, u64_bits};
use crate::StoreError;

impl Catalog {
    /// A campaign's scenarios, by index.
    pub(crate) fn scenarios(&self, campaign: CampaignId) -> Result<Vec<Scenario>, StoreError> {
        self.query("read the scenarios", |connection| {
            connection
                .prepare("SELECT * FROM scenarios WHERE campaign_id = ?1 ORDER BY scenario_index")?
                .query_map([campaign.to_string()], scenario)?
                .collect()
        })
    }
}

pub(super) fn insert(
    connection: &Connection,
    campaign: CampaignId,
    scenario: &Scenario,
) -> Result<()> {
    connection.execute(
        "INSERT INTO scenarios VALUES (:campaign, :scenario_index, :id, :label, :endpoint, :target,
            :probe, :interval_ns, :request_bytes, :response_bytes, :messages, :parameters, :varied)",
        named_params! {
            ":campaign": campaign.to_string(),
            ":scenario_index": scenario.index,
            ":id": scenario.id.to_string(),
            ":label": scenario.label(),
            ":endpoint": scenario.endpoint,
            ":target": scenario.target.to_string(),
            ":probe": scenario.probe().name(),
            ":interval_ns": scenario.interval.nanos(),
            ":request_bytes": u64_bits(scenario.request_size.bytes()),
            ":response_bytes": u64_bits(scenario.response_size.bytes()),
            ":messages": u64_bits(scenario.messages),
            ":parameters": json(&scenario.parameters),
            ":varied": json(&scenario.varied),
        },
    )?;
    Ok(())
}

fn scenario(row: &Row<'_>) -> Result<Scenario> {
    Ok(Scenario {
        id: get_parsed(row, "id", "scenario id")?,
        index: row.get("scenario_index")?,
        endpoint: row.get("endpoint")?,
        target: Targets::read(
            &row.get::<_, String>("target")?,
            get_named(row, "probe", ProbeKind::from_name)?,
        ),
        interval: Span::from_nanos(row.get("interval_ns")?),
        request_size: ByteSize(get_u64(row, "request_bytes")?),
        response_size: ByteSize(get_u64(row, "response_bytes")?),
        messages: get_u64(row, "messages")?,
        parameters: get_json(row, "parameters_json")?,
        varied: get_json(row, "varied_json")?,
    })
}
