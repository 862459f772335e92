//! The ends of orders, as the executor reports them.

use neph_model::{ByteSize, CaptureOrder, Executor, Order, Span, Update};

use crate::executor::LocalExecutor;

/// The thread of an order may end between the wait for updates and the search for orders without a result.
#[test]
fn an_order_that_ends_while_it_is_polled_is_not_lost() {
    let mut executor = LocalExecutor::new();
    for _ in 0..3_000 {
        // Refused at once: this executor has no folder for captures.
        let order = CaptureOrder::of("any".to_owned(), 96, ByteSize(1 << 20));
        let ticket = executor.submit(Order::Capture(order));
        let mut is_done = false;
        while !is_done {
            let updates = executor.poll(Span::ZERO).expect("it has a result");
            let mut updates = updates.iter();
            is_done =
                updates.any(|(of, update)| *of == ticket && matches!(update, Update::Done(Err(_))));
        }
    }
}
