//! Contract of every store: campaigns, and measurements between experiments.

use std::net::IpAddr;

use neph_model::{CampaignStatus, Outcome, PingBetween, Span, Wall};

use super::values::{campaign, route, scenario, throughput};
use super::{StoreLocation, prepared};
use crate::{Access, StoreError};

pub(super) fn campaigns_and_their_matrix_read_back_oldest_first(location: &StoreLocation) {
    let mut store = location.open(Access::Write);
    let mut younger_campaign = campaign();
    younger_campaign.started = Wall::from_unix_nanos(2_000);
    let mut older_campaign = campaign();
    older_campaign.started = Wall::from_unix_nanos(1_000);
    older_campaign.ended = Some(Wall::from_unix_nanos(1_500));
    // Both campaigns have the same scenario.
    store
        .add_campaign(&younger_campaign, &[scenario(1), scenario(0)])
        .expect("added");
    store
        .add_campaign(&older_campaign, &[scenario(0)])
        .expect("added");
    assert_eq!(
        store.campaigns().expect("readable"),
        [older_campaign.clone(), younger_campaign.clone()]
    );
    let matrix = store.scenarios(younger_campaign.id).expect("readable");
    assert_eq!(matrix, [scenario(0), scenario(1)]);
    assert_eq!(
        store.scenarios(older_campaign.id).expect("readable"),
        [scenario(0)]
    );
    store
        .add_campaign(&older_campaign, &[])
        .expect_err("it is there already");
}

pub(super) fn only_a_campaign_without_data_can_be_removed(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let with_experiment = experiment.campaign;
    let recorder = store.begin(&experiment);
    drop(recorder.expect("begun"));
    let (empty, with_check) = (campaign(), campaign());
    for added in [&empty, &with_check] {
        store.add_campaign(added, &[scenario(0)]).expect("added");
    }
    store
        .add_throughput(with_check.id, &throughput(1))
        .expect("added");
    let mut is_removed = |campaign| store.remove_empty_campaign(campaign).expect("writable");
    assert!(!is_removed(with_experiment));
    assert!(!is_removed(with_check.id));
    assert!(is_removed(empty.id));
    assert!(!is_removed(empty.id), "it is gone");
    let remaining = store.campaigns().expect("readable");
    assert!(remaining.iter().all(|campaign| campaign.id != empty.id));
    assert_eq!(remaining.len(), 2);
}

pub(super) fn a_campaigns_status_is_kept_and_an_unknown_campaign_refused(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let ended = Some(Wall::from_unix_nanos(9));
    let status = CampaignStatus::Interrupted;
    store
        .set_campaign_status(experiment.campaign, status, ended)
        .expect("set");
    let stored = &location.open(Access::Read).campaigns().expect("readable")[0];
    assert_eq!((stored.status, stored.ended), (status, ended));
    store
        .set_campaign_status(campaign().id, status, None)
        .expect_err("there is no such campaign");
}

pub(super) fn checks_are_returned_by_time(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let campaign = experiment.campaign;
    for at in [20, 10] {
        store
            .add_throughput(campaign, &throughput(at))
            .expect("added");
        store.add_traceroute(campaign, &route(at)).expect("added");
    }
    let store = location.open(Access::Read);
    let checks = store.throughputs(campaign).expect("readable");
    assert_eq!(checks, [throughput(10), throughput(20)]);
    let routes = store.traceroutes(campaign).expect("readable");
    assert_eq!(routes, [route(10), route(20)]);
}

pub(super) fn pings_between_experiments_are_returned_by_time(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let campaign = experiment.campaign;
    let ping = |at: i64, round_trip: Option<i64>| PingBetween {
        block: 1,
        name: "far".to_owned(),
        address: IpAddr::from([10, 0, 0, 1]),
        sent: Wall::from_unix_nanos(at),
        outcome: round_trip.map_or(Outcome::Lost, |_| Outcome::Reply),
        round_trip: round_trip.map(Span::from_millis),
    };
    let (early, late) = (ping(10, Some(7)), ping(20, None));
    let added_pings = [late.clone(), early.clone()];
    store
        .add_pings_between(campaign, &added_pings)
        .expect("added");
    drop(store);
    let store = location.open(Access::Read);
    let pings = store.pings_between(campaign).expect("readable");
    assert_eq!(pings, [early, late]);
}

pub(super) fn one_process_writes_and_all_can_read(location: &StoreLocation) {
    let (store, experiment) = prepared(location);
    let error = location.try_open(Access::Write).expect_err("taken");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let mut reader = location.open(Access::Read);
    let error = reader.begin(&experiment).expect_err("reading only");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    reader.recover().expect_err("reading only");
    drop(store);
    location.open(Access::Write);
}
