//! A trace's ports and files.

use std::collections::BTreeSet;

use neph_model::{Instant, Local, ReadBy};

use super::*;
use crate::fleet::Blocks;
use crate::trace::flow::{Answer, AnswerKind};
use crate::trace::tracer_io::{ProbeToSend, ReceivedAnswer};

#[test]
fn a_port_of_a_block_claimed_by_a_fleet_is_not_traced() {
    let mut fleet = Blocks::new("udp");
    let port = (40_960..=u16::MAX)
        .step_by(1_024)
        .find(|port| fleet.take(*port).is_ok())
        .expect("a block is nobody's");
    let mut spec = TraceSpec::new(
        ([127, 0, 0, 1], 9).into(),
        TraceKind::Udp,
        FlowSet::These(vec![port]),
    );
    for sockets in [Sockets::Plain, Sockets::BestPermitted] {
        spec.sockets = sockets;
        let refused = trace(&spec, None, &Stop::new()).expect_err("it is the fleet's");
        assert!(is_taken(&refused), "{refused}");
    }
}

/// Whom every probe reaches at once, for as many flows at a time as there are files.
#[derive(Default)]
struct LimitedCarrier {
    files: usize,
    /// Other threads took the files that it had reported as free.
    wording: Option<usize>,
    held_ports: BTreeSet<u16>,
    requests: Vec<ProbeToSend>,
}

impl Carrier for LimitedCarrier {
    fn hold(&mut self, port: u16) -> io::Result<()> {
        if self.held_ports.len() == self.files {
            return Err(io::Error::from_raw_os_error(24));
        }
        assert!(self.held_ports.insert(port), "a port is held once");
        Ok(())
    }

    fn room(&self) -> usize {
        self.wording.unwrap_or(self.files - self.held_ports.len())
    }

    fn release(&mut self) -> bool {
        !std::mem::take(&mut self.held_ports).is_empty()
    }

    fn send(&mut self, probe: &ProbeToSend) -> io::Result<()> {
        assert!(
            self.held_ports.contains(&probe.port),
            "it is not ours: {probe:?}"
        );
        self.requests.push(*probe);
        Ok(())
    }

    fn take_in(&mut self, _until: Instant<Local>, tracer: &mut Tracer) -> io::Result<()> {
        for probe in self.requests.drain(..) {
            tracer.on_answer(&ReceivedAnswer {
                port: probe.port,
                number: Some(probe.number),
                answer: Answer {
                    from: [127, 0, 0, 1].into(),
                    kind: AnswerKind::Arrived,
                    at: now(),
                    read_by: ReadBy::Kernel,
                },
                labels: Vec::new(),
            });
        }
        Ok(())
    }
}

fn traced(
    flows: FlowSet,
    carrier: LimitedCarrier,
) -> Result<(Vec<u16>, Vec<ProbeError>), ProbeError> {
    let spec = TraceSpec {
        hop_rate: 10_000,
        rate: 10_000,
        ..TraceSpec::new(([127, 0, 0, 1], 9).into(), TraceKind::Udp, flows)
    };
    let mut driver = Driver::new(&spec, Box::new(carrier), ProbeMatching::ByNumber);
    driver.run(&Stop::new())?;
    let routes = driver.tracer.routes();
    assert!(routes.iter().all(FlowRoute::reached));
    let ports = routes.iter().map(|route| route.source_port);
    Ok((ports.collect(), driver.left_out))
}

#[test]
fn the_file_limit_bounds_the_flows_traced_at_a_time() {
    let port_list: Vec<u16> = (1_000..1_010).collect();
    for wording in [None, Some(100)] {
        for flows in [
            FlowSet::These(port_list.clone()),
            FlowSet::Count {
                flows: 10,
                first: 1_000,
            },
        ] {
            let limited_carrier = LimitedCarrier {
                files: 3,
                wording,
                ..LimitedCarrier::default()
            };
            let (ports, left_out) = traced(flows, limited_carrier).expect("some at a time");
            assert_eq!(
                (ports, left_out.len()),
                (port_list.clone(), 0),
                "{wording:?}"
            );
        }
    }
}

#[test]
fn a_trace_without_file_descriptors_suggests_ulimit() {
    let flows = FlowSet::These(vec![7, 8]);
    let refused = traced(flows, LimitedCarrier::default()).expect_err("no file");
    assert!(refused.to_string().contains("ulimit -n"), "{refused}");
}

#[test]
fn a_reached_file_limit_is_not_reported_as_a_port_in_use() {
    let destination = ([127, 0, 0, 1], 9).into();
    let spec = TraceSpec::new(destination, TraceKind::Udp, FlowSet::These(vec![7]));
    let refusal_of = |code| refusal(&spec, 7, io::Error::from_raw_os_error(code));
    let (limit, taken) = (refusal_of(24), refusal_of(98));
    assert!(limit.to_string().contains("ulimit -n") && !is_taken(&limit));
    assert!(taken.to_string().contains("choose another one") && is_taken(&taken));
}
