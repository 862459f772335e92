//! The link that the kernel carries: one veth pair between the sites, with netem (delay, jitter,
//! loss) and tbf (rate, queue in bytes) on both ends. It keeps no record of what it did.

use super::{Laying, LinkKind, mac};
use crate::gate::{Jitter, Shape};
use crate::plan::Operation;

/// Packets that netem may hold: 500 ms at 200,000 packets/s. Its queue must never be the limit.
const LIMIT: u32 = 100_000;

#[derive(Debug)]
pub(crate) struct Netem;

impl LinkKind for Netem {
    fn name(&self) -> &'static str {
        "netem"
    }

    fn lay(&self, laying: &Laying<'_>) -> Vec<Operation> {
        let (number, name, [a, b]) = (laying.number, &laying.link.name, laying.sites);
        let (mac_a, mac_b) = (mac(number, 0), mac(number, 1));
        let line = format!(
            "link add dev {name} address {mac_a} type veth \
             peer name {name} address {mac_b} netns {b}"
        );
        let mut operations = vec![Operation::ip(a, line)];
        for (site, shape) in [(a, &laying.link.a_to_b), (b, &laying.link.b_to_a)] {
            operations.extend(shape_lines(name, shape).map(|line| Operation::tc(site, line)));
        }
        operations
    }

    fn engine_ends(&self, _number: usize) -> Option<[String; 2]> {
        None
    }
}

/// What tc is told about one direction. netem counts time in whole microseconds below 1.22.
fn shape_lines(interface: &str, shape: &Shape) -> impl Iterator<Item = String> {
    let micros = |nanos: i64| (nanos + 500) / 1000;
    let delay = format!("delay {}us", micros(shape.delay.nanos()));
    let jitter = match shape.jitter {
        Jitter::None => String::new(),
        Jitter::Uniform(bound) => format!(" {}us", micros(bound.nanos())),
        Jitter::Normal(deviation) => {
            format!(" {}us distribution normal", micros(deviation.nanos()))
        }
    };
    let loss = match shape.loss.fraction() {
        0.0 => String::new(),
        lost => format!(" loss {:.7}%", lost * 100.0),
    };
    let netem = format!(
        "qdisc add dev {interface} root handle 1: netem limit {LIMIT} {delay}{jitter}{loss}"
    );
    let tbf = shape.rate.map(|rate| {
        let (rate, queue) = (rate.bits_per_second(), shape.queue.bytes());
        format!(
            "qdisc add dev {interface} parent 1: handle 2: tbf rate {rate}bit burst 1600 \
             limit {queue}"
        )
    });
    std::iter::once(netem).chain(tbf)
}

#[cfg(test)]
mod tests {
    use neph_model::{BitRate, ByteSize, Span};

    use super::*;
    use crate::gate::Share;

    #[test]
    fn a_shape_becomes_what_tc_understands() {
        let mut shape = Shape {
            delay: Span::from_micros(1500),
            jitter: Jitter::Normal(Span::from_millis(2)),
            loss: Share::from_billionths(1_000_000),
            rate: Some(BitRate(3_000_000)),
            queue: ByteSize(262_144),
        };
        let lines: Vec<String> = shape_lines("up", &shape).collect();
        assert_eq!(
            lines,
            [
                "qdisc add dev up root handle 1: netem limit 100000 delay 1500us 2000us \
                 distribution normal loss 0.1000000%",
                "qdisc add dev up parent 1: handle 2: tbf rate 3000000bit burst 1600 limit 262144",
            ]
        );
        shape = Shape {
            rate: None,
            jitter: Jitter::None,
            loss: Share::default(),
            ..shape
        };
        let lines: Vec<String> = shape_lines("up", &shape).collect();
        assert_eq!(
            lines,
            ["qdisc add dev up root handle 1: netem limit 100000 delay 1500us"]
        );
    }
}
