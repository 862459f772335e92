//! Files other than the messages: settings, iperf3, traceroute, TCP statistics.

use neph_model::{BitRate, ByteSize, SeriesName};

use super::*;

const IPERF: &str = "Connecting to host 130.192.31.240, port 80
[  5] local 172.17.0.2 port 39566 connected to 130.192.31.240 port 80
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   464 KBytes  3.80 Mbits/sec    0   55.6 KBytes
[  5]   1.00-2.00   sec   458 KBytes   900 Kbits/sec    2   73.2 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  1.95 MBytes  3.27 Mbits/sec    2             sender
[  5]   0.00-2.35   sec  1.82 MBytes  2.85 Mbits/sec                  receiver

iperf Done.
";

const ROUTE: &str = "traceroute to 130.192.31.242 (130.192.31.242), 30 hops max, 60 byte packets
 1  _gateway (172.17.0.1)  0.045 ms  0.012 ms  0.011 ms
 2  * * *
 3  r1.example (10.0.0.1)  1.100 ms r2.example (10.0.0.2)  1.200 ms *
 4  130.192.31.242 (130.192.31.242)  20.100 ms !X  20.200 ms  20.300 ms
 x  no hop
";

const STATS: &str = "#timestamp,message-id,state,ca_state,pad_cgo_0-0,rtt,snd_cwnd,total_retrans
1611336441708500000,1,1,0,119,41000,10,0,7
1611336441800000000,-1,Connection Reset
1611336441958600000,2,1,0,119,42000,11,1,7
1611336441958700000,2,1,0,119
1611336400000000000,1,1,0,119,41000,10,0,7
";

const STEP: &str = "1-130.192.31.242_8080.i250.x1024";

fn with_others() -> Imported {
    import(&[
        (&format!("raw-data/{STEP}.csv"), RAW.as_bytes()),
        (&format!("raw-data/traceroute_{STEP}"), ROUTE.as_bytes()),
        (&format!("raw-data/tcp-stats_{STEP}.csv"), STATS.as_bytes()),
        ("raw-data/1-iperf_Crownlabs.txt", IPERF.as_bytes()),
    ])
}

#[test]
fn an_iperf_file_is_imported_as_the_throughput_check_of_its_run() {
    let imported = with_others();
    let campaign = imported.report.campaign.expect("imported");
    let checks = imported.store.throughputs(campaign).expect("readable");
    let [check] = checks.as_slice() else {
        panic!("{checks:?}");
    };
    assert_eq!((check.block, check.endpoint.as_str()), (0, "Crownlabs"));
    assert_eq!(check.goodput, BitRate(2_850_000));
    let seconds: Vec<_> = check
        .seconds
        .iter()
        .map(|throughput_second| {
            (
                throughput_second.goodput.0,
                throughput_second.retransmissions,
            )
        })
        .collect();
    assert_eq!(seconds, [(3_800_000, 0), (900_000, 2)]);
    // It took 2.35 s and ended when the first message was sent.
    assert_eq!(check.started.unix_nanos(), 1_611_336_439_358_429_104);
    assert_eq!(
        (check.failure.as_deref(), check.tool.as_str()),
        (None, "iperf3")
    );
}

#[test]
fn a_truncated_iperf_file_has_a_failure_reason() {
    let truncated = IPERF.split("- - -").next().expect("a beginning");
    let imported = import(&[
        ("1-a.i250.x1024.csv", RAW.as_bytes()),
        ("1-iperf_b.txt", truncated.as_bytes()),
    ]);
    let campaign = imported.report.campaign.expect("imported");
    let check = &imported.store.throughputs(campaign).expect("readable")[0];
    assert_eq!(check.seconds.len(), 2);
    assert!(check.failure.is_some());
}

#[test]
fn a_traceroute_file_is_imported_as_the_route_of_its_step() {
    let imported = with_others();
    let campaign = imported.report.campaign.expect("imported");
    let routes = imported.store.traceroutes(campaign).expect("readable");
    let [route] = routes.as_slice() else {
        panic!("{routes:?}");
    };
    assert_eq!((route.block, route.reached), (0, true));
    assert_eq!(route.endpoint, "130.192.31.242_8080");
    assert_eq!(route.destination.to_string(), "130.192.31.242");
    let hops: Vec<_> = route
        .hops
        .iter()
        .map(|hop| (hop.ttl, hop.addresses.len(), hop.round_trips.len()))
        .collect();
    assert_eq!(hops, [(1, 1, 3), (2, 0, 0), (3, 2, 2), (4, 1, 3)]);
    assert_eq!(route.hops[3].round_trips[0].nanos(), 20_100_000);
    let problem = &imported.report.problems[1];
    assert_eq!(
        (problem.line, problem.message.as_str()),
        (Some(6), "no hop: left out")
    );
}

