//! A trace as text: the hops, where paths split, and the paths.

use std::collections::BTreeSet;
use std::net::IpAddr;

use neph_model::{Diamond, DiamondHop, DiamondNode, FlowTrace, TraceKind};

use super::PathRow;
use super::remarks::{TraceConditions, remarks};
use super::replies::{min_median_max, share_text};
use crate::cell::Cell;
use crate::rows;
use crate::table::{Heading, Table};
use neph_text::counted::counted;

/// The whole text of a trace.
pub fn text(trace: &FlowTrace, diamond: &Diamond, conditions: TraceConditions) -> String {
    let mut text = heading_text(trace, diamond);
    text.push_str(&hops_table(trace, diamond).text());
    if diamond.paths.len() > 1 {
        text.push('\n');
        text.push_str(&rows::text(&PathRow::all(diamond)));
    }
    for remark in remarks(trace, diamond, conditions) {
        text.push('\n');
        text.push_str(&remark);
    }
    text.push('\n');
    text
}

fn heading_text(trace: &FlowTrace, diamond: &Diamond) -> String {
    let destination = match trace.kind {
        TraceKind::Icmp => format!("{} with ICMP echo", trace.destination.ip()),
        TraceKind::Udp => format!(
            "{} port {} with UDP",
            trace.destination.ip(),
            trace.destination.port()
        ),
        TraceKind::Syn => format!(
            "{} port {} with TCP SYN",
            trace.destination.ip(),
            trace.destination.port()
        ),
    };
    let ports: Vec<u16> = trace.routes.iter().map(|route| route.source_port).collect();
    let ports_text = match (ports.as_slice(), trace.kind) {
        ([], _) => String::new(),
        ([port], TraceKind::Icmp) => format!(" (identifier {port})"),
        ([port], _) => format!(" (source port {port})"),
        ([first, .., last], TraceKind::Icmp) => format!(" (identifiers {first} to {last})"),
        ([first, .., last], _) => format!(" (source ports {first} to {last})"),
    };
    format!(
        "trace to {destination}: {}{ports_text}, {}\n\n",
        counted(diamond.flows.into(), "flow"),
        counted(diamond.paths.len() as u64, "path")
    )
}

fn hops_table(trace: &FlowTrace, diamond: &Diamond) -> Table {
    let mut hops = trace.routes.iter().flat_map(|route| &route.hops);
    let has_labels = hops.any(|hop| !hop.labels.is_empty());
    let mut headings = vec![
        Heading::right("HOP"),
        Heading::left(""),
        Heading::left("ADDRESS"),
        Heading::right("FLOWS"),
        Heading::right("REPLIES"),
        Heading::right("BEST"),
        Heading::right("MEDIAN"),
        Heading::right("WORST"),
    ];
    if has_labels {
        headings.push(Heading::left("MPLS"));
    }
    let mut table = Table::new(headings);
    for hop in &diamond.hops {
        for (index, node) in hop.nodes.iter().enumerate() {
            let mut row = vec![branch(hop, index).to_owned()];
            row.insert(
                0,
                if index == 0 {
                    hop.ttl.to_string()
                } else {
                    String::new()
                },
            );
            row.extend(node_cells(node, diamond.flows));
            if has_labels {
                row.push(labels_text(trace, hop.ttl, node.address));
            }
            table.push(row);
        }
    }
    table
}

/// The lines before the node at this index of a hop.
const fn branch(hop: &DiamondHop, index: usize) -> &'static str {
    match index {
        0 if hop.nodes.len() == 1 => "│",
        0 => "┌",
        _ if index == hop.nodes.len() - 1 => "└",
        _ => "├",
    }
}

/// Address, flows, replies and round trips of a node.
fn node_cells(node: &DiamondNode, flows: u32) -> Vec<String> {
    let address = node
        .address
        .map_or_else(|| "*".to_owned(), |address| address.to_string());
    let replies = format!("{}/{}", node.round_trips.len(), node.probes);
    let mut cells = vec![address, share_text(node.flows, flows), replies];
    cells.extend(min_median_max(&node.round_trips).map(|time| time.cell()));
    cells
}

