//! Numbers in tables against numbers worked out by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use neph_analysis::{
    CampaignData, ExperimentData, Layer, PlotSettings, QuantileCell, SummaryRow, summary, tables,
};
use neph_model::{
    Flow, FlowIndex, FlowRole, Instant, Marks, Message, Outcome, ProbeKind, Seq, Stage, StageSet,
};
use neph_stats::Level;

use crate::synthetic::{self, METRO, Shape};

/// Response times of 1, 2 ... 100 ms, of which the last two are lost instead; the network takes
/// 0.5 ms less than the response, lateness is 0.1 ms.
fn campaign_of_hundred_messages() -> CampaignData {
    let shape = Shape {
        links: vec![METRO],
        intervals_ms: vec![200],
        sizes: vec![64],
        blocks: 1,
        messages: 100,
    };
    let mut data = synthetic::campaign(&shape);
    let messages: Vec<Message> = (0..100).map(message).collect();
    let experiment = data.experiments[0].experiment.clone();
    data.experiments = vec![ExperimentData::new(experiment, 0, &messages)];
    data
}

fn message(number: i64) -> Message {
    let due = number * 200_000_000;
    let at = |nanos: i64| Some(Instant::from_nanos(due + nanos));
    let response = (number + 1) * 1_000_000;
    let mut marks = Marks::intended_at(Instant::from_nanos(due));
    marks.app_send = at(100_000);
    marks.queued = at(200_000);
    marks.nic_tx = at(300_000);
    let mut message = Message::new(FlowIndex(0), Seq(u64::try_from(number).unwrap()), marks);
    message.outcome = Outcome::Lost;
    if number < 98 {
        message.outcome = Outcome::Reply;
        message.marks.acked = at(response - 400_000);
        message.marks.nic_rx = at(response - 200_000);
        message.marks.app_recv = at(response);
    }
    message
}

fn is_close(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-9
}

fn number(cell: &QuantileCell) -> f64 {
    match cell {
        QuantileCell::Known { value, .. } => value.number().expect("a number"),
        QuantileCell::Refused { need } => panic!("refused, needs {need}"),
    }
}

#[test]
fn the_summary_equals_the_input_numbers() {
    let rows = summary(&campaign_of_hundred_messages(), &PlotSettings::default());
    let row_of = |layer: Layer| {
        rows.iter()
            .find(|row| row.layer == layer)
            .expect("the layer is there")
    };
    let response = row_of(Layer::Response);
    assert_eq!(
        (response.n, response.lost, response.experiments),
        (100, Some(2), 1)
    );
    let loss = response.loss.unwrap();
    assert!(is_close(loss.share, 0.02), "{loss:?}");
    // Both were lost in one stretch of ten: hardly anything is known of other stretches.
    let interval = loss.interval.expect("ten stretches");
    assert!(interval.low < 0.01 && interval.high > 0.08, "{interval:?}");
    // Mean of 1..=98 is 49.5, their variance is (98^2 - 1) / 12 * 98 / 97.
    assert!(is_close(response.mean.unwrap(), 49.5));
    assert!(is_close(
        response.sd.unwrap(),
        (98.0_f64 * 99.0 / 12.0).sqrt()
    ));
    // Type 7 over 100 values: place 0.5 * 99 = 49.5, between 50 and 51; 0.9 * 99 = 89.1.
    assert!(is_close(number(&response.quantiles[0]), 50.5));
    assert!(is_close(number(&response.quantiles[1]), 90.1));
    assert_eq!(response.quantiles[2], QuantileCell::Refused { need: 299 });
    assert!(is_close(row_of(Layer::Service).mean.unwrap(), 49.4));
    // From departure at 0.3 ms to 0.4 ms before the end.
    assert!(is_close(row_of(Layer::Acknowledgement).mean.unwrap(), 48.8));
    assert_eq!(row_of(Layer::Acknowledgement).lost, None);
}

#[test]
fn the_stages_of_the_summary_add_up_to_the_response() {
    let data = campaign_of_hundred_messages();
    let rows = summary(&data, &PlotSettings::default());
    let stages: Vec<_> = rows
        .iter()
        .filter(|row| matches!(row.layer, Layer::Entry(_)))
        .collect();
    let sum: f64 = stages.iter().map(|row| row.mean.unwrap()).sum();
    assert!(is_close(sum, 49.5), "{sum}");
    // Without the peer's marks its stages cannot be told from the network.
    let merged = StageSet::only(Stage::Network)
        .with(Stage::PeerKernel)
        .with(Stage::PeerApp)
        .with(Stage::PeerSend);
    let network = stages
        .iter()
        .find(|row| row.layer == Layer::Entry(merged))
        .unwrap();
    assert!(is_close(network.mean.unwrap(), 49.0));
    assert!(rows.iter().all(|row| row.layer != Layer::Network));
}

