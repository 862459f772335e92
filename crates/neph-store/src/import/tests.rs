use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use neph_model::{CampaignStatus, EventKind, FlowRole, Message, Outcome, Span, Unknown};
use proptest::prelude::*;

use super::*;
use crate::{Access, export_latency_tester_csv, export_latency_tester_folder, open};

mod other_files;

const RAW: &str = "#client-send-timestamp,server-timestamp,e2e-rtt
1611336441708429104,1611336441732325106,43.745733
1611336441958579188,1611336441982435400,41.819516
1611336442208693801,1611336442234417528,44.207570
1611336442459715445,1611336442483520866,41.904871
1611336442709978344,1611336442733883971,40.867048
";

const TSHARK: &str = "#frame-timestamp,tcp-ack-rtt,tcp-stream-id,retransmission,ip-dst
\"1611336441.750143006\",\"0.039583780\",\"0\",,\"172.17.0.2\"
\"1611336442.002436800\",\"0.041769282\",\"0\",\"1\",\"172.17.0.2\"
\"1611336442.003000000\",\"0.030000000\",\"0\",,\"172.17.0.2\"
\"1611336400.000000000\",\"0.030000000\",\"0\",,\"172.17.0.2\"
not a line
";

const PING: &str = "PING 130.192.31.254 (130.192.31.254) 56(84) bytes of data.
[1611336441.750000] 64 bytes from 130.192.31.254: icmp_seq=1 ttl=242 time=41.8 ms
[1611336442.150000] no answer yet for icmp_seq=2
[1611336442.550000] 64 bytes from 130.192.31.254: icmp_seq=3 ttl=242 time=42.0 ms
[1611336449.360580] 64 bytes from 130.192.31.254: icmp_seq=4 ttl=242 time=45.6 ms
[garbage] 64 bytes from 130.192.31.254: icmp_seq=5 ttl=242 time=45.6 ms

--- 130.192.31.254 ping statistics ---
5 packets transmitted, 3 received, 40% packet loss, time 4068ms
";

struct Imported {
    _folders: [tempfile::TempDir; 2],
    store: Box<dyn Store>,
    report: ImportReport,
}

fn import(files: &[(&str, &[u8])]) -> Imported {
    let source = tempfile::tempdir().expect("a temporary folder");
    let target = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        let path = source.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let mut store = open(&target.path().to_string_lossy(), Access::Write).expect("free");
    let report = import_latency_tester(store.as_mut(), source.path()).expect("imported");
    Imported {
        _folders: [source, target],
        store,
        report,
    }
}

fn whole_folder() -> Imported {
    import(&[
        ("raw-data/1-1_Metro.i250.x1024.csv", RAW.as_bytes()),
        ("raw-data/1-tcpdump_report.csv", TSHARK.as_bytes()),
        ("raw-data/ping_Crownlabs.txt", PING.as_bytes()),
        ("settings.yaml", b"runs: 1\n"),
        ("raw-data/plots.txt", b"anything\n"),
    ])
}

fn flow(imported: &Imported, index: u32) -> Vec<Message> {
    let stored = imported.store.messages(imported.report.experiments[0].id);
    let mut messages = stored.expect("readable");
    messages.retain(|message| message.flow.0 == index);
    messages
}

#[test]
fn a_folder_is_imported_as_a_campaign() {
    let imported = whole_folder();
    let campaign = &imported.store.campaigns().expect("readable")[0];
    assert_eq!(campaign.status, CampaignStatus::Imported);
    assert_eq!(campaign.plan_text, "runs: 1\n");
    let scenarios = imported.store.scenarios(campaign.id).expect("readable");
    assert_eq!(scenarios[0].label(), "1_Metro · every 250 ms · 1 KiB");
    let experiments = imported.store.experiments(campaign.id).expect("readable");
    assert_eq!(experiments[0].scenario, scenarios[0].id);
    assert_eq!(experiments[0].tally.replies, 5);
    assert_eq!(experiments[0].flows[1].role, FlowRole::PingDestination);
    assert_eq!(experiments[0].flows[1].name, "Crownlabs");
    assert_eq!(
        experiments[0].flows[1].target.to_string(),
        "130.192.31.254:0"
    );
    let ignored = &imported.report.ignored[0];
    assert!(ignored.ends_with("raw-data/plots.txt"));
}