fn labels_text(trace: &FlowTrace, ttl: u8, address: Option<IpAddr>) -> String {
    let hops = trace.routes.iter().flat_map(|route| &route.hops);
    let node_hops = hops.filter(|hop| hop.ttl == ttl && hop.address == address);
    let labels: BTreeSet<String> = node_hops
        .filter(|hop| !hop.labels.is_empty())
        .map(|hop| {
            let stack: Vec<String> = hop
                .labels
                .iter()
                .map(|label| label.label.to_string())
                .collect();
            stack.join("/")
        })
        .collect();
    if labels.is_empty() {
        return "-".to_owned();
    }
    labels.into_iter().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use neph_flows::build_diamond;
    use neph_model::{FlowHop, FlowRoute, MplsLabel, PathHash, Span, TraceEnd, Wall};

    use super::*;

    fn addr(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn route(source_port: u16, routers: &[u8], end: TraceEnd) -> FlowRoute {
        let hop = |(last, ttl): (&u8, u8)| FlowHop {
            round_trips: vec![Span::from_millis(i64::from(ttl)); usize::from(*last > 0)],
            ..FlowHop::new(ttl, (*last > 0).then(|| addr(*last)))
        };
        let hops: Vec<FlowHop> = routers.iter().zip(1..).map(hop).collect();
        let addresses: Vec<_> = hops.iter().map(|hop| hop.address).collect();
        FlowRoute {
            source_port,
            hash: PathHash::of(&addresses),
            hops,
            end,
        }
    }

    fn render(routes: Vec<FlowRoute>, enough: Option<bool>) -> String {
        render_as(TraceKind::Syn, routes, enough)
    }

    fn render_as(kind: TraceKind, routes: Vec<FlowRoute>, enough: Option<bool>) -> String {
        let trace = FlowTrace {
            destination: (addr(9), 443).into(),
            kind,
            started: Wall::from_unix_nanos(0),
            routes,
            enough,
        };
        let conditions = TraceConditions {
            confidence: 0.99,
            stopped: false,
        };
        text(&trace, &build_diamond(&trace.routes), conditions)
    }

    #[test]
    fn one_path_is_a_table_of_hops() {
        let mut single_route = route(4711, &[1, 0, 9], TraceEnd::Reached);
        single_route.hops[0].labels = [24_001, 16]
            .map(|label| MplsLabel {
                label,
                traffic_class: 0,
                ttl: 1,
            })
            .to_vec();
        let expected = "\
trace to 192.0.2.9 port 443 with TCP SYN: 1 flow (source port 4711), 1 path

HOP     ADDRESS       FLOWS  REPLIES     BEST   MEDIAN    WORST  MPLS
  1  │  192.0.2.1  1  100 %      1/1  1.00 ms  1.00 ms  1.00 ms  24001/16
  2  │  *          1  100 %      0/1        -        -        -  -
  3  │  192.0.2.9  1  100 %      1/1  3.00 ms  3.00 ms  3.00 ms  -

Routers answer with low priority: the RTT of hops before the last is an upper bound, and their loss is not loss of the path.
";
        assert_eq!(render(vec![single_route], None), expected);
    }

    #[test]
    fn several_paths_are_drawn_and_listed() {
        let routes = [(1, 10), (2, 10), (3, 11), (4, 12)];
        let mut routes: Vec<FlowRoute> = routes
            .map(|(port, middle)| route(port, &[1, middle, 9], TraceEnd::Reached))
            .to_vec();
        routes[3].hops[1].other_addresses = vec![addr(13)];
        let text = render(routes, Some(false));
        let drawing = "\
HOP      ADDRESS       FLOWS  REPLIES     BEST   MEDIAN    WORST
  1  │  192.0.2.1   4  100 %      4/4  1.00 ms  1.00 ms  1.00 ms
  2  ┌  192.0.2.10  2   50 %      2/2  2.00 ms  2.00 ms  2.00 ms
     ├  192.0.2.11  1   25 %      1/1  2.00 ms  2.00 ms  2.00 ms
     └  192.0.2.12  1   25 %      1/1  2.00 ms  2.00 ms  2.00 ms
  3  │  192.0.2.9   4  100 %      4/4  3.00 ms  3.00 ms  3.00 ms

PATH              ";
        assert!(
            text.contains(&drawing[drawing.find("  1").expect("there")..]),
            "{text}"
        );
        assert!(
            text.contains("  2   50 %     3  3.00 ms  3.00 ms  192.0.2.10  1 2\n"),
            "{text}"
        );
        assert!(text.contains("There may be more paths") && text.contains("--most-flows"));
        assert!(text.contains("1 flow met several routers at one distance, from hop 2 on"));
    }

    #[test]
    fn too_few_flows_for_all_paths_are_reported_with_the_number_needed() {
        let text_over = |middle: &[u8], times: u16| -> String {
            let middles = middle.iter().cycle().zip(1..=times);
            let routes = middles.map(|(via, port)| route(port, &[1, *via, 9], TraceEnd::Reached));
            render(routes.collect(), None)
        };
        // By the table of the theory: 8 behind a router with one next hop, 15 with two, 21, 28.
        let split_text = text_over(&[10, 11], 4);
        let expected = "more paths than these 4 flows take: to rule that out with 99 % confidence \
                    takes at least 16.";
        assert!(
            split_text.contains(expected),
            "8 behind each of two: {split_text}"
        );
        assert!(
            split_text.contains("replies may return on several reverse paths"),
            "{split_text}"
        );
        let single_text = text_over(&[10], 5);
        assert!(single_text.contains("takes at least 8."), "{single_text}");
        assert!(
            !single_text.contains("replies may return on several reverse paths"),
            "{single_text}"
        );
        for text in [
            text_over(&[10], 8),
            text_over(&[10, 11], 16),
            text_over(&[10], 1),
        ] {
            assert!(!text.contains("more paths"), "{text}");
        }
        // A missing answer at a distance where others answer is no evidence about the router.
        let mut routes: Vec<FlowRoute> = (1..=8)
            .map(|port| route(port, &[1, 10, 9], TraceEnd::Reached))
            .collect();
        routes.push(route(9, &[1, 0, 9], TraceEnd::Reached));
        assert!(!render(routes, None).contains("more paths"));
    }

    #[test]
    fn paths_are_ruled_out_only_where_flows_differ_for_routers_that_answered() {
        let routes_over = |hops: &[u8], end| -> Vec<FlowRoute> {
            let ports = 1_u16..=8;
            ports.map(|port| route(port, hops, end)).collect()
        };
        let routes = || routes_over(&[1, 10, 9], TraceEnd::Reached);
        let ruled_out = "rule out, router by router";
        assert!(render(routes(), Some(true)).contains(ruled_out));
        for enough in [Some(true), Some(false), None] {
            let text = render_as(TraceKind::Icmp, routes(), enough);
            assert!(!text.contains(ruled_out), "{text}");
            assert!(text.contains("udp:// or syn:// to find more"), "{text}");
        }
        // Where ICMP's flows parted, they do differ.
        let mut split_routes = routes();
        split_routes.extend([9, 10].map(|port| route(port, &[1, 11, 9], TraceEnd::Reached)));
        assert!(render_as(TraceKind::Icmp, split_routes, Some(true)).contains(ruled_out));
        let text = render(routes_over(&[0, 0], TraceEnd::Silent), Some(true));
        assert!(!text.contains(ruled_out), "{text}");
        assert!(text.contains("8 flows: no answer"), "{text}");
    }

    #[test]
    fn flows_that_end_early_state_the_reason() {
        let router = addr(1);
        for (end, part) in [
            (TraceEnd::Silent, "1 flow: no answer beyond"),
            (
                TraceEnd::Loop { at: router },
                "1 flow: a loop through 192.0.2.1.",
            ),
            (
                TraceEnd::Unreachable {
                    from: router,
                    code: 13,
                },
                "192.0.2.1 reports the destination as unreachable (ICMP code 13)",
            ),
            (TraceEnd::TooFar, "--max-hops"),
        ] {
            let text = render(vec![route(1, &[1], end)], None);
            assert!(text.contains(part), "{text}");
        }
    }
}
