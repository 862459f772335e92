//! Contents of a log after a kill or a power failure at any byte.

use std::fs::OpenOptions;

use neph_model::{TraceLimits, TracerouteOrder};

use super::*;

fn text(host: &str) -> Vec<u8> {
    let sent = SentOrder {
        agent: "a".parse().expect("a name"),
        order: neph_model::Order::Traceroute(TracerouteOrder {
            block: 0,
            endpoint: "e".to_owned(),
            host: host.to_owned(),
            limits: TraceLimits::default(),
            site: None,
        }),
    };
    serde_json::to_vec(&sent).expect("plain")
}

fn remaining_orders(folder: &Path) -> Vec<(OrderId, bool)> {
    let (_, earlier) = OrdersLog::open(folder).expect("readable");
    assert!(earlier.is_same_boot);
    let orders = earlier.orders.into_iter();
    orders.map(|order| (order.id, order.is_stored)).collect()
}

#[test]
fn an_orders_log_truncated_at_any_byte_keeps_all_earlier_synced_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("orders.log");
    let (mut log, before) = OrdersLog::open(folder.path()).expect("writable");
    assert!(before.orders.is_empty() && !before.is_same_boot);
    let ids: [OrderId; 3] = std::array::from_fn(|_| OrderId::new());
    for id in ids {
        log.add(id, &text("h")).expect("writable");
    }
    log.sync().expect("writable");
    let synced = log.synced_bytes;
    log.mark_stored(ids[0]).expect("writable");
    log.mark_stored(ids[1]).expect("writable");
    log.remove(ids[0]).expect("writable");
    assert_eq!(
        log.synced_bytes, synced,
        "these are no reason to wait for the disk"
    );
    let whole_log = fs::read(&path).expect("there");
    drop(log);
    let mut observed = std::collections::BTreeSet::new();
    for cut in usize::try_from(synced).expect("short")..=whole_log.len() {
        fs::write(&path, &whole_log[..cut]).expect("writable");
        let remaining_orders = remaining_orders(folder.path());
        assert_eq!(remaining_orders.last(), Some(&(ids[2], false)));
        assert!(remaining_orders.iter().any(|(id, _)| *id == ids[1]));
        observed.insert(remaining_orders);
    }
    let (first, second, third) = (ids[0], ids[1], (ids[2], false));
    let states = [
        vec![(first, false), (second, false), third],
        vec![(first, true), (second, false), third],
        vec![(first, true), (second, true), third],
        vec![(second, true), third],
    ];
    assert_eq!(observed, states.into());
}

#[test]
fn an_orders_log_does_not_grow_with_completed_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, _) = OrdersLog::open(folder.path()).expect("writable");
    let stays = OrderId::new();
    log.add(stays, &text("stays")).expect("writable");
    let large = text(&"h".repeat(1 << 20));
    let mut longest = 0;
    for _ in 0..20 {
        let id = OrderId::new();
        log.add(id, &large).expect("writable");
        log.mark_stored(id).expect("writable");
        log.remove(id).expect("writable");
        log.remove(id).expect("it is over already");
        longest = longest.max(log.writer.bytes());
    }
    assert!(longest < MIN_REWRITE_BYTES + (2 << 20), "{longest}");
    drop(log);
    assert_eq!(remaining_orders(folder.path()), [(stays, false)]);
    let length = fs::metadata(folder.path().join("orders.log")).expect("there");
    assert!(length.len() < 4096, "{length:?}");
}

#[test]
fn a_file_that_is_no_log_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("orders.log");
    fs::write(&path, "something else").expect("writable");
    let error = OrdersLog::open(folder.path()).expect_err("no log");
    assert!(error.to_string().contains("another version"), "{error}");
    assert_eq!(fs::read(&path).expect("there"), b"something else");
}

#[test]
fn a_kill_while_the_log_is_rewritten_keeps_the_old_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut log, _) = OrdersLog::open(folder.path()).expect("writable");
    let id = OrderId::new();
    log.add(id, &text("h")).expect("writable");
    drop(log);
    let partial = folder.path().join("orders.new");
    let mut file = OpenOptions::new();
    let file = file.create(true).truncate(true).write(true).open(&partial);
    io::Write::write_all(&mut file.expect("writable"), b"neph or").expect("writable");
    assert_eq!(remaining_orders(folder.path()), [(id, false)]);
    assert!(!partial.exists());
}