#[test]
fn raw_columns_are_exported_as_they_were_imported() {
    let imported = whole_folder();
    let campaign = imported.report.campaign.expect("imported");
    let experiments = imported.store.experiments(campaign).expect("readable");
    let mut out = Vec::new();
    let rows = export_latency_tester_csv(imported.store.as_ref(), &experiments[0], &mut out);
    assert_eq!(rows.expect("written"), 5);
    assert_eq!(String::from_utf8(out).expect("text"), RAW);
}

/// Another endpoint, two runs, an interval of 2.5 ms, and a reply after that of a later message.
const REORDERED: &str = "#client-send-timestamp,server-timestamp,e2e-rtt
1611336542708429104,1611336542732325106,3.745733
1611336542713693801,,1.207570
1611336542711193801,1611336542734417528,44.207570
";

fn folder_of(imported: &Imported, folder: &Path) -> BTreeMap<String, String> {
    let campaign = &imported.store.campaigns().expect("readable")[0];
    let experiments = imported.store.experiments(campaign.id).expect("readable");
    let store = imported.store.as_ref();
    export_latency_tester_folder(store, campaign, &experiments, folder).expect("written");
    let entries = fs::read_dir(folder.join("raw-data")).expect("a folder");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = fs::read_to_string(&path).expect("a text");
            (name.into_owned(), text)
        })
        .collect()
}

#[test]
fn an_exported_folder_has_the_files_that_were_imported_and_imports_the_same() {
    let files = [
        ("raw-data/1-1_Metro.i250.x1024.csv", RAW),
        ("raw-data/2-1_Metro.i250.x1024.csv", REORDERED),
        ("raw-data/1-10.0.0.1:8080.i2.5.x64.csv", REORDERED),
        ("settings.yaml", "runs: 2\n"),
    ];
    let first = import(&files.map(|(name, text)| (name, text.as_bytes())));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder_of(&first, folder.path());
    let raw: BTreeMap<String, String> = files[..3]
        .iter()
        .map(|(name, text)| (name.replace("raw-data/", ""), (*text).to_owned()))
        .collect();
    assert_eq!(out, raw);

    let mut store = open(&folder.path().join("ws").to_string_lossy(), Access::Write).expect("free");
    let report = import_latency_tester(store.as_mut(), folder.path()).expect("imported");
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    let contents_of = |store: &dyn crate::Store| {
        let campaign = store.campaigns().expect("readable").remove(0);
        let scenarios = store.scenarios(campaign.id).expect("readable");
        let experiments = store.experiments(campaign.id).expect("readable");
        let messages: Vec<_> = experiments
            .iter()
            .map(|experiment| {
                let messages = store.messages(experiment.id).expect("readable");
                (
                    experiment.block,
                    experiment.scenario,
                    experiment.tally,
                    messages,
                )
            })
            .collect();
        (campaign.plan_text, campaign.blocks, scenarios, messages)
    };
    assert_eq!(
        contents_of(store.as_ref()),
        contents_of(first.store.as_ref())
    );
}

#[test]
fn acknowledgements_go_to_the_message_they_acknowledge() {
    let imported = whole_folder();
    let experiment = &imported.report.experiments[0];
    assert_eq!(
        (experiment.acknowledged, experiment.retransmissions),
        (2, 1)
    );
    assert_eq!(imported.report.acknowledgements_outside, 1);
    let acked: Vec<_> = flow(&imported, 0)
        .iter()
        .map(|message| message.marks.acked.map(neph_model::Instant::nanos))
        .collect();
    // The segments of the second message were acknowledged by two packets: the later one counts.
    let expected = [Some(41_713_902), Some(294_570_896), None, None, None];
    assert_eq!(acked, expected);
}

#[test]
fn retransmissions_are_events_of_the_experiment_they_fall_into() {
    let imported = whole_folder();
    let experiment = &imported.report.experiments[0];
    let events = imported.store.events(experiment.id).expect("readable");
    let event_rows: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.flow.0, event.at, event.text.as_str()))
        .collect();
    let expected = (
        EventKind::Retransmitted,
        0,
        294_007_696,
        "a segment was retransmitted to 172.17.0.2 (tcp.stream 0)",
    );
    assert_eq!(event_rows, [expected]);
}

