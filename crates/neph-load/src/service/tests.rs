//! A service under the loads of this crate, against the formulas of its model.

use std::thread;

use neph_model::{Span, Stop};

use super::*;
use crate::workload::{
    Demand, HttpRequest, Share, Workers, WorkloadMeasured, WorkloadSpec, generate,
};

/// Loads a service of this model.
fn load(model: &str, demand: Demand, seconds: i64) -> WorkloadMeasured {
    let model = model.parse().expect(model);
    let address = "127.0.0.1:0".parse().expect("an address");
    let server = ServiceServer::bind(address, &model, 1).expect("a port");
    let spec = WorkloadSpec {
        target: server.address(),
        tls: None,
        request: HttpRequest {
            method: "GET".to_owned(),
            target: "/".to_owned(),
            host: "test".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            keep_alive: true,
        },
        demand,
        share: Share::WHOLE,
        seed: 1,
        duration: Span::from_secs(seconds),
        warmup: Span::from_secs(1),
        timeout: Span::from_secs(10),
        connections: None,
        threads: 1,
        interval: Span::from_secs(1),
        lateness_bound: Span::from_millis(1),
        spins: false,
    };
    let (stop, running) = (Stop::new(), Stop::new());
    thread::scope(|scope| {
        scope.spawn(|| server.run(&running).expect("it serves"));
        let measured = generate(&spec, &stop, &mut |_| ()).expect("a load");
        running.set();
        measured
    })
}

fn workers(count: u32, think: &str) -> Demand {
    Demand::Closed(Workers {
        count,
        think: think.parse().expect(think),
        ramp: Span::ZERO,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(measured: &WorkloadMeasured) -> f64 {
    measured.tally.successes() as f64 / measured.measured.secs_f64()
}

/// 12 workers at 2 servers of 10 ms: the servers are never idle, 200 responses per second. By Little's law
/// the response time is 12 / 200 s - 5 ms.
#[test]
fn a_saturated_service_has_the_throughput_of_its_servers() {
    let measured = load("c=2 10ms", workers(12, "5ms"), 4);
    let rate = rate(&measured);
    assert!((rate / 200.0 - 1.0).abs() < 0.02, "{rate}");
    let mean = measured.tally.response.mean().expect("responses");
    assert!((mean.millis_f64() - 55.0).abs() < 2.0, "{mean}");
}

#[test]
fn a_full_queue_answers_with_an_error_at_once() {
    let measured = load("c=1 20ms queue=2", workers(8, "10ms"), 3);
    let tally = &measured.tally;
    assert!((rate(&measured) / 50.0 - 1.0).abs() < 0.05);
    assert!(tally.error_responses() > 100, "{tally:?}");
    // One in service and two in front of it.
    let max = tally.service.max().expect("responses");
    assert!(max < Span::from_millis(80), "{max}");
}
