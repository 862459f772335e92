//! The picture of crates and arrows in docs/design.md, made from the Cargo.toml of each crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use super::{manifests, ours, root};

const WIDTH: f64 = 860.0;
const BOX: (f64, f64) = (92.0, 30.0);
const ROW: f64 = 92.0;
const MARGIN: f64 = 16.0;
/// How often rows are put in order by what they use.
const ROUNDS: usize = 12;

/// Crate by crate what it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn uses() -> Uses {
    let entries = manifests();
    let manifests = entries.iter();
    manifests
        .map(|(name, manifest)| (name.clone(), ours(manifest, "dependencies")))
        .collect()
}

/// Without arrows that others imply.
fn reduced(uses: &Uses) -> Uses {
    let reaches = |from: &String, to: &String| -> bool {
        let mut open: Vec<&String> = uses[from].iter().filter(|name| *name != to).collect();
        let mut visited = BTreeSet::new();
        while let Some(reached) = open.pop() {
            if reached == to {
                return true;
            }
            if visited.insert(reached) {
                open.extend(&uses[reached]);
            }
        }
        false
    };
    let crates = uses.iter();
    crates
        .map(|(name, used)| {
            let direct = used.iter().filter(|text| !reaches(name, text));
            (name.clone(), direct.cloned().collect())
        })
        .collect()
}

/// The rows, the lowest first: each crate above all that it uses.
fn rows(uses: &Uses) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut placed: BTreeSet<String> = BTreeSet::new();
    while placed.len() < uses.len() {
        let next: Vec<String> = uses
            .iter()
            .filter(|(name, used)| !placed.contains(*name) && used.is_subset(&placed))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!next.is_empty(), "crates use each other in a circle");
        placed.extend(next.iter().cloned());
        rows.push(next);
    }
    rows
}

/// The middle of each box, from the left.
fn places(rows: &[Vec<String>]) -> BTreeMap<&str, f64> {
    let mut places = BTreeMap::new();
    for (line, row) in rows.iter().enumerate() {
        if let ([single], true) = (&row[..], line + 1 < rows.len()) {
            // In the middle, arrows from the highest to those below it would seem to be its own.
            places.insert(single.as_str(), WIDTH * 0.27);
            continue;
        }
        let room = WIDTH / f64::from(u32::try_from(row.len()).expect("few"));
        for (number, name) in (0_u32..).zip(row) {
            places.insert(name.as_str(), room * (f64::from(number) + 0.5));
        }
    }
    places
}

/// Puts each row in the order of the mean of those that it is joined with.
fn ordered(mut rows: Vec<Vec<String>>, uses: &Uses) -> Vec<Vec<String>> {
    for _ in 0..ROUNDS {
        let at: BTreeMap<String, f64> = places(&rows)
            .into_iter()
            .map(|(name, at)| (name.to_owned(), at))
            .collect();
        let mean = |name: &String| {
            let below = uses[name].iter();
            let above = uses.iter().filter(|(_, below)| below.contains(name));
            let joined: Vec<f64> = below
                .chain(above.map(|(above, _)| above))
                .map(|below| at[below])
                .collect();
            let count = f64::from(u32::try_from(joined.len().max(1)).expect("few"));
            joined.iter().sum::<f64>() / count
        };
        for row in &mut rows {
            row.sort_by(|a, b| mean(a).total_cmp(&mean(b)).then(a.cmp(b)));
        }
    }
    rows
}

fn svg(uses: &Uses) -> String {
    let arrows = reduced(uses);
    let rows = ordered(rows(uses), &arrows);
    let height = ROW * f64::from(u32::try_from(rows.len()).expect("few"));
    let line = |name: &str| {
        rows.iter()
            .position(|row| row.iter().any(|row| row == name))
    };
    let top = |name: &str| {
        let line = u32::try_from(line(name).expect("it has a row")).expect("few");
        height - ROW * (f64::from(line) + 1.0) + MARGIN
    };
    let places = places(&rows);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 1L7 4L0 7z\" \
         fill=\"#567\"/></marker></defs>\n"
    );
    for (from, used) in &arrows {
        for to in used {
            let (x, y) = (places[from.as_str()], top(from) + BOX.1);
            let (u, v) = (places[to.as_str()], top(to));
            let bend = (v - y) * 0.45;
            writeln!(
                out,
                "<path d=\"M{x:.0} {y:.0}C{x:.0} {:.0} {u:.0} {:.0} {u:.0} {v:.0}\" fill=\"none\" \
                 stroke=\"#9ab\" stroke-width=\"1.2\" marker-end=\"url(#a)\"/>",
                y + bend,
                v - bend
            )
            .expect("text");
        }
    }
    for (name, x) in &places {
        let (left, y) = (x - BOX.0 / 2.0, top(name));
        let short = name.strip_prefix("neph-").unwrap_or(name);
        writeln!(
            out,
            "<rect x=\"{left:.0}\" y=\"{y:.0}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"#eef3f8\" \
             stroke=\"#567\"/><text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{short}</text>",
            BOX.0,
            BOX.1,
            y + 20.0
        )
        .expect("text");
    }
    out + "</svg>\n"
}

#[test]
fn the_picture_of_the_crates_is_that_of_their_manifests() {
    let path = root().join("docs/crates.svg");
    let made = svg(&uses());
    if std::env::var_os("NEPH_BLESS").is_some() {
        fs::write(&path, &made).expect("it can be written");
    }
    let content = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        content == made,
        "docs/crates.svg is old: NEPH_BLESS=1 cargo test -p neph --test architecture draws it"
    );
    let page = fs::read_to_string(root().join("docs/design.md")).expect("the page");
    assert!(page.contains("(crates.svg)"), "docs/design.md shows it");
}
