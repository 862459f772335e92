//! Orders that an agent must not carry out, each refused with a counted reason.

use std::net::TcpListener;
use std::num::NonZeroU16;
use std::time::Duration;

use neph_campaign::expand::scenarios;
use neph_campaign::plan::parse;
use neph_model::executor::contract::order_of;
use neph_model::{
    BitRate, CaptureOrder, CpuShare, CpuThreads, EchoTo, Executor, ExecutorLost, ExperimentOrder,
    LoadOrder, LoadWork, PingOrder, ReflectorIdentity, ReflectorOrder, ReflectorSpec, SecretSource,
    ThroughputOrder, ThroughputServer, ThroughputTool, Ticket, TraceLimits, TracerouteOrder,
    Update,
};
use neph_sys::deadline::wait_until;

use super::*;
use crate::LocalExecutor;
use crate::remote::{FromAgent, OrderState, Worker};

pub(super) const POLICY: &str = r#"
version = 1
kinds = ["tcp", "udp", "icmp", "syn", "fleet", "throughput", "traceroute", "reflector"]
longest = "2h"
listen = ["9000-9010"]
files = ["/etc/neph/keys"]
[targets]
allow = ["127.0.0.1"]
[budget]
messages_per_second = 1000
rate = "10Mbit/s"
bytes_per_day = "2GB"
"#;

const HOUR: Span = Span::from_secs(3600);

fn experiment(url: &str, keys: &str) -> ExperimentOrder {
    let plan =
        format!("version = 1\nname = \"p\"\n{keys}\n[[endpoint]]\nname = \"e\"\nurl = \"{url}\"\n");
    let plan = parse(&Source::new("p.toml", plan)).unwrap_or_else(|why| panic!("{keys}: {why:?}"));
    order_of(scenarios(&plan).remove(0), Span::from_secs(1))
}

fn probe(url: &str, keys: &str) -> Order {
    Order::Experiments(vec![experiment(url, keys)])
}

/// Ten messages a second for a second.
fn harmless() -> Order {
    probe("tcp://127.0.0.1:9", "interval = \"100ms\"\nmessages = 10")
}

fn load(work: LoadWork) -> Order {
    let duration = Span::from_secs(1);
    Order::Load(LoadOrder { work, duration })
}

fn traffic(rate: Option<BitRate>) -> Order {
    load(LoadWork::Flow {
        to: "127.0.0.1:9".to_owned(),
        rate,
        connections: NonZeroU16::MIN,
        request_reply_sizes: None,
    })
}

fn throughput(tool: ThroughputTool) -> Order {
    Order::Throughput(ThroughputOrder {
        block: 0,
        server: ThroughputServer {
            name: "s".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 9,
        },
        duration: Span::from_secs(1),
        tool,
        site: None,
    })
}

/// A transfer of a second.
fn transfer(measure: &str) -> Order {
    let keys = format!("duration = \"1s\"\nmeasure = \"{measure}\"");
    probe("udp://127.0.0.1:9", &keys)
}

fn pings(host: &str, interval: Span, lasts: Span) -> Order {
    Order::Pings(PingOrder {
        block: 0,
        pings: vec![EchoTo {
            name: "p".to_owned(),
            host: host.to_owned(),
            interval,
        }],
        until: now() + lasts,
        timeout: Span::from_secs(1),
        site: None,
    })
}

fn reflector(change: impl FnOnce(&mut ReflectorSpec)) -> Order {
    let mut spec = ReflectorSpec::at(([127, 0, 0, 1], 9000).into());
    change(&mut spec);
    let duration = Span::from_secs(1);
    Order::Reflector(ReflectorOrder { spec, duration })
}

fn traceroute(host: &str) -> Order {
    Order::Traceroute(TracerouteOrder {
        block: 0,
        endpoint: "e".to_owned(),
        host: host.to_owned(),
        limits: TraceLimits::default(),
        site: None,
    })
}

/// Carries nothing out, and must not be asked to.
#[derive(Debug)]
pub(super) struct UnusedExecutor;

impl Executor for UnusedExecutor {
    fn submit(&mut self, order: Order) -> Ticket {
        panic!("it is begun: {order:?}")
    }
    fn poll(&mut self, _: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        Ok(Vec::new())
    }
    fn cancel(&mut self, _: Ticket) {}
}

const USUAL: &str = "interval = \"100ms\"\nmessages = 10\n";

/// Kinds of work that the policy does not name.
fn other_kinds() -> Vec<Order> {
    let capture = CaptureOrder {
        duration: Some(Span::from_secs(1)),
        limit: Some(neph_model::ByteSize(1 << 20)),
        ..CaptureOrder::of("any".to_owned(), 96, neph_model::ByteSize(1 << 20))
    };
    let share = CpuShare::percent(50.0).expect("a share");
    let threads = CpuThreads::EachCore;
    vec![
        probe("http://127.0.0.1:9/", USUAL),
        probe("mqtt://127.0.0.1:9", USUAL),
        throughput(ThroughputTool::Iperf3),
        transfer("media"),
        load(LoadWork::Cpu { share, threads }),
        traffic(None),
        traffic(Some(BitRate(1))),
        Order::Capture(capture),
    ]
}