#[test]
fn a_quantile_that_loss_decides_has_no_number() {
    let mut data = campaign_of_hundred_messages();
    let messages: Vec<Message> = (0..100)
        .map(|number| {
            let mut message = message(number);
            if number >= 40 {
                message.outcome = Outcome::Lost;
                message.marks.app_recv = None;
            }
            message
        })
        .collect();
    let experiment = data.experiments[0].experiment.clone();
    data.experiments = vec![ExperimentData::new(experiment, 0, &messages)];
    let rows = summary(&data, &PlotSettings::default());
    assert!(matches!(
        rows[0].quantiles[0],
        QuantileCell::Known {
            value: Level::Censored,
            ..
        }
    ));
    let csv = tables(&data, &PlotSettings::default())[0].csv();
    let line = csv.lines().nth(1).unwrap();
    assert!(
        line.contains(",100,60,0.6,") && line.contains(",lost,"),
        "{line}"
    );
}

#[test]
fn unsent_messages_are_counted_apart_from_loss() {
    let mut data = campaign_of_hundred_messages();
    // The connection was down for the last 60: two of the 40 others were lost.
    let messages: Vec<Message> = (0..100)
        .map(|number| {
            let mut message = message(number);
            message.outcome = match number {
                0..38 => Outcome::Reply,
                38 | 39 => Outcome::Lost,
                _ => Outcome::Failed,
            };
            message
        })
        .collect();
    let experiment = data.experiments[0].experiment.clone();
    data.experiments = vec![ExperimentData::new(experiment, 0, &messages)];
    let rows = summary(&data, &PlotSettings::default());
    let response = &rows[0];
    assert_eq!(
        (response.n, response.lost, response.not_sent),
        (100, Some(2), Some(60))
    );
    assert!(is_close(response.loss.unwrap().share, 0.05), "of 40 sent");
    let censored = |row: &SummaryRow| matches!(row.quantiles[0], QuantileCell::Known { value, .. } if value == Level::Censored);
    assert!(censored(response), "the schedule wanted them");
    let service = &rows[1];
    assert_eq!(
        (service.layer.clone(), service.n, service.not_sent),
        (Layer::Service, 40, None)
    );
    assert!(!censored(service), "of what was sent half was answered");
    let csv = tables(&data, &PlotSettings::default())[0].csv();
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .contains(",loss_high,not_sent,mean_ms,")
    );
}

#[test]
fn the_ledger_means_in_a_synthetic_campaign_are_the_links() {
    let data = synthetic::twelve_scenarios();
    let rows = summary(&data, &PlotSettings::default());
    let network = |label: &str| {
        let row = rows
            .iter()
            .find(|row| row.label == label && row.layer == Layer::Network)
            .unwrap();
        number(&row.quantiles[0])
    };
    // 40 ms, and 1 KiB at 200 Mbit/s, and two exponential jitters with means 60 and 40 us.
    let continent = network("continent · every 100 ms · 1 KiB");
    assert!((40.05..40.20).contains(&continent), "{continent}");
    // 12 ms and 100 KiB at 3 Mbit/s: 273.1 ms.
    let home = network("home · every 400 ms · 100 KiB");
    assert!((285.1..285.3).contains(&home), "{home}");
}

#[test]
fn ping_destinations_have_their_rows() {
    let mut data = campaign_of_hundred_messages();
    let mut experiment = data.experiments[0].experiment.clone();
    let destination = |index: u32, name: &str| Flow {
        index: FlowIndex(index),
        role: FlowRole::PingDestination,
        probe: ProbeKind::Icmp,
        name: name.into(),
        ..experiment.flows[0].clone()
    };
    let added = [destination(7, "gateway"), destination(8, "elsewhere")];
    experiment.flows.extend(added);
    let messages: Vec<Message> = (0..60)
        .map(|number| Message {
            flow: FlowIndex(7 + u32::from(number >= 50)),
            ..message(number)
        })
        .chain([Message {
            flow: FlowIndex(7),
            ..message(99)
        }])
        .collect();
    data.experiments = vec![ExperimentData::new(experiment, 0, &messages)];
    let rows = summary(&data, &PlotSettings::default());
    let gateway = &rows[0];
    assert_eq!(gateway.layer.name(), "ICMP echo to gateway");
    assert_eq!((gateway.n, gateway.lost), (51, Some(1)));
    assert_eq!(rows[1].layer, Layer::Ping("elsewhere".to_owned()));
    assert_eq!(rows[1].n, 10);
}

#[test]
fn the_tables_of_one_scenario_as_csv() {
    let data = campaign_of_hundred_messages();
    let csv_tables: Vec<String> = tables(&data, &PlotSettings::default())
        .iter()
        .map(|table| format!("{}\n{}", table.name, table.csv().replace("\r\n", "\n")))
        .collect();
    insta::assert_snapshot!(csv_tables.join("\n"));
}
