use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use neph_model::{AllowedTargets, Budgets};
use neph_sys::deadline::Stopwatch;

use super::*;

fn parsed(addresses: &[&str]) -> Vec<SocketAddr> {
    let parsed = addresses.iter().map(|text| text.parse());
    parsed.collect::<Result<_, _>>().expect("addresses")
}

#[test]
fn ip_versions_alternate_and_the_first_address_stays_first() {
    let ordered = taking_turns(&parsed(&[
        "[::1]:1",
        "[::2]:1",
        "192.0.2.1:1",
        "192.0.2.2:1",
        "192.0.2.3:1",
    ]));
    assert_eq!(
        ordered,
        parsed(&[
            "[::1]:1",
            "192.0.2.1:1",
            "[::2]:1",
            "192.0.2.2:1",
            "192.0.2.3:1"
        ])
    );
}

fn refusing(error: io::ErrorKind) -> io::Result<()> {
    Err(error.into())
}

#[test]
fn the_next_address_is_tried_at_once_after_a_refusal() {
    let addresses = parsed(&["[::1]:9", "127.0.0.1:9", "127.0.0.2:9"]);
    let requested = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&requested);
    let resolved = race(&addresses, &Resolving::here(None), move |at| {
        counting.fetch_add(1, Ordering::SeqCst);
        if at.is_ipv6() {
            refusing(io::ErrorKind::ConnectionRefused)
        } else {
            Ok(())
        }
    });
    assert_eq!(
        (resolved.address, resolved.answered),
        (addresses[1], Some(true))
    );
    assert_eq!(resolved.silent.len(), 1);
    assert_eq!(
        requested.load(Ordering::SeqCst),
        2,
        "the third is not asked"
    );
}

#[test]
fn a_silent_first_address_delays_the_next_by_250_ms() {
    let addresses = parsed(&["192.0.2.1:9", "127.0.0.1:9"]);
    let stopwatch = Stopwatch::start();
    let (release, waiting) = mpsc::channel::<()>();
    let waiting = Arc::new(std::sync::Mutex::new(waiting));
    let resolved = race(&addresses, &Resolving::here(None), move |at| {
        if at.ip() == IpAddr::from([192, 0, 2, 1]) {
            // Until the test ends.
            let _ = waiting.lock().map(|waiting| waiting.recv());
            return refusing(io::ErrorKind::TimedOut);
        }
        Ok(())
    });
    assert_eq!(resolved.address, addresses[1]);
    assert!(stopwatch.elapsed() >= Duration::from_millis(250));
    drop(release);
}

#[test]
fn if_no_address_answers_all_are_listed() {
    let addresses = parsed(&["[::1]:9", "127.0.0.1:9"]);
    let resolved = race(&addresses, &Resolving::here(None), |_| {
        refusing(io::ErrorKind::ConnectionRefused)
    });
    assert_eq!(
        (resolved.address, resolved.answered),
        (addresses[0], Some(false))
    );
    let target = Target::parse("tcp://h:9").expect("a target");
    let remark = resolved.remark(&target).expect("a remark");
    assert_eq!(
        remark,
        "none of the addresses of h answers: ::1 (connection refused), 127.0.0.1 (connection refused)"
    );
}

#[test]
fn a_name_whose_addresses_are_all_forbidden_is_not_measured() {
    let allow = vec!["10.0.0.0/8".parse().expect("a network")];
    let targets = AllowedTargets {
        allow,
        ..AllowedTargets::default()
    };
    let resolving = Resolving {
        permit: Permit::new(targets, Budgets::default(), 0),
        ..Resolving::here(None)
    };
    for name in [
        "tcp://localhost:9",
        "tcp://127.0.0.1:9",
        "udp://[::1]:9",
        "icmp://localhost",
    ] {
        let target = Target::parse(name).expect("a target");
        let refused = target.find(&resolving).expect_err(name);
        let TargetError::Forbidden { reason, .. } = &refused else {
            panic!("{name}: {refused}")
        };
        assert!(reason.to_string().contains("in no network"), "{reason}");
    }
    let allowed = Target::parse("icmp://10.0.0.1").expect("a target");
    assert!(allowed.find(&resolving).is_ok());
}
