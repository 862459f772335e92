//! A link of the kernel: one veth pair between the sites. Both ends have netem (delay, jitter, loss,
//! corruption, duplicates, reordering), tbf (rate, queue), pfifo (a queue in packets) and codel. It keeps no
//! record.

use neph_model::Span;

use super::{LinkKind, LinkPlacement, mac};
use crate::gate::{Discipline, FULL_FRAME_BYTES, Jitter, Loss, QueueLimit, Shape, Share, Wire};
use crate::plan::Operation;
use crate::topology::Link;

/// Queue of netem in packets: 500 ms at 200,000 packets/s. It must never be the limit.
const QUEUE_LIMIT_PACKETS: u32 = 100_000;

#[derive(Debug)]
pub(crate) struct Netem;

impl LinkKind for Netem {
    fn name(&self) -> &'static str {
        "netem"
    }

    fn create_operations(&self, placement: &LinkPlacement<'_>) -> Vec<Operation> {
        let (number, name, [a, b]) = (
            placement.number,
            &placement.link.name,
            placement.site_namespaces,
        );
        let (mac_a, mac_b) = (mac(number, 0), mac(number, 1));
        let line = format!(
            "link add dev {name} address {mac_a} type veth \
             peer name {name} address {mac_b} netns {b}"
        );
        let mut operations = vec![Operation::ip(a, line)];
        for (site, shape) in [(a, &placement.link.a_to_b), (b, &placement.link.b_to_a)] {
            operations.extend(
                shape_lines(name, shape)
                    .into_iter()
                    .map(|line| Operation::tc(site, line)),
            );
        }
        operations
    }

    fn engine_ends(&self, _number: usize) -> Option<[String; 2]> {
        None
    }

    fn unsupported_features(&self, link: &Link) -> Vec<(&'static str, &'static str)> {
        let shapes = [&link.a_to_b, &link.b_to_a];
        let has_trace = |shape: &&Shape| matches!(shape.wire.jitter, Jitter::Trace(_));
        let has_trace = shapes.iter().any(has_trace);
        let has_paths = shapes.iter().any(|shape| !shape.paths.is_empty());
        // tc reports: "distribution specified but no latency", "reordering not possible without specifying
        // some delay".
        let has_no_delay = |shape: &&&Shape| micros(shape.wire.delay) == 0;
        let has_normal_jitter = |shape: &&Shape| matches!(shape.wire.jitter, Jitter::Normal(width) if micros(width) > 0);
        let has_jitter_without_delay = shapes.iter().filter(has_no_delay).any(has_normal_jitter);
        let has_reordering = |shape: &&Shape| shape.wire.reorder > Share::NONE;
        let has_reordering_without_delay = shapes.iter().filter(has_no_delay).any(has_reordering);
        let unsupported = [
            (has_trace, ("jitter", "follow a trace")),
            (
                has_jitter_without_delay,
                ("jitter", "vary normally around no delay"),
            ),
            (
                has_reordering_without_delay,
                ("reorder", "reorder packets without a delay"),
            ),
            (has_paths, ("path", "have several paths")),
            (!link.schedule.is_empty(), ("schedule", "change in time")),
        ];
        let unsupported = unsupported
            .into_iter()
            .filter(|(is_requested, _)| *is_requested);
        unsupported.map(|(_, feature)| feature).collect()
    }
}

/// The lines of tc for one direction. netem counts time in whole microseconds below 1.22.
fn shape_lines(interface: &str, shape: &Shape) -> Vec<String> {
    let wire = &shape.wire;
    let mut netem = format!(
        "qdisc add dev {interface} root handle 1: netem limit {QUEUE_LIMIT_PACKETS} {}{}",
        delay(wire),
        loss(&wire.loss)
    );
    let shares = [
        ("corrupt", wire.corrupt),
        ("duplicate", wire.duplicate),
        ("reorder", wire.reorder),
    ];
    for (name, share) in shares.into_iter().filter(|(_, share)| *share > Share::NONE) {
        netem += &format!(" {name} {}", percent(share));
    }
    let mut lines = vec![netem];
    let Some(rate) = shape.rate else { return lines };
    let (rate, bytes) = (
        rate.bits_per_second(),
        shape.queue.bytes_of(FULL_FRAME_BYTES),
    );
    lines.push(format!(
        "qdisc add dev {interface} parent 1: handle 2: tbf rate {rate}bit burst 1600 limit {}",
        bytes.bytes()
    ));
    let inner = match (shape.discipline, shape.queue) {
        (Discipline::CoDel(requested), queue) => {
            let [target, interval] = [requested.target, requested.interval].map(micros);
            let frames = u64::from(FULL_FRAME_BYTES);
            let packets = match queue {
                QueueLimit::Packets(packets) => u64::from(packets),
                QueueLimit::Bytes(bytes) => bytes.bytes().div_ceil(frames),
            };
            format!("codel limit {packets} target {target}us interval {interval}us noecn")
        }
        (Discipline::DropTail, QueueLimit::Packets(packets)) => format!("pfifo limit {packets}"),
        (Discipline::DropTail, QueueLimit::Bytes(_)) => return lines,
    };
    lines.push(format!(
        "qdisc add dev {interface} parent 2: handle 3: {inner}"
    ));
    lines
}

