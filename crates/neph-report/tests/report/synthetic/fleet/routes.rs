//! Routes of a fleet's flows: one router of its own for each path, and others that all share.

use std::net::IpAddr;

use neph_model::{FlowHop, FlowRoute, FlowTrace, PathHash, Span, TraceEnd, TraceKind, Wall};

use super::{FleetModel, paths};

/// The routes of up to 512 flows to the first endpoint: eleven hops, the paths apart from the fifth
/// to the seventh, where one of them does not answer.
pub(super) fn trace(fleet_model: &FleetModel) -> FlowTrace {
    let paths = paths(0);
    let view = super::history::flows(fleet_model).0;
    let flows_of_pair = view
        .iter()
        .filter(|flow| flow.slot.0 % fleet_model.pairs == 0);
    let routes = flows_of_pair.take(512).map(|flow| {
        let last = flow.segments.last().unwrap();
        let path = u8::try_from(last.class.unwrap()).unwrap();
        let low = paths[usize::from(path)].base;
        route(flow.source_port, path, low)
    });
    FlowTrace {
        destination: ([192, 0, 2, 0], 862).into(),
        kind: TraceKind::Udp,
        started: Wall::from_unix_nanos(0),
        routes: routes.collect(),
        enough: Some(true),
    }
}

fn route(source_port: u16, path: u8, low: Span) -> FlowRoute {
    let address = |ttl: u8| match ttl {
        5 => Some([10, 5, path / 2, 1]),
        6 if path == 1 => None,
        6 | 7 => Some([10, ttl, path, 1]),
        11 => Some([192, 0, 2, 0]),
        _ => Some([10, ttl, 0, 1]),
    };
    let addresses: Vec<Option<IpAddr>> =
        (1..=11).map(|ttl| address(ttl).map(IpAddr::from)).collect();
    let hops = addresses.iter().zip(1_u8..).map(|(address, ttl)| FlowHop {
        round_trips: if ttl == 11 { vec![low] } else { Vec::new() },
        ..FlowHop::new(ttl, *address)
    });
    FlowRoute {
        source_port,
        hops: hops.collect(),
        hash: PathHash::of(&addresses),
        end: TraceEnd::Reached,
    }
}
