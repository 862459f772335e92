//! Colours that people with colour vision deficiency can distinguish and that differ in lightness for
//! grey print. Stages: the network family (window, queue, network) is blue, the peer's orange, the client
//! host's green, connection setup purple. Within a family, darker means nearer to the network.
//! Lines: the palette of Okabe and Ito (2008), then the same with dashes.

use neph_model::{Stage, StageSet};

use crate::scene::{Colour, Fill, Mark, Point, Stroke};

/// The colour of a stage, the same in every figure.
pub(crate) const fn stage(stage: Stage) -> Colour {
    Colour::hex(match stage {
        Stage::Lateness => 0x00c7_e5bf,
        Stage::Connect => 0x00c9_bfe3,
        Stage::Handshake => 0x0077_5fae,
        Stage::Compose => 0x0058_a868,
        Stage::SendWindow => 0x00b5_daf0,
        Stage::SendQueue => 0x0056_b4e9,
        Stage::Network => 0x0000_5a94,
        Stage::PeerKernel => 0x00fa_d7a0,
        Stage::PeerApp => 0x00d5_5e00,
        Stage::PeerSend => 0x00f0_a63c,
        Stage::OwnKernel => 0x001b_7a4b,
    })
}

/// The colour of a ledger entry; several stages that are reported as one take the colour of the one
/// that is usually the longest.
pub(crate) fn entry(set: StageSet) -> Colour {
    const BY_TYPICAL_LENGTH: [Stage; 5] = [
        Stage::Network,
        Stage::PeerApp,
        Stage::Handshake,
        Stage::Connect,
        Stage::SendWindow,
    ];
    let longest_stage = BY_TYPICAL_LENGTH
        .into_iter()
        .find(|stage| set.contains(*stage));
    longest_stage
        .or_else(|| set.iter().next())
        .map_or(Colour::AXIS, stage)
}

/// An area in a ledger entry's colour, hatched where stages are merged.
pub(crate) fn entry_area(set: StageSet, points: Vec<Point>) -> Vec<Mark> {
    let fill = Fill::solid(entry(set));
    if !set.is_merged() {
        return vec![Mark::Area { points, fill }];
    }
    let hatch = hatch(&points);
    vec![
        Mark::Area {
            points: points.clone(),
            fill,
        },
        Mark::Clip {
            within: points,
            marks: hatch,
        },
    ]
}

/// White lines from lower left to upper right over the bounding box of a polygon.
fn hatch(points: &[Point]) -> Vec<Mark> {
    const DISTANCE: f64 = 7.0;
    let fold = |pick: fn(&Point) -> f64, join: fn(f64, f64) -> f64, start: f64| {
        points.iter().map(pick).fold(start, join)
    };
    let (left, right) = (
        fold(|p| p.x, f64::min, f64::INFINITY),
        fold(|p| p.x, f64::max, f64::NEG_INFINITY),
    );
    let (top, base) = (
        fold(|p| p.y, f64::min, f64::INFINITY),
        fold(|p| p.y, f64::max, f64::NEG_INFINITY),
    );
    let height = base - top;
    let mut lines = Vec::new();
    // Anchored to the page, so that neighbouring areas are hatched in step.
    let mut x = ((left - height + base) / DISTANCE).floor() * DISTANCE - base;
    while x < right {
        let (from, to) = (Point::new(x, base), Point::new(x + height, top));
        lines.push(Mark::line(from, to, Stroke::solid(Colour::WHITE, 1.0)));
        x += DISTANCE;
    }
    lines
}

/// Retransmissions of what was lost, in every figure over time.
pub(crate) const RETRANSMISSION: Colour = Colour::hex(0x0077_5fae);
/// Those of what the peer had received already.
pub(crate) const SPURIOUS: Colour = Colour::hex(0x00b9_a8d8);

const LINES: [u32; 7] = [
    0x0000_72b2,
    0x00d5_5e00,
    0x0000_9e73,
    0x00cc_79a7,
    0x00e6_9f00,
    0x0056_b4e9,
    0x0022_2a35,
];

/// The line of the n-th of several things that are compared.
pub(crate) fn line(index: usize) -> Stroke {
    let stroke = Stroke::solid(line_colour(index), 1.6);
    match (index / LINES.len()) % 3 {
        0 => stroke,
        1 => stroke.dashed(5.0, 2.5),
        _ => stroke.dashed(1.6, 2.0),
    }
}

/// Its colour.
pub(crate) fn line_colour(index: usize) -> Colour {
    Colour::hex(LINES[index % LINES.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the ledger stacks onto each other has to differ in grey print.
    #[test]
    fn neighbouring_stages_differ_in_lightness() {
        let stages = [
            Stage::Lateness,
            Stage::Connect,
            Stage::Handshake,
            Stage::SendWindow,
            Stage::SendQueue,
            Stage::Network,
            Stage::PeerKernel,
            Stage::PeerApp,
            Stage::PeerSend,
            Stage::OwnKernel,
        ];
        for pair in stages.windows(2) {
            let difference = stage(pair[0]).lightness() - stage(pair[1]).lightness();
            assert!(difference.abs() > 0.03, "{pair:?}: {difference}");
        }
        let network = stage(Stage::Network).lightness();
        assert!(stage(Stage::SendQueue).lightness() - network > 0.2);
        assert!(stage(Stage::PeerKernel).lightness() - network > 0.2);
    }

    #[test]
    fn merged_stages_are_hatched() {
        let square = vec![
            Point::new(0.0, 0.0),
            Point::new(20.0, 0.0),
            Point::new(20.0, 9.0),
        ];
        let network_only = StageSet::only(Stage::Network);
        assert_eq!(entry_area(network_only, square.clone()).len(), 1);
        let merged = entry_area(network_only.with(Stage::PeerSend), square);
        assert!(matches!(&merged[1], Mark::Clip { marks, .. } if marks.len() > 3));
    }
}
