//! Figures of packets over capture points, whose delays and losses are known.

use neph_capture::Direction;
use neph_report::{
    Colour, Figure, HopsDelay, HopsDrawing, HopsPacket, HopsProtocol, Mark, Point, hops, svg,
};

use crate::synthetic::hops::PathModel;
use crate::text_layout::{all_texts, assert_no_overlap, texts};

const fn path(points: usize, packets: usize, has_loss: bool) -> PathModel {
    PathModel {
        points,
        packets,
        has_loss,
    }
}

fn draw_figures(path: PathModel) -> Vec<Figure> {
    path.generate().with_drawing(hops)
}

/// One packet there for each list of delays in microseconds, one each second; the bound is 1 us.
fn draw_packets(delays: &[&[Option<i64>]]) -> Vec<Figure> {
    draw_packets_between(["a", "b", "c"], delays)
}

/// The same between points of these names.
fn draw_packets_between(names: [&str; 3], delays: &[&[Option<i64>]]) -> Vec<Figure> {
    let known = |delay: &Option<i64>| {
        delay.map_or(HopsDelay::Lost, |micros| HopsDelay::Known {
            delay: micros * 1000,
            bound: 1000,
        })
    };
    let delays: Vec<Vec<HopsDelay>> = delays
        .iter()
        .map(|of_packet| of_packet.iter().map(known).collect())
        .collect();
    let packets: Vec<HopsPacket<'_>> = (0..)
        .zip(&delays)
        .map(|(second, segments)| HopsPacket {
            first_seen: second * 1_000_000_000,
            direction: Direction::Forward,
            protocol: HopsProtocol::Udp,
            segments,
            round_trip: None,
        })
        .collect();
    let points = delays.first().map_or(0, Vec::len) + 1;
    let points: Vec<String> = names[..points]
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    hops(&HopsDrawing {
        points: &points,
        packets: &packets,
    })
}

fn figure_texts(figures: &[Figure], name: &str) -> Vec<String> {
    let of_kind = figures.iter().filter(|figure| figure.name == name);
    let texts = of_kind.flat_map(|figure| texts(&figure.scene));
    texts.map(|(_, text)| text.text).collect()
}

#[test]
fn a_waterfall_of_a_hundred_rows_has_two_pages_and_the_others_one() {
    let figures = draw_figures(path(4, 2_000, true));
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    let expected = [
        "hops-segments",
        "hops-cdf",
        "hops-waterfall-1",
        "hops-waterfall-2",
    ];
    assert_eq!(names, expected);
}

#[test]
fn no_text_touches_another_at_two_to_eight_points() {
    for points in [2, 4, 5, 8] {
        for packets in [1, 2, 10, 5_000] {
            for has_loss in [false, true] {
                assert_no_overlap(&draw_figures(path(points, packets, has_loss)));
            }
        }
    }
}

#[test]
fn many_packets_over_eight_points_take_no_more_room_than_some() {
    for figure in draw_figures(path(8, 60_000, true)) {
        let bytes = svg(&figure.scene, &figure.name, &figure.title).len();
        assert!(bytes < 500_000, "{}: {bytes} bytes", figure.name);
    }
}

#[test]
fn the_figures_of_ten_packets_in_words() {
    insta::assert_snapshot!(all_texts(&draw_figures(path(2, 10, false))));
}

#[test]
fn the_figures_of_four_points_in_words() {
    insta::assert_snapshot!(all_texts(&draw_figures(path(4, 400, true))));
}

#[test]
fn the_figures_of_eight_points_in_words() {
    insta::assert_snapshot!(all_texts(&draw_figures(path(8, 40, true))));
}

#[test]
fn unknown_delays_are_not_drawn() {
    assert!(draw_figures(path(2, 0, false)).is_empty());
    let points = ["a".to_owned(), "b".to_owned()];
    let packets = [HopsPacket {
        first_seen: 0,
        direction: Direction::Forward,
        protocol: HopsProtocol::Tcp,
        segments: &[HopsDelay::Unknown],
        round_trip: None,
    }];
    let nothing = HopsDrawing {
        points: &points,
        packets: &packets,
    };
    assert!(hops(&nothing).is_empty());
}

