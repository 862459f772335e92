//! A throughput check: a bulk transfer whose failure is part of its result.

use std::net::SocketAddr;

use neph_load::{Iperf3Spec, TransferResult, UploadSpec, iperf3, upload};
use neph_model::{BitRate, OrderFailed, Target, Throughput, ThroughputOrder, ThroughputTool};
use neph_probe::{Placement, Resolve, Resolving};

use crate::failure::{failed, not_found};
use crate::lab_handle::LabHandle;
use crate::order_context::OrderContext;

pub(crate) fn measure_throughput(
    order: &ThroughputOrder,
    context: &OrderContext,
    lab_handle: &LabHandle,
) -> Throughput {
    let started = neph_probe::anchor().wall;
    let site = lab_handle.placement(order.site.as_deref());
    match site.and_then(|site| run_transfer(order, site, context)) {
        Ok(transfer) => transfer.into_throughput(order.block, &order.server.name),
        Err(error) => Throughput {
            block: order.block,
            endpoint: order.server.name.clone(),
            site: None,
            tool: order.tool.name().to_owned(),
            started,
            seconds: Vec::new(),
            goodput: BitRate(0),
            failure: Some(error.to_string()),
        },
    }
}

/// The address as iperf3 takes it, with the zone of a link-local one.
fn host_with_zone(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        _ => address.ip().to_string(),
    }
}

fn run_transfer(
    order: &ThroughputOrder,
    site: Option<Placement>,
    context: &OrderContext,
) -> Result<TransferResult, OrderFailed> {
    let (host, port) = (order.server.host.as_str(), order.server.port);
    let operation = || format!("transfer to {host} port {port}");
    let target = Target::tcp(host, port).map_err(|error| failed(format!("find {host}"), error))?;
    let resolving = Resolving {
        site: site.clone(),
        permit: context.permit().clone(),
        ..Resolving::here(None)
    };
    let resolved = target.find(&resolving);
    let address = resolved
        .map_err(|error| not_found(operation(), &error))?
        .address;
    match order.tool {
        ThroughputTool::Neph => {
            let spec = UploadSpec {
                target,
                address,
                duration: order.duration,
                congestion: None,
                site,
                permit: context.permit().clone(),
            };
            upload(&spec, context.stop())
        }
        ThroughputTool::Iperf3 => {
            let spec = Iperf3Spec {
                // The one that was checked: a second look could find another.
                host: host_with_zone(address),
                port,
                duration: order.duration,
                congestion: None,
                site,
            };
            iperf3(&spec, context.stop())
        }
    }
    .map_err(|error| failed(operation(), error))
}