fn delay(wire: &Wire) -> String {
    let delay = micros(wire.delay);
    match &wire.jitter {
        // Reading the topology refuses a trace.
        Jitter::None | Jitter::Trace(_) => format!("delay {delay}us"),
        Jitter::Uniform(width) | Jitter::Normal(width) | Jitter::Pareto(width)
            if micros(*width) == 0 =>
        {
            format!("delay {delay}us")
        }
        Jitter::Uniform(bound) => format!("delay {delay}us {}us", micros(*bound)),
        Jitter::Normal(deviation) => {
            let deviation = micros(*deviation);
            format!("delay {delay}us {deviation}us distribution normal")
        }
        Jitter::Pareto(mean) => {
            // netem's table is 4/3 (X - 3/2), that of neph twice the mean times (X - 1): the same X.
            let (middle, scale) = (wire.delay + *mean, mean.times(3).nanos() / 2);
            let (middle, scale) = (micros(middle), micros(Span::from_nanos(scale)));
            format!("delay {middle}us {scale}us distribution pareto")
        }
    }
}

const fn micros(span: Span) -> i64 {
    (span.nanos() + 500) / 1000
}

fn loss(loss: &Loss) -> String {
    match loss {
        Loss::Random(Share::NONE) => String::new(),
        Loss::Random(share) => format!(" loss {}", percent(*share)),
        Loss::GilbertElliott(model) => {
            let shares = [model.to_bad, model.to_good, model.loss_bad, model.loss_good];
            let [p, r, bad, good] = shares.map(percent);
            format!(" loss gemodel {p} {r} {bad} {good}")
        }
    }
}

fn percent(share: Share) -> String {
    format!("{:.7}%", share.fraction() * 100.0)
}

#[cfg(test)]
mod tests {
    use neph_model::BitRate;

    use super::*;
    use crate::gate::{CoDel, GilbertElliott};

    #[test]
    fn a_shape_is_converted_to_tc_commands() {
        let mut shape = Shape {
            rate: Some(BitRate(3_000_000)),
            queue: QueueLimit::Packets(100),
            ..Shape::default()
        };
        shape.wire = Wire {
            delay: Span::from_micros(1500),
            jitter: Jitter::Normal(Span::from_millis(2)),
            loss: Loss::Random(Share::from_billionths(1_000_000)),
            ..Wire::default()
        };
        assert_eq!(
            shape_lines("up", &shape),
            [
                "qdisc add dev up root handle 1: netem limit 100000 delay 1500us 2000us \
                 distribution normal loss 0.1000000%",
                "qdisc add dev up parent 1: handle 2: tbf rate 3000000bit burst 1600 limit 151400",
                "qdisc add dev up parent 2: handle 3: pfifo limit 100",
            ]
        );
        shape.queue = QueueLimit::default();
        assert!(shape_lines("up", &shape)[1].ends_with("limit 262144"));
        shape.discipline = Discipline::CoDel(CoDel::default());
        assert!(
            shape_lines("up", &shape)[2]
                .ends_with("handle 3: codel limit 174 target 5000us interval 100000us noecn")
        );
    }

    #[test]
    fn netem_settings_are_written_in_netem_syntax() {
        let percent = |percent: u32| Share::from_billionths(percent * 10_000_000);
        let wire = Wire {
            delay: Span::from_millis(10),
            jitter: Jitter::Pareto(Span::from_millis(2)),
            loss: Loss::GilbertElliott(GilbertElliott {
                to_bad: percent(1),
                to_good: percent(20),
                loss_good: percent(2),
                loss_bad: Share::ALL,
            }),
            corrupt: percent(3),
            duplicate: percent(4),
            reorder: percent(5),
        };
        let shape = Shape {
            wire,
            ..Shape::default()
        };
        assert_eq!(
            shape_lines("up", &shape),
            [
                "qdisc add dev up root handle 1: netem limit 100000 delay 12000us 3000us \
                 distribution pareto loss gemodel 1.0000000% 20.0000000% 100.0000000% 2.0000000% \
                 corrupt 3.0000000% duplicate 4.0000000% reorder 5.0000000%"
            ]
        );
        let plain = Shape::default();
        assert_eq!(
            shape_lines("up", &plain),
            ["qdisc add dev up root handle 1: netem limit 100000 delay 0us"]
        );
    }
}
