//! `neph export --pings`: the pings between blocks, a row each.

use std::io::{self, Write};

use neph_model::{Campaign, PingBetween, Span};
use neph_store::{Store, StoreError};
use serde_json::{Map, Value, json};

use super::Format;
use super::rows::Rows;

/// What a row holds; it belongs to no experiment. The block is the one that was waited for.
const KEYS: [&str; 7] = [
    "campaign_id",
    "block",
    "name",
    "address",
    "sent_unix_ns",
    "round_trip_ns",
    "outcome",
];

/// Writes the pings of a campaign; returns how many.
pub(super) fn write(
    store: &dyn Store,
    campaign: &Campaign,
    format: Format,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let unwritten = |source: io::Error| StoreError::Output {
        format: "pings",
        source,
    };
    let mut rows = Rows::begin(format, (&[], &KEYS), out).map_err(unwritten)?;
    for ping in &store.pings_between(campaign.id)? {
        let row = row(campaign, ping);
        rows.push(&Map::new(), row).map_err(unwritten)?;
    }
    rows.end().map_err(unwritten)
}

fn row(campaign: &Campaign, ping: &PingBetween) -> Value {
    json!({
        "campaign_id": campaign.id.to_string(),
        "block": ping.block,
        "name": ping.name,
        "address": ping.address.to_string(),
        "sent_unix_ns": ping.sent.unix_nanos(),
        "round_trip_ns": ping.round_trip.map(Span::nanos),
        "outcome": ping.outcome.name(),
    })
}
