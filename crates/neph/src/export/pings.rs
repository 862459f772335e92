//! `neph export --pings`: the pings between blocks, one row each.

use std::io::{self, Write};

use neph_documents::export_rows::PingRow;
use neph_model::Campaign;
use neph_store::{Store, StoreError};

use super::FileFormat;
use super::rows::Rows;

/// Writes the pings of a campaign; returns their number.
pub(super) fn write(
    store: &dyn Store,
    campaign: &Campaign,
    format: FileFormat,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let output_error = |source: io::Error| StoreError::Output {
        format: "pings",
        source,
    };
    let mut rows = Rows::begin::<PingRow>(format, out).map_err(output_error)?;
    for ping in &store.pings_between(campaign.id)? {
        let row = PingRow::of(campaign.id, ping);
        rows.push(&row).map_err(output_error)?;
    }
    rows.end().map_err(output_error)
}

#[cfg(test)]
mod tests {
    use neph_model::{Outcome, PingBetween, Span, Wall};
    use neph_store::{Access, open};
    use serde_json::Value;

    use super::*;

    /// The output for a reply after 7 ms and a ping without a reply, and the number of rows.
    fn export_pings(format: FileFormat) -> (String, u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        let mut store = open(&path, Access::Write).expect("a new workspace");
        let mut campaign = Campaign::new("c", Wall::from_unix_nanos(0));
        campaign.id = "019ab300-0000-7000-8000-000000000000"
            .parse()
            .expect("an id");
        store.add_campaign(&campaign, &[]).expect("added");
        let ping = |sent_ns, round_trip: Option<Span>| PingBetween {
            block: 1,
            name: "far, away".to_owned(),
            address: [10, 0, 0, 1].into(),
            sent: Wall::from_unix_nanos(sent_ns),
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
        let columns = "019ab300-0000-7000-8000-000000000000,1";
        let csv = format!(
            "campaign_id,block,name,address,sent_unix_ns,round_trip_ns,outcome\n\
             {columns},\"far, away\",10.0.0.1,10,7000000,reply\n\
             {columns},\"far, away\",10.0.0.1,20,,lost\n"
        );
        assert_eq!(export_pings(FileFormat::Csv), (csv, 2));
        let (lines, _) = export_pings(FileFormat::Jsonl);
        let lost_ping: Value =
            serde_json::from_str(lines.lines().nth(1).expect("two")).expect("JSON");
        assert_eq!(lost_ping["outcome"], "lost");
        assert_eq!(
            lost_ping.get("round_trip_ns"),
            None,
            "what is absent has no key"
        );
    }
}
