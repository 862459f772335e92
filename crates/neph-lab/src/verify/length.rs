//! How long verifying a link takes.

use neph_model::Span;

use super::exchange::{stream_duration, trickle_duration};
use super::max_wait;
use crate::gate::{Shape, Wire};
use crate::topology::Link;

/// How long [`super::verify_until`] takes for such a link at most, if it is measured once: its small
/// packets for each path, its streams, and its delays. A link that does not do as asked is measured
/// twice.
pub fn verification_takes(link: &Link) -> Span {
    let shapes = [&link.a_to_b, &link.b_to_a];
    let waits = max_wait(!link.schedule.is_empty());
    let turns = shapes.map(|shape| shape.paths.len()).into_iter().max();
    let turns = turns.unwrap_or_default().max(1);
    let trickles = (0..turns).map(|turn| {
        let wires = shapes.map(|shape| wire(shape, turn));
        trickle_duration(shapes, wires) + waits
    });
    let streams = shapes.map(|shape| stream_duration(shape, wire(shape, 0), waits));
    trickles
        .chain(streams)
        .fold(Span::ZERO, |sum, span| sum + span)
}

/// What the path that is measured in this turn does to packets.
fn wire(shape: &Shape, turn: usize) -> &Wire {
    let path = shape.paths.get(turn).or_else(|| shape.paths.last());
    path.map_or(&shape.wire, |path| &path.wire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use neph_text::Source;

    fn takes(link: &str) -> Span {
        let text = format!(
            "version = 1\n[[site]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n\
             [[site]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n\
             [[link]]\na = \"a\"\nb = \"b\"\n{link}\n"
        );
        let topology = Topology::parse(&Source::new("x", text)).expect("good");
        verification_takes(&topology.links[0])
    }

    #[test]
    fn it_grows_with_paths_slow_rates_and_long_delays() {
        let plain = takes("delay = \"2ms\"");
        assert!(
            plain > Span::from_millis(600) && plain < Span::from_secs(1),
            "{plain}"
        );
        let path = "[[link.path]]\nname = \"p\"\ndelay = \"1ms\"\n";
        let paths = takes(&format!("{path}{}", path.replace("\"p\"", "\"q\"")));
        assert!(paths.times(10) > plain.times(19), "{paths}");
        let long = takes("delay = \"60s\"\nrate = \"1Mbit/s\"");
        assert!(
            long > Span::from_secs(300) && long < Span::from_secs(320),
            "{long}"
        );
    }
}