/// More a second than the policy allows.
fn too_fast() -> Vec<Order> {
    let tcp = |keys: &str| probe("tcp://127.0.0.1:9", keys);
    let udp = |keys: &str| probe("udp://127.0.0.1:9", keys);
    vec![
        udp("interval = \"10us\"\nmessages = 10"),
        udp("interval = \"1s\"\nmessages = 5\nflows = 1001"),
        tcp("interval = \"10ms\"\nmessages = 5\nrequest_size = \"1MiB\""),
        tcp("interval = \"10ms\"\nmessages = 5\nresponse_size = \"1MiB\""),
        pings("127.0.0.1", Span::from_micros(10), Span::from_secs(5)),
        throughput(ThroughputTool::Neph),
        transfer("tcp throughput"),
        transfer("udp throughput 20Mbit/s"),
        transfer("udp throughput both 6Mbit/s"),
        transfer("udp rr"),
    ]
}

/// Files and variables of the host that the policy does not name.
fn files() -> Vec<Order> {
    let with = |keys: &str| probe("udp://127.0.0.1:9", &format!("{USUAL}{keys}"));
    vec![
        with("key_file = \"/etc/shadow\""),
        with("key_file = \"/etc/neph/keys/../../shadow\""),
        with("key_file = \"/etc/neph/keysfile\""),
        reflector(|spec| {
            spec.identity = Some(ReflectorIdentity::Files {
                certificate: "/etc/neph/keys/c.pem".into(),
                key: "/etc/ssl/private/k.pem".into(),
            });
        }),
        reflector(|spec| spec.stamp_key = Some(SecretSource::Variable("HOME".to_owned()))),
    ]
}

/// What the controller signs by mistake, or because another has its place.
fn signed_and_not_allowed() -> Vec<(&'static str, Order)> {
    let tcp = |keys: &str| probe("tcp://127.0.0.1:9", keys);
    let mut at_site = experiment("tcp://127.0.0.1:9", USUAL);
    at_site.site = Some("r1".to_owned());
    let others = [
        (
            "bytes a day",
            tcp("interval = \"1s\"\nmessages = 3000\nrequest_size = \"1MB\""),
        ),
        ("length", tcp("interval = \"1s\"\nmessages = 7200")),
        (
            "length",
            pings("127.0.0.1", Span::from_secs(1), HOUR.times(3)),
        ),
        ("port", reflector(|spec| spec.address.set_port(22))),
        ("port", reflector(|spec| spec.address.set_port(0))),
        (
            "port",
            reflector(|spec| spec.throughput = NonZeroU16::new(22)),
        ),
        ("kind", reflector(|spec| spec.media = NonZeroU16::new(9001))),
        ("lab", Order::Experiments(vec![at_site])),
    ];
    let of = |reason: &'static str, orders: Vec<Order>| {
        orders.into_iter().map(move |order| (reason, order))
    };
    of("kind", other_kinds())
        .chain(of("rate", too_fast()))
        .chain(of("file", files()))
        .chain(others)
        .collect()
}

#[test]
fn an_order_that_the_policy_does_not_allow_is_refused_and_reported_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let hand = SigningKey::new();
    let guard = guard(folder.path(), &hand, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", guard).expect("writable");
    let cases = signed_and_not_allowed();
    assert!(cases.len() >= 31);
    for (reason, order) in cases {
        let before = worker.refusals().get(reason).copied().unwrap_or(0);
        let grant = granted(order.clone(), HOUR);
        let answer = worker.take(begin(&hand, &grant)).expect("writable");
        let Some(FromAgent::State { state, .. }) = answer else {
            panic!("{reason}: {answer:?}")
        };
        let OrderState::Ended(ended) = state else {
            panic!("{reason}: {state:?}")
        };
        assert!(ended.result.is_err(), "{reason}: {order:?}");
        let after = worker.refusals().get(reason).copied().unwrap_or(0);
        assert_eq!(after, before + 1, "{reason}: {:?}: {order:?}", ended.result);
    }
}

