//! A reflector as an order of its own: it answers until its time is over or it is stopped.

use std::error::Error;
use std::time::Duration;
use std::{io, iter};

use crate::failure::failed;
use crate::order_context::OrderContext;
use crate::site_reflector::Reflecting;
use neph_model::{OrderFailed, Progress, ReflectorOrder, Update};

/// How soon its end is seen.
const TICK: Duration = Duration::from_millis(50);
/// Ticks from one report to the next.
const TICKS_PER_REPORT: u32 = 10;

/// Answers until the end. The first progress is reported when it listens.
pub(crate) fn answer(order: &ReflectorOrder, context: &OrderContext) -> Result<(), OrderFailed> {
    let operation = || format!("start the reflector at {}", order.spec.address);
    let reflector = Reflecting::start(&order.spec, None, context.permit());
    let reflector = reflector.map_err(|error| failed(operation(), with_remedy(&error)))?;
    let start = neph_probe::now();
    let mut ticks = 0;
    loop {
        let elapsed = neph_probe::now() - start;
        if context.stop().is_set() || elapsed >= order.duration {
            break;
        }
        if ticks % TICKS_PER_REPORT == 0 {
            context.report(Update::Progress(Progress { elapsed, due: 0 }));
        }
        ticks += 1;
        neph_probe::nap(TICK);
    }
    drop(reflector);
    Ok(())
}

/// The error, with what to do if a port is in use.
fn with_remedy(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |error| (*error).source());
    let mut io_errors = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    if io_errors.any(|error| error.kind() == io::ErrorKind::AddrInUse) {
        format!("{error}; end the process that uses this port, or write another port in the plan")
    } else {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use neph_model::{Executor, Order, OrderResult, ReflectorSpec, Span};

    use super::*;
    use crate::LocalExecutor;

    fn order(address: SocketAddr) -> Order {
        Order::Reflector(ReflectorOrder {
            spec: ReflectorSpec::at(address),
            duration: Span::from_secs(600),
        })
    }

    fn next_update(executor: &mut LocalExecutor) -> Update {
        let deadline = neph_sys::deadline::Deadline::after(Duration::from_secs(20));
        while !deadline.has_passed() {
            let updates = executor.poll(Span::from_millis(100)).expect("it is there");
            if let Some((_, update)) = updates.into_iter().next() {
                return update;
            }
        }
        panic!("nothing is reported");
    }

    #[test]
    fn a_reflector_order_listens_when_reported_and_ends_when_cancelled() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let mut executor = LocalExecutor::new();
        let ticket = executor.submit(order(address));
        assert!(matches!(next_update(&mut executor), Update::Progress(_)));
        TcpStream::connect(address).expect("it listens");
        executor.cancel(ticket);
        loop {
            match next_update(&mut executor) {
                Update::Progress(_) => {}
                Update::Done(result) => break assert_eq!(result, Ok(OrderResult::Reflector)),
                other => panic!("{other:?}"),
            }
        }
        TcpStream::connect(address).expect_err("nothing listens");
    }

    #[test]
    fn an_order_for_a_port_in_use_fails_with_its_address_and_a_remedy() {
        let occupied = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut executor = LocalExecutor::new();
        executor.submit(order(occupied.local_addr().expect("bound")));
        let Update::Done(Err(reason)) = next_update(&mut executor) else {
            panic!("it cannot listen")
        };
        let text = reason.to_string();
        assert!(
            text.starts_with("start the reflector at 127.0.0.1"),
            "{text}"
        );
        assert!(text.ends_with("write another port in the plan"), "{text}");
    }
}
