use std::num::NonZeroU16;

use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

use super::*;
use crate::{
    BitRate, ByteSize, CampaignId, CpuShare, Experiment, LoadSpec, Parameter, ProbeKind, Scenario,
    ScenarioId, Span, Targets, Wall,
};

fn span() -> impl Strategy<Value = Span> {
    any::<i64>().prop_map(Span::from_nanos)
}

fn load() -> impl Strategy<Value = Order> {
    let rate = || any::<u64>().prop_map(BitRate);
    let share = (1.0..=100.0_f64).prop_filter_map("a share", CpuShare::percent);
    let threads = prop_oneof![
        Just(CpuThreads::EachCore),
        any::<NonZeroU16>().prop_map(CpuThreads::Anywhere),
        any::<Vec<u32>>().prop_map(CpuThreads::Pinned),
    ];
    let turns = any::<(u64, u64)>().prop_map(|(request, reply)| TurnSizes {
        request: ByteSize(request),
        reply: ByteSize(reply),
    });
    let flow = (
        any::<(String, NonZeroU16)>(),
        proptest::option::of(rate()),
        proptest::option::of(turns),
    );
    let work = prop_oneof![
        (share, threads).prop_map(|(share, threads)| LoadWork::Cpu { share, threads }),
        flow.prop_map(|((to, connections), rate, turns)| LoadWork::Flow {
            to,
            rate,
            connections,
            request_reply_sizes: turns,
        }),
        (any::<String>(), rate()).prop_map(|(to, rate)| LoadWork::Stream { to, rate }),
    ];
    (work, span()).prop_map(|(work, duration)| Order::Load(LoadOrder { work, duration }))
}

fn site() -> impl Strategy<Value = Option<String>> {
    any::<Option<String>>()
}

fn limits() -> impl Strategy<Value = TraceLimits> {
    let limits = (1..=64_u8, 1..=10_u8);
    limits.prop_map(|(max_hops, queries)| TraceLimits { max_hops, queries })
}

fn echoes() -> impl Strategy<Value = Vec<EchoTo>> {
    let echo_fields = (any::<String>(), any::<String>(), span());
    let echo = echo_fields.prop_map(|(name, host, interval)| EchoTo {
        name,
        host,
        interval,
    });
    proptest::collection::vec(echo, 0..3)
}

fn between() -> impl Strategy<Value = Order> {
    let tool = prop_oneof![Just(ThroughputTool::Neph), Just(ThroughputTool::Iperf3)];
    let server = (any::<String>(), any::<String>(), any::<u16>());
    let check = (any::<u32>(), server, span(), tool, site());
    let check = check.prop_map(|(block, (name, host, port), duration, tool, site)| {
        Order::Throughput(ThroughputOrder {
            block,
            server: ThroughputServer { name, host, port },
            duration,
            tool,
            site,
        })
    });
    let route = (any::<u32>(), any::<(String, String)>(), limits(), site());
    let route = route.prop_map(|(block, (endpoint, host), limits, site)| {
        Order::Traceroute(TracerouteOrder {
            block,
            endpoint,
            host,
            limits,
            site,
        })
    });
    let pings = (any::<u32>(), echoes(), any::<i64>(), span(), site());
    let pings = pings.prop_map(|(block, pings, until, timeout, site)| {
        let until = Wall::from_unix_nanos(until);
        Order::Pings(PingOrder {
            block,
            pings,
            until,
            timeout,
            site,
        })
    });
    prop_oneof![check, route, pings]
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let kind = proptest::sample::select(ProbeKind::ALL);
    let target = prop_oneof![
        kind.prop_map(|kind| Targets::read("nowhere", kind)),
        Just(Targets::read(
            "ws://[2001:db8::1]:8080/a?b=c ws://example.org",
            ProbeKind::Ws
        )),
    ];
    let sizes = (any::<u64>(), any::<u64>()).prop_map(|(a, b)| (ByteSize(a), ByteSize(b)));
    let several = (target, sizes, any::<String>(), any::<(u64, u32)>(), span());
    several.prop_map(
        |(target, sizes, endpoint, (id, index), interval)| Scenario {
            id: ScenarioId(id),
            index,
            endpoint,
            target,
            interval,
            request_size: sizes.0,
            response_size: sizes.1,
            messages: id,
            parameters: [
                Parameter::FollowRedirects(true),
                Parameter::Spin(Span::from_micros(3)),
            ]
            .into_iter()
            .collect(),
            varied: Vec::new(),
        },
    )
}