#[test]
fn pings_during_an_experiment_are_a_flow_and_a_gap_is_a_loss() {
    let imported = whole_folder();
    let pings = flow(&imported, 1);
    let outcomes: Vec<_> = pings.iter().map(|ping| ping.outcome).collect();
    assert_eq!(outcomes, [Outcome::Lost, Outcome::Reply]);
    let round_trip = pings[1].ledger().expect("a reply").service_time();
    assert_eq!(round_trip.nanos(), 42_000_000);
    assert_eq!(pings[0].marks.app_send, None);
    // The first was sent before the first message, the last after the experiment.
    assert_eq!(imported.report.pings_outside, 2);
    let campaign = imported.report.campaign.expect("imported");
    let between = imported.store.pings_between(campaign).expect("readable");
    let ping_rows: Vec<_> = between
        .iter()
        .map(|ping| (ping.name.as_str(), ping.sent.unix_nanos(), ping.round_trip))
        .collect();
    let first = (1_611_336_441_708_200_000, Some(Span::from_micros(41_800)));
    let last = (1_611_336_449_314_980_000, Some(Span::from_micros(45_600)));
    assert_eq!(
        ping_rows,
        [
            ("Crownlabs", first.0, first.1),
            ("Crownlabs", last.0, last.1)
        ]
    );
}

#[test]
fn unreadable_lines_are_reported_with_file_and_line() {
    let imported = whole_folder();
    let problem_rows: Vec<_> = imported
        .report
        .problems
        .iter()
        .map(|problem| {
            let name = problem.path.file_name().expect("a file").to_string_lossy();
            (name.into_owned(), problem.line)
        })
        .collect();
    let expected = [
        ("1-tcpdump_report.csv".to_owned(), Some(6)),
        ("ping_Crownlabs.txt".to_owned(), Some(6)),
    ];
    assert_eq!(problem_rows, expected);
}

#[test]
fn an_uninformative_file_name_is_the_endpoint_and_a_problem() {
    let imported = import(&[("log.csv", RAW.as_bytes())]);
    let campaign = imported.report.campaign.expect("imported");
    let scenario = &imported.store.scenarios(campaign).expect("readable")[0];
    assert_eq!(scenario.endpoint, "log");
    assert_eq!(scenario.interval.nanos(), 250_262_899);
    assert_eq!(scenario.parameters.request_size(), Some(&Unknown));
    assert_eq!(imported.report.problem_count, 1);
}

#[test]
fn a_folder_without_messages_is_refused() {
    let source = tempfile::tempdir().expect("a temporary folder");
    fs::write(source.path().join("x.csv"), "#client-send-timestamp\nbad\n").expect("written");
    let target = tempfile::tempdir().expect("a temporary folder");
    let mut store = open(&target.path().to_string_lossy(), Access::Write).expect("free");
    let error = import_latency_tester(store.as_mut(), source.path()).expect_err("nothing there");
    assert!(
        matches!(error, StoreError::NothingToImport { .. }),
        "{error}"
    );
    assert_eq!(store.campaigns().expect("readable"), []);
}

/// Almost valid lines, so that they reach deep into the parsers.
fn any_line() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        "[0-9]{1,19}",
        "-?[0-9]{0,3}\\.[0-9]{0,12}",
        "",
        "9223372036854775807"
    ];
    prop_oneof![
        prop::collection::vec(number.clone(), 1..6).prop_map(|fields| fields.join(",")),
        (number.clone(), any::<u16>(), number).prop_map(|(at, seq, time)| format!(
            "[{at}] 64 bytes from 1.2.3.4: icmp_seq={seq} ttl=1 time={time} ms"
        )),
        ".{0,80}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn invalid_file_contents_do_not_abort_the_import(
        lines in prop::collection::vec(any_line(), 0..60),
        name in "[0-9a-z.ix-]{1,20}",
    ) {
        let text = lines.join("\n");
        let raw = format!("{RAW}{text}");
        let tshark = format!("#frame-timestamp,tcp-ack-rtt\n{text}");
        let ping = format!("PING x\n{text}");
        let imported = import(&[
            ("a/1-metro.i250.x64.csv", raw.as_bytes()),
            (&format!("b/{name}q"), raw.as_bytes()),
            ("c.csv", tshark.as_bytes()),
            ("d.txt", ping.as_bytes()),
            ("e.txt", text.as_bytes()),
            ("1-iperf_x.txt", format!("Connecting to host x\n{text}").as_bytes()),
            ("traceroute_x", format!("traceroute to x\n{text}").as_bytes()),
            ("tcp-stats_x.csv", format!("#timestamp,message-id,state,rtt\n{text}").as_bytes()),
        ]);
        prop_assert_eq!(imported.report.experiments.len(), 2);
        for experiment in &imported.report.experiments {
            prop_assert!(experiment.messages >= 5);
        }
    }
}
