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
fn allowed_order() -> Order {
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

fn pings(host: &str, interval: Span, duration: Span) -> Order {
    Order::Pings(PingOrder {
        block: 0,
        pings: vec![EchoTo {
            name: "p".to_owned(),
            host: host.to_owned(),
            interval,
        }],
        until: now() + duration,
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

/// An executor that must not get an order.
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
fn disallowed_kinds() -> Vec<Order> {
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
fn above_rate_limits() -> Vec<Order> {
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
fn disallowed_files() -> Vec<Order> {
    let probe_with = |keys: &str| probe("udp://127.0.0.1:9", &format!("{USUAL}{keys}"));
    vec![
        probe_with("key_file = \"/etc/shadow\""),
        probe_with("key_file = \"/etc/neph/keys/../../shadow\""),
        probe_with("key_file = \"/etc/neph/keysfile\""),
        reflector(|spec| {
            spec.identity = Some(ReflectorIdentity::Files {
                certificate: "/etc/neph/keys/c.pem".into(),
                key: "/etc/ssl/private/k.pem".into(),
            });
        }),
        reflector(|spec| spec.stamp_key = Some(SecretSource::Variable("HOME".to_owned()))),
    ]
}

/// Orders that a controller signs by mistake, or because an attacker controls it.
fn disallowed_orders() -> Vec<(&'static str, Order)> {
    let tcp = |keys: &str| probe("tcp://127.0.0.1:9", keys);
    let mut at_site = experiment("tcp://127.0.0.1:9", USUAL);
    at_site.site = Some("r1".to_owned());
    let other_orders = [
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
    let with_reason = |reason: &'static str, orders: Vec<Order>| {
        orders.into_iter().map(move |order| (reason, order))
    };
    with_reason("kind", disallowed_kinds())
        .chain(with_reason("rate", above_rate_limits()))
        .chain(with_reason("file", disallowed_files()))
        .chain(other_orders)
        .collect()
}

#[test]
fn an_order_against_the_policy_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let control = open_admission(folder.path(), &key, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", control).expect("writable");
    let cases = disallowed_orders();
    assert!(cases.len() >= 31);
    for (reason, order) in cases {
        let before = worker.refusals().get(reason).copied().unwrap_or(0);
        let grant = granted(order.clone(), HOUR);
        let answer = worker.take(begin(&key, &grant)).expect("writable");
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

/// Messages that are not from the controller, not for this agent, or expired.
fn invalid_messages(key: &SigningKey) -> Vec<(&'static str, ToAgent)> {
    let first_grant = granted(allowed_order(), HOUR);
    let other_grant = granted(allowed_order(), HOUR);
    let other_id = ToAgent::Begin {
        id: OrderId::new(),
        grant: Box::new(key.grant(&first_grant)),
    };
    let forged_message = |forged: serde_json::Value| ToAgent::Begin {
        id: first_grant.id,
        grant: serde_json::from_value(forged).expect("a grant"),
    };
    let valid = serde_json::to_value(key.grant(&first_grant)).expect("JSON");
    let with_change = |from: &str, to: &str| {
        let text = valid["granted"].as_str().expect("text").replace(from, to);
        assert_ne!(text, valid["granted"], "{from}");
        let mut forged = valid.clone();
        forged["granted"] = text.into();
        forged_message(forged)
    };
    let signature = |signature: &str| {
        let mut forged = valid.clone();
        forged["signature"] = signature.into();
        forged_message(forged)
    };
    let other_signature = serde_json::to_value(key.grant(&other_grant)).expect("JSON");
    let other_agent = Granted {
        agent: name("lju"),
        ..granted(allowed_order(), HOUR)
    };
    let expiring_in = |lease| granted(allowed_order(), lease);
    vec![
        ("signature", signature("")),
        ("signature", signature("AAAA")),
        ("signature", signature("no base64!")),
        (
            "signature",
            signature(other_signature["signature"].as_str().expect("text")),
        ),
        ("signature", begin(&SigningKey::new(), &first_grant)),
        ("signature", with_change("127.0.0.1", "127.0.0.9")),
        ("signature", with_change("\"ams\"", "\"lju\"")),
        (
            "signature",
            with_change("\"messages\":10", "\"messages\":99"),
        ),
        ("signature", other_id),
        ("other agent", begin(key, &other_agent)),
        ("expired", begin(key, &expiring_in(Span::ZERO))),
        ("expired", begin(key, &expiring_in(-HOUR))),
        (
            "expired",
            begin(key, &expiring_in(Span::from_secs(-1_000_000_000))),
        ),
    ]
}

#[test]
fn an_order_not_signed_by_the_controller_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let control = open_admission(folder.path(), &key, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", control).expect("writable");
    for (reason, message) in invalid_messages(&key) {
        let before = worker.refusals().get(reason).copied().unwrap_or(0);
        let answer = worker.take(message).expect("writable");
        assert_eq!(answer, None, "{reason}");
        let after = worker.refusals().get(reason).copied().unwrap_or(0);
        assert_eq!(after, before + 1, "{reason}");
    }
    assert!(matches!(worker.hello(), FromAgent::Hello(hello) if hello.holds.is_empty()));
}

#[test]
fn a_replayed_order_is_not_carried_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    let control = open_admission(folder.path(), &key, POLICY);
    let mut worker = Worker::new(folder.path(), UnusedExecutor, "1", control).expect("writable");
    let grant = granted(throughput(ThroughputTool::Iperf3), HOUR);
    let message = begin(&key, &grant);
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
    let listener = TcpListener::bind("127.0.0.2:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("bound").port();
    let folder = tempfile::tempdir().expect("a folder");
    let key = SigningKey::new();
    // "localhost" stands for a name that the attacker's DNS answers.
    let policy = POLICY.replace("\"127.0.0.1\"", "\"10.0.0.0/8\"");
    let control = open_admission(folder.path(), &key, &policy);
    let executor = LocalExecutor::new().with_permit(control.permit().clone());
    let mut worker = Worker::new(folder.path(), executor, "1", control).expect("writable");
    let usual = "interval = \"100ms\"\nmessages = 10\n";
    let probe_to = |target: String| probe(&target, usual);
    let orders = [
        probe_to(format!("tcp://127.0.0.2:{port}")),
        probe_to(format!("tcp://[::ffff:127.0.0.2]:{port}")),
        probe_to(format!("tcp://localhost:{port}")),
        probe_to("udp://169.254.169.254:80".to_owned()),
        probe_to("icmp://0.0.0.0".to_owned()),
        probe_to(format!("syn://127.0.0.2:{port}")),
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
        worker.take(begin(&key, &grant)).expect("writable");
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
    assert!(listener.accept().is_err(), "nothing came");
}
