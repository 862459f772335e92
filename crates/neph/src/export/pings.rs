//! `neph export --pings`: the pings between blocks, a row each.

use std::io::{self, Write};

use neph_model::{Campaign, PingBetween, Span};
use neph_store::{Store, StoreError};
use serde_json::{Map, Value, json};

use super::Format;
use super::rows::Rows;

/// Whose a row is: no experiment ran.
const WHOSE: [&str; 2] = ["campaign_id", "block"];
/// What it holds behind that. The block is the one that was waited for.
const KEYS: [&str; 5] = [
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
    let mut rows = Rows::begin(format, (&WHOSE, &KEYS), out).map_err(unwritten)?;
    for ping in &store.pings_between(campaign.id)? {
        let values: [Value; WHOSE.len()] = [campaign.id.to_string().into(), ping.block.into()];
        let whose: Map<String, Value> = WHOSE.map(str::to_owned).into_iter().zip(values).collect();
        rows.push(&whose, row(ping)).map_err(unwritten)?;
    }
    rows.end().map_err(unwritten)
}

fn row(ping: &PingBetween) -> Value {
    json!({
        "name": ping.name,
        "address": ping.address.to_string(),
        "sent_unix_ns": ping.sent.unix_nanos(),
        "round_trip_ns": ping.round_trip.map(Span::nanos),
        "outcome": ping.outcome.name(),
    })
}
