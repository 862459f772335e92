//! What the panels show, by their texts and shapes.

use super::*;

const SECOND: i64 = 1_000_000_000;

fn moments(rate: i64, step: i64) -> Vec<ClockMoment> {
    let offset = |second: i64| second * rate + if second >= 30 { step } else { 0 };
    (0..60)
        .map(|second| ClockMoment {
            at: second * SECOND,
            offset: 3 * SECOND + offset(second),
            bound: 8_000,
        })
        .collect()
}

fn texts(figure: &Figure) -> Vec<&str> {
    let texts = figure.scene.marks.iter().filter_map(|mark| match mark {
        Mark::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

const EMPTY_LINE: ClockLine<'static> = ClockLine {
    name: "",
    moments: &[],
    dots: &[],
    steps: &[],
    rate: 0.0,
};

fn draw_lines(lines: &[ClockLine<'_>]) -> Option<Figure> {
    let subject = "b minus a";
    clock_course(&ClockDrawing { subject, lines })
}

#[test]
fn a_drifting_clock_has_a_second_panel_without_the_drift() {
    let drawn = |moments: &[ClockMoment], rate| {
        let line = ClockLine {
            moments,
            rate,
            ..EMPTY_LINE
        };
        draw_lines(&[line]).unwrap()
    };
    let drifting = drawn(&moments(40_000, 0), 40e-6);
    assert!(texts(&drifting).contains(&"from the line of +40.000 ppm, µs"));
    assert!(texts(&drifting).contains(&"offset less +3.000000 s, ms"));
    let still = drawn(&moments(0, 0), 0.01e-6);
    assert!(!texts(&still).iter().any(|text| text.contains("ppm")));
    assert!(still.scene.height < drifting.scene.height);
}

#[test]
fn wall_and_raw_clocks_have_separate_panels_with_the_same_time_axis() {
    let (wall, raw) = (moments(0, 0), moments(40_000, 0));
    let lines = [
        ClockLine {
            name: "wall clocks",
            moments: &wall,
            ..EMPTY_LINE
        },
        ClockLine {
            name: "raw clocks",
            moments: &raw,
            rate: 40e-6,
            ..EMPTY_LINE
        },
    ];
    let figure = draw_lines(&lines).unwrap();
    let texts_of_figure = texts(&figure);
    let count = |wanted: &str| {
        texts_of_figure
            .iter()
            .filter(|text| **text == wanted)
            .count()
    };
    assert_eq!((count("wall clocks"), count("raw clocks")), (1, 1));
    assert_eq!(count("from the line of +40.000 ppm, µs"), 1);
    let is_panel = |mark: &&Mark| matches!(mark, Mark::Clip { .. });
    assert_eq!(figure.scene.marks.iter().filter(is_panel).count(), 3);
    assert_eq!(count("time, s"), 1, "below the last");
}

#[test]
fn lines_break_at_clock_steps() {
    let moments = moments(0, SECOND);
    let at = 29 * SECOND + SECOND / 2;
    let steps = [ClockStepPeriod {
        after: at,
        before: at,
    }];
    let figure = draw_lines(&[ClockLine {
        moments: &moments,
        dots: &[(0, 0)],
        steps: &steps,
        ..EMPTY_LINE
    }]);
    let figure = figure.unwrap();
    let inside = figure.scene.marks.iter().find_map(|mark| match mark {
        Mark::Clip { marks, .. } => Some(marks),
        _ => None,
    });
    let areas = |mark: &&Mark| matches!(mark, Mark::Area { .. });
    assert_eq!(inside.unwrap().iter().filter(areas).count(), 2);
    assert!(texts(&figure).contains(&"a clock was set"));
}

#[test]
fn an_uncertain_clock_step_is_a_band_and_an_exact_one_a_line() {
    let moments = moments(0, SECOND);
    let drawn = |after| {
        let before = 30 * SECOND;
        let steps = [ClockStepPeriod { after, before }];
        let line = ClockLine {
            moments: &moments,
            steps: &steps,
            ..EMPTY_LINE
        };
        draw_lines(&[line]).unwrap()
    };
    let first = |figure: &Figure| {
        let inside = figure.scene.marks.iter().find_map(|mark| match mark {
            Mark::Clip { within, marks } => Some((within.clone(), marks[0].clone())),
            _ => None,
        });
        inside.unwrap()
    };
    let wide = drawn(24 * SECOND);
    let (area, Mark::Rect { rect, .. }) = first(&wide) else {
        panic!("no band");
    };
    let (left, width) = (area[0].x, area[1].x - area[0].x);
    let part = |x: f64| (x - left) / width * 59.0;
    assert!((part(rect.x) - 24.0).abs() < 0.01 && (part(rect.right()) - 30.0).abs() < 0.01);
    assert!(texts(&wide).contains(&"in this time a clock was set"));
    assert!(!texts(&wide).contains(&"a clock was set"));
    let narrow = drawn(30 * SECOND - 1_000_000);
    assert!(matches!(first(&narrow).1, Mark::Line { .. }));
    assert!(texts(&narrow).contains(&"a clock was set"));
    assert!(!texts(&narrow).contains(&"in this time a clock was set"));
}

#[test]
fn a_single_moment_has_no_figure() {
    let line = ClockLine {
        moments: &moments(0, 0)[..1],
        ..EMPTY_LINE
    };
    assert!(draw_lines(&[line]).is_none() && draw_lines(&[EMPTY_LINE]).is_none());
}
