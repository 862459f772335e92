//! Kinds of work, as a policy names them.

use neph_model::{ExperimentOrder, LoadWork, Measure, Order, ProbeKind, Scenario, ThroughputTool};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages of this kind of probe.
    Probe(ProbeKind),
    /// Many flows at a time.
    Fleet,
    /// Following redirects to other targets.
    Redirects,
    /// Routes.
    Traceroute,
    /// Bulk transfers, and requests and replies in turn.
    Throughput,
    /// Media streams.
    Media,
    /// Bulk transfers by the iperf3 program, whose traffic no budget limits.
    Iperf3,
    /// A load of this host's processors.
    Cpu,
    /// TCP and UDP traffic as a load.
    Traffic,
    /// Answering probes.
    Reflector,
    /// Capturing the packets of an interface.
    Capture,
}

/// The words of all kinds that are no probe.
const OTHER_KIND_NAMES: [(&str, Kind); 10] = [
    ("media", Kind::Media),
    ("fleet", Kind::Fleet),
    ("redirects", Kind::Redirects),
    ("traceroute", Kind::Traceroute),
    ("throughput", Kind::Throughput),
    ("iperf3", Kind::Iperf3),
    ("cpu", Kind::Cpu),
    ("traffic", Kind::Traffic),
    ("reflector", Kind::Reflector),
    ("capture", Kind::Capture),
];

impl Kind {
    const ECHO: Self = Self::Probe(ProbeKind::Icmp);

    /// All kinds, each with its word.
    pub(super) fn kind_names() -> Vec<(&'static str, Self)> {
        let probes = ProbeKind::ALL
            .iter()
            .map(|kind| (kind.name(), Self::Probe(*kind)));
        probes.chain(OTHER_KIND_NAMES).collect()
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        let mut kind_names = Self::kind_names().into_iter();
        kind_names
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }

    /// The kinds of work that an order does.
    pub fn of(order: &Order) -> Vec<Self> {
        match order {
            Order::Experiments(orders) => orders.iter().flat_map(kinds_of_experiment).collect(),
            Order::Throughput(order) => match order.tool {
                ThroughputTool::Neph => vec![Self::Throughput],
                ThroughputTool::Iperf3 => vec![Self::Iperf3],
            },
            Order::Traceroute(_) => vec![Self::Traceroute],
            Order::Pings(_) => vec![Self::ECHO],
            Order::Load(order) => match order.work {
                LoadWork::Cpu { .. } => vec![Self::Cpu],
                LoadWork::Flow { .. } | LoadWork::Stream { .. } => vec![Self::Traffic],
            },
            Order::Capture(_) => vec![Self::Capture],
            Order::Reflector(order) => {
                let services = [
                    (order.spec.throughput.is_some(), Self::Throughput),
                    (order.spec.media.is_some(), Self::Media),
                ];
                let services = services.into_iter().filter(|(is_served, _)| *is_served);
                let services = services.map(|(_, kind)| kind);
                std::iter::once(Self::Reflector).chain(services).collect()
            }
        }
    }
}

/// Whether no experiment of the order measures this kind: it is needed only for additional ICMP echoes.
pub(super) fn is_for_echoes(order: &Order, kind: Kind) -> bool {
    let Order::Experiments(orders) = order else {
        return false;
    };
    kind == Kind::ECHO
        && orders
            .iter()
            .all(|order| main_kind(&order.scenario) != kind)
}

fn main_kind(scenario: &Scenario) -> Kind {
    match scenario.measure() {
        Measure::Messages => Kind::Probe(scenario.probe()),
        Measure::Throughput(_) | Measure::Transactions(_) => Kind::Throughput,
        Measure::Media(_) => Kind::Media,
    }
}

fn kinds_of_experiment(order: &ExperimentOrder) -> Vec<Kind> {
    let scenario = &order.scenario;
    let has_echo = order.companion.is_some() || !order.pings.is_empty();
    let additional_kinds = [
        (scenario.flows().is_some(), Kind::Fleet),
        (scenario.parameters.follow() == Some(&true), Kind::Redirects),
        (order.trace.is_some(), Kind::Traceroute),
        (has_echo, Kind::ECHO),
    ];
    let additional_kinds = additional_kinds
        .into_iter()
        .filter_map(|(is_requested, kind)| is_requested.then_some(kind));
    std::iter::once(main_kind(scenario))
        .chain(additional_kinds)
        .collect()
}
