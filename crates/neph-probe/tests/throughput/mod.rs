use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};

use neph_load::{Iperf3Spec, UploadSpec, iperf3, upload};
use neph_model::{AllowedTargets, BitRate, Budgets, Permit, Span, Stop, Target};
use neph_probe::Counted;
use neph_sys::process;

use crate::loopback::reflector;
use crate::support::{eventually, has, skip};

fn spec(address: SocketAddr, duration: Span) -> UploadSpec {
    UploadSpec {
        target: Target::parse(&format!("wss://{address}")).expect("a target"),
        address,
        duration,
        congestion: Some("reno".to_owned()),
        site: None,
        permit: Permit::ANYTHING,
    }
}

#[test]
fn an_upload_reports_each_second_and_refuses_a_second_upload() {
    let reflector = reflector(Span::ZERO);
    let address = reflector.address();
    let first =
        std::thread::spawn(move || upload(&spec(address, Span::from_millis(2_500)), &Stop::new()));
    let is_bulk = |(counted, count): &(Counted, u64)| *counted == Counted::Bulk && *count == 1;
    eventually("the first one runs", || {
        reflector.counted().iter().any(is_bulk)
    });
    let second = upload(&spec(address, Span::from_secs(1)), &Stop::new());
    let message = second.expect_err("the first one has the turn").to_string();
    assert!(message.contains("reflector busy"), "{message}");
    let done = first
        .join()
        .expect("no panic")
        .expect("loopback carries it");
    assert_eq!(
        done.seconds.len(),
        3,
        "two whole seconds and a half: {done:?}"
    );
    for second in &done.seconds {
        assert!(second.goodput.bits_per_second() > 10_000_000, "{second:?}");
        assert!(
            second.cwnd_segments.is_some_and(|cwnd| cwnd > 0),
            "{second:?}"
        );
    }
    let throughput = done.into_throughput(2, "metro");
    assert_eq!((throughput.block, throughput.tool.as_str()), (2, "neph"));
}

#[test]
fn uploads_and_messages_share_the_budget_of_a_permit() {
    let reflector = reflector(Span::ZERO);
    let budgets = Budgets {
        rate: Some(BitRate(16_000_000)),
        day_bytes: Some(3_500_000),
        ..Budgets::default()
    };
    let permit = Permit::new(AllowedTargets::default(), budgets, 0);
    let spec = UploadSpec {
        permit: permit.clone(),
        ..spec(reflector.address(), Span::from_secs(1))
    };
    let first = upload(&spec, &Stop::new()).expect("loopback carries it");
    let rate = first.goodput.bits_per_second();
    // A burst of 0.1 s comes on top; a loaded machine may not use all of it.
    assert!((8_000_000..18_000_000).contains(&rate), "{rate}");
    let spent = permit.spent_today();
    assert!((1_000_000..=2_200_000).contains(&spent), "{spent}");
    let _ = upload(&spec, &Stop::new());
    assert!(
        permit.spent_today() <= 3_500_000,
        "{}",
        permit.spent_today()
    );
}

#[test]
fn an_upload_that_cannot_start_reports_why() {
    let reflector = reflector(Span::ZERO);
    let address = reflector.address();
    let too_long = upload(&spec(address, Span::from_secs(3_600)), &Stop::new());
    let message = too_long.expect_err("an hour is too long").to_string();
    assert!(
        message.contains("duration too long") && message.contains("wss://"),
        "{message}"
    );
    drop(reflector);
    let nobody = upload(&spec(address, Span::from_secs(1)), &Stop::new());
    let message = nobody.expect_err("nobody listens").to_string();
    assert!(
        message.contains("connect for a bulk upload to"),
        "{message}"
    );
}

/// Ends with the test, also when it panics.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have served and ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn iperf3_reports_the_same_figures() {
    if !has("iperf3", "--version") {
        return skip("iperf3_reports_the_same_figures", "iperf3 is not installed");
    }
    let free = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = free.local_addr().expect("bound").port();
    drop(free);
    let spec = Iperf3Spec {
        host: "127.0.0.1".to_owned(),
        port,
        duration: Span::from_secs(1),
        congestion: None,
        site: None,
    };
    let nobody = iperf3(&spec, &Stop::new()).expect_err("nobody listens yet");
    assert!(nobody.to_string().starts_with("iperf3 says:"), "{nobody}");
    let _server = Server(
        process::command("iperf3")
            .args(["-s", "-1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("it is installed"),
    );
    let mut measured = None;
    eventually("the server listens", || {
        measured = iperf3(&spec, &Stop::new()).ok();
        measured.is_some()
    });
    let measured = measured.expect("just seen");
    assert_eq!((measured.tool, measured.seconds.len()), ("iperf3", 1));
    assert!(measured.goodput.bits_per_second() > 10_000_000);
    assert!(measured.seconds[0].cwnd_segments.is_some(), "{measured:?}");
}