#[test]
fn tcp_statistics_are_series_of_the_experiment_they_fall_into() {
    let imported = with_others();
    let experiment = &imported.report.experiments[0];
    assert_eq!(
        (experiment.tcp_rows, imported.report.tcp_rows_outside),
        (2, 1)
    );
    let samples = imported.store.samples(experiment.id).expect("readable");
    let values_of = |name: &str| -> Vec<(i64, f64)> {
        let series = SeriesName::from_name(name).expect("a series");
        let series_samples = samples.iter().filter(|sample| sample.series == series);
        series_samples
            .map(|sample| (sample.at, sample.value))
            .collect()
    };
    assert_eq!(
        values_of("tcp_rtt_us"),
        [(70_896, 41_000.0), (250_170_896, 42_000.0)]
    );
    assert_eq!(
        values_of("tcp_snd_cwnd_segments"),
        [(70_896, 10.0), (250_170_896, 11.0)]
    );
    // Padding of the client's structure is not a value of the kernel.
    assert_eq!(samples.len(), 2 * 5);
    let problem = &imported.report.problems[0];
    assert_eq!(
        (problem.line, problem.message.as_str()),
        (Some(5), "5 fields instead of 8: left out")
    );
}

#[test]
fn the_imported_tcp_rtt_equals_that_of_the_file() {
    let imported = whole_folder();
    let round_trips: Vec<_> = flow(&imported, 0)
        .iter()
        .filter_map(|message| message.marks.tcp_round_trip())
        .map(neph_model::Span::nanos)
        .collect();
    // RTT of the TCP acknowledgement of each message's last segment. The second message has 41.77
    // ms and, later, 30 ms.
    assert_eq!(round_trips, [39_583_780, 30_000_000]);
}

#[test]
fn settings_give_names_targets_sizes_and_addresses() {
    let source = tempfile::tempdir().expect("a temporary folder");
    for name in [
        "1-130.192.31.242_8080.i250.x1024.csv",
        "1-far.example.i250.x1024.csv",
    ] {
        fs::write(source.path().join(name), RAW).expect("written");
    }
    let endpoint = |name: &str, destination: &str, is_secure| ImportedEndpoint {
        name: name.to_owned(),
        destination: destination.to_owned(),
        is_secure,
    };
    let settings = ImportedSettings {
        endpoints: vec![
            endpoint("1_Near", "130.192.31.242:8080", false),
            endpoint("2_Far", "far.example", true),
        ],
        response_size: Some(ByteSize(512)),
        source_port: std::num::NonZeroU16::new(5555),
        ..ImportedSettings::default()
    };
    let target = tempfile::tempdir().expect("a temporary folder");
    let mut store = open(&target.path().to_string_lossy(), Access::Write).expect("free");
    let output = LatencyTesterOutput::read(source.path()).expect("readable");
    let report = output.with_settings(settings).import_into(store.as_mut());
    let campaign = report.expect("imported").campaign.expect("imported");
    let scenarios = store.scenarios(campaign).expect("readable");
    let rows: Vec<_> = scenarios
        .iter()
        .map(|scenario| {
            (
                scenario.endpoint.as_str(),
                scenario.target.to_string(),
                scenario.response_size.bytes(),
            )
        })
        .collect();
    let near_site = ("1_Near", "ws://130.192.31.242:8080/echo".to_owned(), 512);
    let far_site = ("2_Far", "wss://far.example/echo".to_owned(), 512);
    assert_eq!(rows, [near_site, far_site]);
    assert_eq!(scenarios[0].parameters.tls(), None);
    let mut flows: Vec<_> = store
        .experiments(campaign)
        .expect("readable")
        .iter()
        .map(|experiment| experiment.flows[0].clone())
        .collect();
    flows.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(flows[0].target.to_string(), "130.192.31.242:8080");
    assert_eq!(flows[0].source.map(|source| source.port()), Some(5555));
    assert!(flows[1].target.ip().is_unspecified());
}
