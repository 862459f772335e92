//! How long verifying a link takes.

use neph_model::Span;

use super::exchange::{probing_duration, stream_duration};
use super::max_wait;
use crate::gate::{Shape, Wire};
use crate::topology::Link;

/// How long [`super::verify_until`] takes for such a link at most, if it is measured once: its small
/// packets for each path, its streams, and its delays. A link that does not do as asked is measured
/// twice.
pub fn verification_duration(link: &Link) -> Span {
    let shapes = [&link.a_to_b, &link.b_to_a];
    let waits = max_wait(!link.schedule.is_empty());
    let rounds = shapes.map(|shape| shape.paths.len()).into_iter().max();
    let rounds = rounds.unwrap_or_default().max(1);
    let probing_times = (0..rounds).map(|round| {
        let wires = shapes.map(|shape| wire(shape, round));
        probing_duration(shapes, wires) + waits
    });
    let stream_times = shapes.map(|shape| stream_duration(shape, wire(shape, 0), waits));
    probing_times
        .chain(stream_times)
        .fold(Span::ZERO, |sum, span| sum + span)
}

/// The wire of the path that is measured in this round.
fn wire(shape: &Shape, round: usize) -> &Wire {
    let path = shape.paths.get(round).or_else(|| shape.paths.last());
    path.map_or(&shape.wire, |path| &path.wire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use neph_text::Source;

    fn duration_of(link: &str) -> Span {
        let text = format!(
            "version = 1\n[[site]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n\
             [[site]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n\
             [[link]]\na = \"a\"\nb = \"b\"\n{link}\n"
        );
        let topology = Topology::parse(&Source::new("x", text)).expect("good");
        verification_duration(&topology.links[0])
    }

    #[test]
    fn the_duration_grows_with_paths_slow_rates_and_long_delays() {
        let plain = duration_of("delay = \"2ms\"");
        assert!(
            plain > Span::from_millis(600) && plain < Span::from_secs(1),
            "{plain}"
        );
        let path = "[[link.path]]\nname = \"p\"\ndelay = \"1ms\"\n";
        let paths = duration_of(&format!("{path}{}", path.replace("\"p\"", "\"q\"")));
        assert!(paths.times(10) > plain.times(19), "{paths}");
        let long = duration_of("delay = \"60s\"\nrate = \"1Mbit/s\"");
        assert!(
            long > Span::from_secs(300) && long < Span::from_secs(320),
            "{long}"
        );
    }
}