#[test]
fn a_capture_of_losses_only_is_drawn_without_a_distribution() {
    let figures = draw_packets(&[&[None], &[None]]);
    let kinds: Vec<&str> = figures.iter().map(|figure| figure.kind).collect();
    assert_eq!(kinds, ["hops-segments", "hops-waterfall"]);
    assert!(figure_texts(&figures, "hops-segments").contains(&"2 lost (100 %)".to_owned()));
    assert!(!figures[0].caption.contains("clock"), "no delay, no bound");
}

#[test]
fn the_slowest_comes_first_and_a_loss_ends_where_it_was_lost() {
    let figures = draw_packets(&[
        &[Some(10), Some(20)],
        &[Some(500), Some(20)],
        &[Some(15), None],
    ]);
    let texts = figure_texts(&figures, "hops-waterfall");
    let at = |wanted: &str| texts.iter().position(|word| word == wanted).unwrap();
    assert!(at("1.000000 s") < at("0.000000 s"));
    assert!(at("0.000000 s") < at("2.000000 s"));
    assert!(texts.contains(&"lost, b → c".to_owned()), "{texts:?}");
    assert!(texts.contains(&"520 µs".to_owned()), "{texts:?}");
}

#[test]
fn a_delay_within_its_error_bound_is_marked_in_the_caption() {
    let caption_contains = |figures: &[Figure], part: &str| figures[0].caption.contains(part);
    let shorter = draw_packets(&[&[Some(0)], &[Some(0)]]);
    assert!(caption_contains(&shorter, "Pale"), "{}", shorter[0].caption);
    let longer = draw_packets(&[&[Some(40)], &[Some(50)]]);
    assert!(!caption_contains(&longer, "Pale"), "{}", longer[0].caption);
    for figure in shorter.iter().chain(&longer) {
        assert!(figure.caption.contains("±"), "{}", figure.caption);
    }
}

#[test]
fn delays_below_nothing_are_counted_where_the_axis_cannot_show_them() {
    let mut delays: Vec<Vec<Option<i64>>> = (1..400).map(|nth| vec![Some(nth * nth)]).collect();
    delays.push(vec![Some(-1)]);
    let lists: Vec<&[Option<i64>]> = delays.iter().map(Vec::as_slice).collect();
    let texts = figure_texts(&draw_packets(&lists), "hops-cdf");
    let outside = texts.iter().find(|word| word.contains("below, min"));
    assert!(outside.unwrap().contains("−1.0 µs"), "{outside:?}");
}

#[test]
fn many_losses_leave_room_for_the_slowest() {
    let mut delays: Vec<Vec<Option<i64>>> = vec![vec![None]; 5_000];
    delays.extend((1..=200).map(|micros| vec![Some(micros)]));
    let lists: Vec<&[Option<i64>]> = delays.iter().map(Vec::as_slice).collect();
    let figures = draw_packets(&lists);
    let first = figure_texts(&figures, "hops-waterfall-1");
    let actual = "a → b; the slowest 80 of 200 packets seen at every point, and 20 of 5000 lost, spread over the time";
    assert!(first.contains(&actual.to_owned()), "{first:?}");
    let second = figure_texts(&figures, "hops-waterfall-2");
    let lost = second.iter().filter(|word| word.starts_with("lost,"));
    assert_eq!(lost.count(), 20);
}

#[test]
fn a_far_slower_packet_is_drawn_off_the_axis_with_its_value() {
    let mut delays: Vec<Vec<Option<i64>>> = vec![vec![Some(100)]; 60];
    let lists = |delays: &[Vec<Option<i64>>]| {
        let lists: Vec<&[Option<i64>]> = delays.iter().map(Vec::as_slice).collect();
        draw_packets(&lists)
    };
    let has_triangle = |figures: &[Figure]| {
        let slowest = figures
            .iter()
            .find(|figure| figure.name == "hops-waterfall-1");
        slowest.is_some_and(|figure| figure.caption.contains("Triangle: "))
    };
    assert!(!has_triangle(&lists(&delays)));
    delays[30] = vec![Some(50_000)];
    let figures = lists(&delays);
    assert!(has_triangle(&figures));
    let actual = figure_texts(&figures, "hops-waterfall-1");
    assert!(actual.contains(&"50.00 ms".to_owned()), "{actual:?}");
}

