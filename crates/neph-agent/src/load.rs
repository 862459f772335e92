//! A load as an order of its own: made in this process until its time is over or it is cancelled.

use std::thread;

use neph_load::{Beginning, Bulk, CpuLoad, StreamLoad, converse_all};
use neph_model::{LoadOrder, LoadSpec, OrderFailed, REFLECT_PORT, Target};
use neph_probe::{Resolve, Resolving};

use crate::desk::Desk;
use crate::failure::failed;

/// Makes the load. It is over when this returns.
pub(crate) fn make(order: &LoadOrder, desk: &Desk) -> Result<(), OrderFailed> {
    match &order.load {
        LoadSpec::Cpu(share) => {
            let there = thread::available_parallelism().map_or(1, usize::from);
            let load = CpuLoad {
                share: share.in_percent() / 100.0,
                cpus: vec![None; there],
                duration: order.duration,
            };
            let worked = load.run(&Beginning::of(there, &|| {}), desk.stop());
            worked
                .map(drop)
                .map_err(|error| failed("load the CPU", error))
        }
        LoadSpec::Flow { to, rate } => {
            let bulk = Bulk {
                rate: *rate,
                flows: 1,
            };
            let subject = bulk.subject(address(to)?, order.duration);
            let all = converse_all(&subject, 1, &Beginning::of(1, &|| {}), desk.stop());
            let broken = all.into_iter().find_map(|flow| match flow {
                Ok(carried) => carried.broken,
                Err(why) => Some(why),
            });
            broken.map_or(Ok(()), |why| {
                Err(failed(format!("send to {to} over TCP"), why))
            })
        }
        LoadSpec::Stream { to, rate } => {
            let load = StreamLoad {
                address: address(to)?,
                rate: *rate,
                duration: order.duration,
            };
            let streamed = load.run(&Beginning::of(1, &|| {}), desk.stop());
            let streamed = streamed.map_err(|error| failed(format!("stream to {to}"), error))?;
            let fault = streamed.fault(*rate, load.address);
            fault
                .filter(|_| !desk.stop().is_set())
                .map_or(Ok(()), |why| Err(failed(format!("stream to {to}"), why)))
        }
    }
}

/// Where `host[:port]` is; the reflector's port unless one is named.
fn address(to: &str) -> Result<std::net::SocketAddr, OrderFailed> {
    let find = || format!("find {to}");
    let target =
        Target::with_port("tcp", to, REFLECT_PORT).map_err(|error| failed(find(), error))?;
    let found = target.find(&Resolving::here(None));
    Ok(found.map_err(|error| failed(find(), error))?.address)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use neph_model::{BitRate, CpuShare, Span, Ticket};

    use super::*;
    use crate::executor::tests::reflector;

    fn made(load: LoadSpec) -> Result<(), OrderFailed> {
        let duration = Span::from_millis(100);
        let (sender, _updates) = sync_channel(8);
        make(&LoadOrder { load, duration }, &Desk::new(Ticket(0), sender))
    }

    #[test]
    fn each_kind_of_load_is_made() {
        let ours = reflector();
        let to = ours.address().to_string();
        let rate = BitRate(1_000_000);
        let share = CpuShare::percent(10.0).expect("a share");
        let flow = LoadSpec::Flow {
            to: to.clone(),
            rate: Some(rate),
        };
        for load in [LoadSpec::Cpu(share), flow, LoadSpec::Stream { to, rate }] {
            made(load.clone()).unwrap_or_else(|why| panic!("{load:?}: {why}"));
        }
    }

    #[test]
    fn a_load_that_nobody_takes_says_so() {
        let to = "127.0.0.1:1".to_owned();
        let why = made(LoadSpec::Flow { to, rate: None }).expect_err("nobody is there");
        assert!(why.to_string().starts_with("send to 127.0.0.1:1"), "{why}");
    }
}