/// What is not of the controller, or not for this agent, or not for now.
fn not_from_the_controller(hand: &SigningKey) -> Vec<(&'static str, ToAgent)> {
    let first_grant = granted(harmless(), HOUR);
    let other = granted(harmless(), HOUR);
    let of = |id: OrderId, grant: &Grant| ToAgent::Begin {
        id,
        grant: Box::new(grant.clone()),
    };
    let good = serde_json::to_value(hand.grant(&first_grant)).expect("JSON");
    let changed = |from: &str, to: &str| {
        let text = good["granted"].as_str().expect("text").replace(from, to);
        assert_ne!(text, good["granted"], "{from}");
        let mut forged = good.clone();
        forged["granted"] = text.into();
        of(
            first_grant.id,
            &serde_json::from_value(forged).expect("a grant"),
        )
    };
    let signature = |signature: &str| {
        let mut forged = good.clone();
        forged["signature"] = signature.into();
        of(
            first_grant.id,
            &serde_json::from_value(forged).expect("a grant"),
        )
    };
    let other_signature = serde_json::to_value(hand.grant(&other)).expect("JSON");
    let other_agent = Granted {
        agent: name("lju"),
        ..granted(harmless(), HOUR)
    };
    let late = |lease| granted(harmless(), lease);
    vec![
        ("signature", signature("")),
        ("signature", signature("AAAA")),
        ("signature", signature("no base64!")),
        (
            "signature",
            signature(other_signature["signature"].as_str().expect("text")),
        ),
        ("signature", begin(&SigningKey::new(), &first_grant)),
        ("signature", changed("127.0.0.1", "127.0.0.9")),
        ("signature", changed("\"ams\"", "\"lju\"")),
        ("signature", changed("\"messages\":10", "\"messages\":99")),
        ("signature", of(OrderId::new(), &hand.grant(&first_grant))),
        ("other agent", begin(hand, &other_agent)),
        ("expired", begin(hand, &late(Span::ZERO))),
        ("expired", begin(hand, &late(-HOUR))),
        (
            "expired",
            begin(hand, &late(Span::from_secs(-1_000_000_000))),
        ),
    ]
}

#[test]
fn an_order_not_signed_by_the_controller_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let hand = SigningKey::new();
    let guard = guard(folder.path(), &hand, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", guard).expect("writable");
    for (reason, message) in not_from_the_controller(&hand) {
        let before = worker.refusals().get(reason).copied().unwrap_or(0);
        let answer = worker.take(message).expect("writable");
        assert_eq!(answer, None, "{reason}");
        let after = worker.refusals().get(reason).copied().unwrap_or(0);
        assert_eq!(after, before + 1, "{reason}");
    }
    assert!(matches!(worker.hello(), FromAgent::Hello(hello) if hello.holds.is_empty()));
}

#[test]
fn an_order_that_was_carried_out_is_not_begun_by_a_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let hand = SigningKey::new();
    let guard = guard(folder.path(), &hand, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", guard).expect("writable");
    let grant = granted(throughput(ThroughputTool::Iperf3), HOUR);
    let message = begin(&hand, &grant);
    worker.take(message.clone()).expect("writable");
    worker
        .take(ToAgent::Stored { id: grant.id })
        .expect("writable");
    let answer = worker.take(message).expect("writable");
    let state = OrderState::Forgotten;
    assert_eq!(
        answer,
        Some(FromAgent::State {
            id: grant.id,
            state
        })
    );
    assert_eq!(worker.refusals()["replay"], 1);
}

/// Names and addresses that lead where the policy does not allow, in each kind of order.
#[test]
fn orders_for_disallowed_addresses_are_refused_and_send_nothing() {
    let trap = TcpListener::bind("127.0.0.2:0").expect("a port");
    trap.set_nonblocking(true).expect("a socket");
    let port = trap.local_addr().expect("bound").port();
    let folder = tempfile::tempdir().expect("a folder");
    let hand = SigningKey::new();
    // "localhost" stands for a name that the attacker's DNS answers.
    let policy = POLICY.replace("\"127.0.0.1\"", "\"10.0.0.0/8\"");
    let guard = guard(folder.path(), &hand, &policy);
    let executor = LocalExecutor::new().with_permit(guard.permit().clone());
    let mut worker = Worker::new(folder.path(), executor, "1", guard).expect("writable");
    let usual = "interval = \"100ms\"\nmessages = 10\n";
    let to = |target: String| probe(&target, usual);
    let orders = [
        to(format!("tcp://127.0.0.2:{port}")),
        to(format!("tcp://[::ffff:127.0.0.2]:{port}")),
        to(format!("tcp://localhost:{port}")),
        to("udp://169.254.169.254:80".to_owned()),
        to("icmp://0.0.0.0".to_owned()),
        to(format!("syn://127.0.0.2:{port}")),
        probe(
            &format!("udp://127.0.0.2:{port}"),
            &format!("{usual}flows = 10"),
        ),
        traceroute("127.0.0.2"),
        traceroute("localhost"),
    ];
    let count = orders.len();
    for order in orders {
        let grant = granted(order, HOUR);
        worker.take(begin(&hand, &grant)).expect("writable");
        let mut state = None;
        let ended = wait_until(Duration::from_secs(20), || {
            worker.work(Span::ZERO).expect("writable");
            state = worker
                .take(ToAgent::Ask { id: grant.id })
                .expect("writable");
            let Some(FromAgent::State { state, .. }) = &state else {
                return false;
            };
            matches!(state, OrderState::Ended(_))
        });
        assert!(ended, "{:?}", grant.order);
        let text = format!("{state:?}");
        assert!(text.contains("may not be measured"), "{text}");
    }
    assert!(worker.refusals()["target"] >= count as u64);
    assert!(trap.accept().is_err(), "nothing came");
}