#[test]
fn points_of_one_clock_have_no_bound() {
    let points = ["a".to_owned(), "b".to_owned()];
    let known = [HopsDelay::Known {
        delay: 5_000,
        bound: 0,
    }];
    let packets = [HopsPacket {
        first_seen: 0,
        direction: Direction::Reverse,
        protocol: HopsProtocol::Icmp,
        segments: &known,
        round_trip: None,
    }];
    let figures = hops(&HopsDrawing {
        points: &points,
        packets: &packets,
    });
    for figure in &figures {
        assert!(figure.caption.contains("one clock"), "{}", figure.caption);
        let texts = figure_texts(&figures, &figure.name);
        assert!(!texts.iter().any(|word| word.contains('±')), "{texts:?}");
    }
}

/// Packets of some microseconds whose bound is milliseconds.
#[test]
fn delays_far_below_their_bound_are_drawn_without_a_line() {
    let delays: Vec<(i64, i64)> = (0..100)
        .map(|nth| ((nth - 20) * 1_000, 17_340_000))
        .collect();
    let figures = draw_two_points(&delays);
    let segments = figure_texts(&figures, "hops-segments");
    let actual = "pale: known to ± 17.34 ms only".to_owned();
    assert!(segments.contains(&actual), "{segments:?}");
    let cdf = figure_texts(&figures, "hops-cdf");
    assert!(
        cdf.contains(&"n 100 · only ± 17.34 ms".to_owned()),
        "{cdf:?}"
    );
    // No axis goes below nothing, and it is as long as delays may be.
    assert!(!cdf.iter().any(|word| word.starts_with('−')), "{cdf:?}");
    let figure = figures.iter().find(|figure| figure.kind == "hops-cdf");
    let figure = figure.expect("a distribution");
    assert!(
        figure.caption.contains("without a line"),
        "{}",
        figure.caption
    );
    assert_no_overlap(&figures);
}

/// As many packets there as there are delays, between two points, in nanoseconds with their bounds.
fn draw_two_points(delays: &[(i64, i64)]) -> Vec<Figure> {
    let known = |(delay, bound): &(i64, i64)| {
        [HopsDelay::Known {
            delay: *delay,
            bound: *bound,
        }]
    };
    let delays: Vec<[HopsDelay; 1]> = delays.iter().map(known).collect();
    let packets: Vec<HopsPacket<'_>> = (0..)
        .zip(&delays)
        .map(|(second, segments)| HopsPacket {
            first_seen: second * 1_000_000_000,
            direction: Direction::Forward,
            protocol: HopsProtocol::Udp,
            segments,
            round_trip: None,
        })
        .collect();
    hops(&HopsDrawing {
        points: &["a".to_owned(), "b".to_owned()],
        packets: &packets,
    })
}

fn find_figure<'a>(figures: &'a [Figure], kind: &str) -> &'a Figure {
    let mut of_kind = figures.iter().filter(|figure| figure.kind == kind);
    of_kind.next().expect("drawn")
}