fn experiments() -> impl Strategy<Value = Order> {
    let trace =
        (any::<u32>(), limits()).prop_map(|(flows, limits)| FlowTraceOrder { flows, limits });
    let address = any::<Option<[u8; 4]>>().prop_map(|octets| octets.map(Into::into));
    let more = (
        address,
        span(),
        any::<Option<i64>>(),
        echoes(),
        proptest::option::of(trace),
    );
    let order =
        (scenario(), site(), any::<bool>(), more).prop_map(|(scenario, site, reflector, more)| {
            let (last_address, timeout, companion, pings, trace) = more;
            let start = Wall::from_unix_nanos(timeout.nanos());
            Order::Experiments(vec![ExperimentOrder {
                experiment: Experiment::new(CampaignId::new(), scenario.id, start),
                scenario,
                site,
                reflector,
                last_address,
                timeout,
                companion: companion.map(Span::from_nanos),
                pings,
                trace,
                start: Some(start),
            }])
        });
    order.boxed()
}

fn capture() -> impl Strategy<Value = Order> {
    let protocols = [
        CaptureProtocol::Tcp,
        CaptureProtocol::Udp,
        CaptureProtocol::Icmp,
    ];
    let protocols = proptest::sample::subsequence(protocols.to_vec(), 0..=3);
    let hosts = proptest::collection::vec(any::<[u8; 16]>().prop_map(Into::into), 0..3);
    let sizes = (any::<u32>(), any::<u64>());
    let fields = (
        any::<String>(),
        site(),
        sizes,
        hosts,
        any::<Vec<u16>>(),
        protocols,
    );
    fields.prop_map(
        |(interface, site, (snaplen, ring), hosts, ports, protocols)| {
            Order::Capture(CaptureOrder {
                interface,
                site,
                snaplen,
                ring: ByteSize(ring),
                hosts,
                ports,
                protocols,
                duration: (snaplen % 2 == 0).then(|| Span::from_nanos(i64::from(snaplen))),
                limit: (snaplen % 3 == 0).then_some(ByteSize(ring)),
                samples: false,
            })
        },
    )
}

fn order() -> BoxedStrategy<Order> {
    prop_oneof![load(), between(), experiments(), capture()].boxed()
}

proptest::proptest! {
    #[test]
    fn orders_roundtrip_through_json(order in order()) {
        let text = serde_json::to_string(&order).expect("it is plain data");
        let read: Order = serde_json::from_str(&text).expect("as it was written");
        proptest::prop_assert_eq!(read, order);
    }
}

#[test]
fn a_cpu_load_in_plan_syntax_has_one_thread_per_core() {
    let text = r#"{"load":{"work":{"cpu":{"share":80.0,"threads":"each_core"}},"duration_ns":1}}"#;
    let share = CpuShare::percent(80.0).expect("a share");
    let order = Order::Load(LoadOrder {
        work: LoadSpec::Cpu(share).into(),
        duration: Span::from_nanos(1),
    });
    assert_eq!(serde_json::to_string(&order).expect("plain data"), text);
}

#[test]
fn invalid_orders_are_refused() {
    for text in [
        "{}",
        r#"{"load": {"work": {"cpu": {"share": 101.0, "threads": "each_core"}}, "duration_ns": 1}}"#,
        r#"{"load": {"work": {"cpu": {"share": 80.0, "threads": "each_core"}}, "duration_ns": 1, "more": 2}}"#,
        r#"{"dance": {}}"#,
    ] {
        assert!(serde_json::from_str::<Order>(text).is_err(), "{text}");
    }
}
