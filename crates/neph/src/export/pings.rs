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

#[cfg(test)]
mod tests {
    use neph_model::{Outcome, Wall};
    use neph_store::{Access, open};

    use super::*;

    /// What is written of a reply after 7 ms and of a ping without one, and of how many.
    fn written(format: Format) -> (String, u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().display().to_string();
        let mut store = open(&place, Access::Write).expect("a new workspace");
        let mut campaign = Campaign::begun("c", Wall::from_unix_nanos(0));
        campaign.id = "019ab300-0000-7000-8000-000000000000"
            .parse()
            .expect("an id");
        store.add_campaign(&campaign, &[]).expect("added");
        let ping = |at, round_trip: Option<Span>| PingBetween {
            block: 1,
            name: "far, away".to_owned(),
            address: [10, 0, 0, 1].into(),
            sent: Wall::from_unix_nanos(at),
            outcome: round_trip.map_or(Outcome::Lost, |_| Outcome::Reply),
            round_trip,
        };
        let pings = [ping(20, None), ping(10, Some(Span::from_millis(7)))];
        store.add_pings_between(campaign.id, &pings).expect("added");
        let mut out = Vec::new();
        let rows = write(store.as_ref(), &campaign, format, &mut out).expect("written");
        (String::from_utf8(out).expect("text"), rows)
    }

    #[test]
    fn each_ping_is_a_row_by_time_and_a_lost_one_has_no_round_trip() {
        let whose = "019ab300-0000-7000-8000-000000000000,1";
        let csv = format!(
            "campaign_id,block,name,address,sent_unix_ns,round_trip_ns,outcome\n\
             {whose},\"far, away\",10.0.0.1,10,7000000,reply\n\
             {whose},\"far, away\",10.0.0.1,20,,lost\n"
        );
        assert_eq!(written(Format::Csv), (csv, 2));
        let (lines, _) = written(Format::Jsonl);
        let lost: Value = serde_json::from_str(lines.lines().nth(1).expect("two")).expect("JSON");
        assert_eq!(lost["outcome"], "lost");
        assert_eq!(lost.get("round_trip_ns"), None, "what is absent has no key");
    }
}