#[test]
fn a_rows_thin_line_is_as_long_as_its_bounds_and_ends_on_the_axis() {
    // 29.42 ms ± 3.9 ms, and others that are as slow.
    let delays: Vec<(i64, i64)> = (0..30).map(|nth| (29_420_000 - nth, 3_900_000)).collect();
    let figures = draw_two_points(&delays);
    let waterfall = find_figure(&figures, "hops-waterfall");
    assert!(
        !waterfall.caption.contains("Triangle: "),
        "{}",
        waterfall.caption
    );
    let thin: Vec<(f64, f64)> = clipped_lines(&waterfall.scene.marks)
        .into_iter()
        .filter(|(_, points)| points[0].y.to_bits() == points[1].y.to_bits())
        .map(|(right, points)| (right, points[1].x))
        .collect();
    assert_eq!(thin.len(), 30, "one for each row");
    for (right, end) in thin {
        assert!(end < right, "it ends at {end}, the axis at {right}");
    }
    // Where no axis has room for bounds and bars, the cut line is told.
    let wide = draw_two_points(&[(1_000, 9_000_000); 3]);
    let caption = &find_figure(&wide, "hops-waterfall").caption;
    assert!(caption.contains("thin line continues beyond"), "{caption}");
}

/// Lines that are cut at the edge of an axis: where that is, and their points.
fn clipped_lines(marks: &[Mark]) -> Vec<(f64, Vec<Point>)> {
    let cut = marks.iter().filter_map(|mark| match mark {
        Mark::Clip { within, marks } => {
            let right = within.iter().map(|corner| corner.x).fold(0.0, f64::max);
            Some((right, lines(marks, Colour::INK)))
        }
        _ => None,
    });
    cut.flat_map(|(right, lines)| lines.into_iter().map(move |points| (right, points)))
        .collect()
}

#[test]
fn a_nanosecond_is_short_and_not_nothing() {
    let delays: Vec<(i64, i64)> = (0..300)
        .map(|nth| (if nth % 3 == 0 { 30_000_000_000 } else { 1 }, 0))
        .collect();
    let figures = draw_two_points(&delays);
    let cdf = figure_texts(&figures, "hops-cdf");
    let outside = cdf.iter().find(|word| word.contains("below, min"));
    assert!(
        outside.is_some_and(|actual| actual.contains("min 1 ns")),
        "{cdf:?}"
    );
    let caption = &find_figure(&figures, "hops-cdf").caption;
    assert!(!caption.contains("not above zero"), "{caption}");
    assert!(
        caption.contains("Values below are left of the axis."),
        "{caption}"
    );
}

#[test]
fn segments_whose_names_are_too_long_stay_apart() {
    let names = ["one", "two", "three"].map(|nth| {
        format!("a host of the row in which rack {nth} stands, by its interface ens192")
    });
    let [a, b, c] = names.each_ref().map(String::as_str);
    let between: &[Option<i64>] = &[Some(5), Some(7)];
    let figures = draw_packets_between([a, b, c], &[between, &[Some(6), None], &[None, None]]);
    let cdf = figure_texts(&figures, "hops-cdf");
    let curves: Vec<&String> = cdf.iter().filter(|text| text.contains('…')).collect();
    assert_eq!(curves.len(), 2, "{cdf:?}");
    assert_ne!(curves[0], curves[1]);
    assert_no_overlap(&figures);
}

#[test]
fn the_legend_has_the_cross_that_lost_packets_have() {
    let figures = draw_packets(&[&[Some(10), Some(20)], &[Some(15), None]]);
    let waterfall = figures
        .iter()
        .find(|figure| figure.kind == "hops-waterfall");
    let arms = lines(&waterfall.expect("drawn").scene.marks, Colour::ALARM);
    // One cross in the legend, one in the row.
    assert_eq!(arms.len(), 4, "{arms:?}");
    let is_slanted = |arm: &Vec<Point>| {
        let (from, to) = (&arm[0], &arm[1]);
        ((to.x - from.x).abs() - (to.y - from.y).abs()).abs() < 1e-9
    };
    assert!(arms.iter().all(is_slanted), "{arms:?}");
}

fn lines(marks: &[Mark], colour: Colour) -> Vec<Vec<Point>> {
    let of_kind = marks.iter().flat_map(|mark| match mark {
        Mark::Line { points, stroke } if stroke.colour == colour => vec![points.clone()],
        Mark::Clip { marks, .. } => lines(marks, colour),
        _ => Vec::new(),
    });
    of_kind.collect()
}
