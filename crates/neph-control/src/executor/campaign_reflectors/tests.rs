use neph_model::{Progress, ReflectorSpec};

use super::super::tests::agent;
use super::*;

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

/// Reflectors of agents at ports of this host.
fn at_ports(ports: &[(&str, u16)]) -> CampaignReflectors {
    let reflectors = ports.iter().map(|(agent, port)| {
        let address = format!("127.0.0.1:{port}").parse().expect("an address");
        let order = ReflectorOrder {
            spec: ReflectorSpec::at(address),
            duration: Span::from_secs(60),
        };
        let host = "127.0.0.1".to_owned();
        (name(agent), AgentReflector { order, host })
    });
    CampaignReflectors::new(reflectors.collect())
}

fn missing(reflectors: &CampaignReflectors) -> Vec<(String, u16)> {
    let missing = reflectors.lost_reflectors();
    let reflectors = missing.map(|lost| lost.reflector);
    let places = reflectors.map(|lost| (lost.host, lost.order.spec.address.port()));
    places.collect()
}

fn start(reflectors: &mut CampaignReflectors, agent: &str) -> OrderId {
    let id = OrderId::new();
    reflectors.set_ordered(&name(agent), id);
    let progress = Update::Progress(Progress {
        elapsed: Span::ZERO,
        due: 0,
    });
    reflectors.apply_update(id, &progress, Span::ZERO);
    id
}

fn ended() -> Update {
    Update::Done(Err(OrderFailed::new("serve", "port taken")))
}

fn order_to(port: u16) -> Order {
    Order::Experiments(vec![agent::order(&format!("udp://127.0.0.1:{port}"))])
}

#[test]
fn a_reflector_runs_from_its_first_progress_to_the_end_of_its_order() {
    let mut reflectors = at_ports(&[("ams", 8600)]);
    let expected = [("127.0.0.1".to_owned(), 8600)];
    reflectors.set_ordered(&name("ams"), OrderId::new());
    assert_eq!(missing(&reflectors), expected, "ordered");
    let id = start(&mut reflectors, "ams");
    assert!(missing(&reflectors).is_empty(), "it answers");
    reflectors.apply_update(id, &ended(), Span::ZERO);
    assert_eq!(missing(&reflectors), expected, "it has ended");
    let reasons: Vec<String> = reflectors
        .lost_reflectors()
        .map(|lost| lost.reason())
        .collect();
    assert!(reasons[0].contains("port taken"), "{reasons:?}");
}

#[test]
fn at_the_start_all_orders_wait_for_the_first_answer_of_each_reflector() {
    let mut reflectors = at_ports(&[("ams", 8600), ("lju", 8601)]);
    start(&mut reflectors, "ams");
    assert!(!reflectors.is_ready_for(&order_to(8600), Span::ZERO));
    assert!(reflectors.is_ready_for(&order_to(8600), FIRST_ANSWER_TIMEOUT));
    start(&mut reflectors, "lju");
    assert!(reflectors.is_ready_for(&order_to(8600), Span::ZERO));
}

#[test]
fn only_orders_that_need_a_missing_reflector_wait_for_it() {
    let mut reflectors = at_ports(&[("ams", 8600), ("lju", 8601)]);
    start(&mut reflectors, "ams");
    let at = Span::from_secs(5);
    assert!(reflectors.is_ready_for(&order_to(8600), at));
    assert!(!reflectors.is_ready_for(&order_to(8601), at));
    // Another server, and another order's wait has no effect.
    assert!(reflectors.is_ready_for(&order_to(9999), at));
    let later = at + READY_TIMEOUT;
    assert!(!reflectors.is_ready_for(&order_to(8601), later));
    assert!(reflectors.is_ready_for(&order_to(8601), later + Span::from_secs(1)));
}

#[test]
fn orders_wait_for_a_disconnected_agent_until_it_reconnects() {
    let mut reflectors = at_ports(&[("lju", 8601)]);
    let id = start(&mut reflectors, "lju");
    let (order, now) = (order_to(8601), Span::from_secs(1));
    reflectors.mark_away(&name("lju"));
    assert!(!reflectors.is_ready_for(&order, now));
    assert!(missing(&reflectors).is_empty(), "it may still answer");
    reflectors.mark_running(&name("ams"), id);
    assert!(
        !reflectors.is_ready_for(&order, now),
        "it is another agent's order"
    );
    reflectors.mark_running(&name("lju"), id);
    assert!(
        reflectors.is_ready_for(&order, now),
        "it answered all the time"
    );
    reflectors.mark_away(&name("lju"));
    reflectors.apply_update(id, &ended(), now);
    assert!(
        !reflectors.is_ready_for(&order, now),
        "its agent was killed"
    );
    assert_eq!(missing(&reflectors).len(), 1);
    start(&mut reflectors, "lju");
    assert!(reflectors.is_ready_for(&order, now));
}

#[test]
fn a_reflector_that_cannot_start_is_retried_within_eight_seconds() {
    let mut reflectors = at_ports(&[("ams", 8600)]);
    let (ams, mut now) = (name("ams"), Span::ZERO);
    for _ in 0..8 {
        let id = OrderId::new();
        reflectors.set_ordered(&ams, id);
        reflectors.apply_update(id, &ended(), now);
        assert!(reflectors.due_orders(now).is_empty(), "at once");
        now += Span::from_secs(8);
        assert_eq!(reflectors.due_orders(now).len(), 1);
    }
}
