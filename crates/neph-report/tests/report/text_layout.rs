//! What a figure says, in words, and whether it can be read.

use std::collections::BTreeMap;

use neph_report::{Figure, Mark, Rect, Scene, Text, TextDirection};

/// Texts with the boxes that they fill.
pub(crate) fn texts(scene: &Scene) -> Vec<(Rect, Text)> {
    fn collect(marks: &[Mark], texts_found: &mut Vec<Text>) {
        for mark in marks {
            match mark {
                Mark::Text(text) => texts_found.push(text.clone()),
                Mark::Clip { marks, .. } => collect(marks, texts_found),
                _ => {}
            }
        }
    }
    let mut texts = Vec::new();
    collect(&scene.marks, &mut texts);
    let boxed = texts.into_iter().map(|text| {
        let (length, height) = (text.width(), text.size * 0.72);
        let anchor_offset = match text.anchor {
            neph_report::Anchor::Start => 0.0,
            neph_report::Anchor::Middle => length / 2.0,
            neph_report::Anchor::End => length,
        };
        let position = text.position;
        let rect = match text.direction {
            TextDirection::Horizontal => {
                let left = position.x - anchor_offset;
                Rect::new(left, position.y - height, length, height)
            }
            TextDirection::Vertical => {
                let top = position.y - length + anchor_offset;
                Rect::new(position.x - height, top, height, length)
            }
        };
        (rect, text)
    });
    boxed.collect()
}

fn overlaps(a: &Rect, b: &Rect) -> bool {
    a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom()
}

/// Panics where a text lies on another or beyond the page.
pub(crate) fn assert_no_overlap(figures: &[Figure]) {
    for figure in figures {
        let texts = texts(&figure.scene);
        for (index, (rect, text)) in texts.iter().enumerate() {
            let inside = rect.x >= 0.0
                && rect.y >= 0.0
                && rect.right() <= figure.scene.width
                && rect.bottom() <= figure.scene.height;
            assert!(inside, "{}: {:?} leaves the page", figure.name, text.text);
            for (other, second) in &texts[index + 1..] {
                let (a, b) = (&text.text, &second.text);
                assert!(!overlaps(rect, other), "{}: {a:?} on {b:?}", figure.name);
            }
        }
    }
}

/// Every figure's words and how many marks of each kind it has: what a change of a figure changes.
pub(crate) fn all_texts(figures: &[Figure]) -> String {
    fn counted<'a>(
        marks: &'a [Mark],
        counts: &mut BTreeMap<&'static str, usize>,
        printed_text: &mut Vec<&'a str>,
    ) {
        for mark in marks {
            let kind = match mark {
                Mark::Line { .. } => "line",
                Mark::Area { .. } => "area",
                Mark::Rect { .. } => "rect",
                Mark::Cells { .. } => "cells",
                Mark::Disc { .. } => "disc",
                Mark::Text(text) => {
                    printed_text.push(&text.text);
                    "text"
                }
                Mark::Clip { marks, .. } => {
                    counted(marks, counts, printed_text);
                    "clip"
                }
            };
            *counts.entry(kind).or_default() += 1;
        }
    }
    let actual = figures.iter().map(|figure| {
        let (mut marks, mut printed_text) = (BTreeMap::new(), Vec::new());
        counted(&figure.scene.marks, &mut marks, &mut printed_text);
        format!("{}: {marks:?}\n{}\n", figure.name, printed_text.join(" | "))
    });
    actual.collect()
}
