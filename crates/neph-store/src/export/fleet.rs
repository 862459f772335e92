//! Messages of fleets as CSV, JSON lines and Parquet. Experiments without a fleet add no rows.

use std::io::Write;

use neph_model::{Experiment, FleetMessage};
use neph_text::csv_field;

use super::{csv, jsonl, parquet};
use crate::{Store, StoreError};
use neph_text::WholeFile;

/// Columns after those of the files: the endpoint of the slot, and the RTT without the time at the
/// peer.
const EXTRA_COLUMNS: [&str; 2] = ["endpoint", "network_ns"];

/// Name of the endpoint that the message's slot measures, if the experiment has it.
fn find_endpoint_name<'e>(experiment: &'e Experiment, message: &FleetMessage) -> Option<&'e str> {
    let fleet = experiment.fleet.as_ref()?;
    let endpoint = fleet.endpoints.get(fleet.endpoint_of(message.slot))?;
    Some(&endpoint.name)
}

fn network_rtt_ns(message: &FleetMessage) -> Option<i64> {
    message.reply().map(|reply| reply.network().nanos())
}

/// Writes the messages of the fleets of `experiments` as CSV with a header; returns the number of
/// rows. Columns: those that identify the experiment, those of the fleets' files, the endpoint's
/// name, and the RTT without the time at the peer. An absent value is an empty field.
///
/// # Errors
/// The store cannot be read, or `out` cannot be written.
pub fn export_fleet_csv(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    csv::write(
        store,
        experiments,
        out,
        &EXTRA_COLUMNS,
        |experiment, message, line| {
            let name = find_endpoint_name(experiment, message).unwrap_or_default();
            let name = csv_field(name);
            let network_ns =
                network_rtt_ns(message).map_or_else(String::new, |nanos| nanos.to_string());
            line.push_str(&format!(",{name},{network_ns}"));
        },
    )
}

/// Writes the same as JSON objects, one per line; an absent value has no key. Returns the number of
/// lines.
///
/// # Errors
/// The store cannot be read, or `out` cannot be written.
pub fn export_fleet_jsonl(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    jsonl::write(store, experiments, out, |experiment, message, object| {
        let [endpoint_key, network_key] = EXTRA_COLUMNS;
        let endpoint = find_endpoint_name(experiment, message);
        object.extend(endpoint.map(|endpoint| (endpoint_key.to_owned(), endpoint.into())));
        object.extend(network_rtt_ns(message).map(|nanos| (network_key.to_owned(), nanos.into())));
    })
}

/// Writes one Parquet file with the columns of the fleets' files, after those that identify the
/// experiment. Returns the number of rows.
///
/// # Errors
/// The store cannot be read, or the file cannot be written.
pub fn export_fleet_parquet(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &WholeFile,
) -> Result<u64, StoreError> {
    parquet::write::<FleetMessage>(store, experiments, out)
}

#[cfg(test)]
mod tests {
    use crate::records_for_tests::fleet_message;
    use neph_model::{FleetOutcome, SynAnswer};
    use serde_json::{Map, Value};

    use super::*;
    use crate::columns::ColumnsReader;
    use crate::export::tests::two_fleets;
    use neph_text::Existing;

    fn messages() -> Vec<FleetMessage> {
        let mut messages: Vec<_> = (0..4).map(|n| fleet_message(n, 7, i64::from(n))).collect();
        messages[2].outcome = FleetOutcome::Lost;
        if let FleetOutcome::Reply(reply) = &mut messages[3].outcome {
            reply.answer = Some(SynAnswer::Rst);
        }
        messages
    }

    #[test]
    fn the_text_export_has_each_message_with_endpoint_and_network_rtt() {
        let (_folder, store, experiments) = two_fleets(&messages());
        let mut out = Vec::new();
        let rows = export_fleet_csv(store.as_ref(), &experiments, &mut out).expect("written");
        assert_eq!(rows, 8, "two experiments, and one without a fleet");
        let csv_text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = csv_text.lines().collect();
        assert!(
            lines[0].ends_with(",ttl,copies,answer,endpoint,network_ns"),
            "{}",
            lines[0]
        );
        let expected = "0,40000,7,0,900,reply,850000,kernel,-7,30000,7,64,63,1,,\"metro, \"\"east\"\"\",820000";
        assert!(lines[1].ends_with(expected), "{}", lines[1]);
        let lost = "2,40000,7,2000000000,900,lost,,,,,,,,,,\"metro, \"\"east\"\"\",";
        assert!(lines[3].ends_with(lost), "{}", lines[3]);
        assert!(lines[4].contains(",63,1,rst,"), "{}", lines[4]);

        let mut out = Vec::new();
        export_fleet_jsonl(store.as_ref(), &experiments, &mut out).expect("written");
        let json_text = String::from_utf8(out).expect("text");
        let objects: Vec<Map<String, Value>> = json_text
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect();
        assert_eq!(objects.len(), 8);
        assert_eq!(objects[1]["network_ns"], 820_000);
        assert_eq!(objects[2]["outcome"], "lost");
        assert!(!objects[2].contains_key("network_ns"));
        assert_eq!(objects[3]["answer"], "rst");
        assert!(!objects[1].contains_key("answer"));
    }

    #[test]
    fn the_parquet_export_has_the_same_messages() {
        let (folder, store, experiments) = two_fleets(&messages());
        let path = folder.path().join("x.parquet");
        let out = WholeFile::at(&path, Existing::Keep).expect("a place");
        let rows = export_fleet_parquet(store.as_ref(), &experiments, &out).expect("written");
        out.finish().expect("whole");
        assert_eq!(rows, 8);
        let reader = ColumnsReader::<FleetMessage>::open(&path)
            .expect("readable")
            .expect("there");
        let read_messages: Vec<FleetMessage> = (0..reader.row_groups())
            .flat_map(|group| reader.row_group(group).expect("readable"))
            .collect();
        assert_eq!(read_messages, [messages(), messages()].concat());
    }
}
