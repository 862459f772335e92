//! The picture of crates and arrows in docs/design.md, made from the Cargo.toml of each crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use super::{manifests, own_dependencies, root};

const WIDTH: f64 = 860.0;
const BOX_SIZE: (f64, f64) = (92.0, 30.0);
const ROW_HEIGHT: f64 = 92.0;
const MARGIN: f64 = 16.0;
/// How often rows are put in order by what they use.
const SORT_ROUNDS: usize = 12;

/// Crate by crate what it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn uses() -> Uses {
    let entries = manifests();
    let manifests = entries.iter();
    manifests
        .map(|(name, manifest)| (name.clone(), own_dependencies(manifest, "dependencies")))
        .collect()
}

/// Without arrows that others imply.
fn without_implied(uses: &Uses) -> Uses {
    let reaches = |from: &String, to: &String| -> bool {
        let mut pending: Vec<&String> = uses[from].iter().filter(|name| *name != to).collect();
        let mut visited = BTreeSet::new();
        while let Some(current) = pending.pop() {
            if current == to {
                return true;
            }
            if visited.insert(current) {
                pending.extend(&uses[current]);
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
    let mut in_rows: BTreeSet<String> = BTreeSet::new();
    while in_rows.len() < uses.len() {
        let next: Vec<String> = uses
            .iter()
            .filter(|(name, used)| !in_rows.contains(*name) && used.is_subset(&in_rows))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!next.is_empty(), "crates use each other in a circle");
        in_rows.extend(next.iter().cloned());
        rows.push(next);
    }
    rows
}

/// The middle of each box, from the left.
fn box_centers(rows: &[Vec<String>]) -> BTreeMap<&str, f64> {
    let mut box_centers = BTreeMap::new();
    for (line, row) in rows.iter().enumerate() {
        if let ([single], true) = (&row[..], line + 1 < rows.len()) {
            // In the middle, arrows from the highest to those below it would seem to be its own.
            box_centers.insert(single.as_str(), WIDTH * 0.27);
            continue;
        }
        let box_spacing = WIDTH / f64::from(u32::try_from(row.len()).expect("few"));
        for (number, name) in (0_u32..).zip(row) {
            box_centers.insert(name.as_str(), box_spacing * (f64::from(number) + 0.5));
        }
    }
    box_centers
}

/// Puts each row in the order of the mean of those that it is joined with.
fn sort_rows(mut rows: Vec<Vec<String>>, uses: &Uses) -> Vec<Vec<String>> {
    for _ in 0..SORT_ROUNDS {
        let centers: BTreeMap<String, f64> = box_centers(&rows)
            .into_iter()
            .map(|(name, centers)| (name.to_owned(), centers))
            .collect();
        let mean = |name: &String| {
            let dependencies = uses[name].iter();
            let dependents = uses.iter().filter(|(_, used)| used.contains(name));
            let neighbours: Vec<f64> = dependencies
                .chain(dependents.map(|(dependent, _)| dependent))
                .map(|neighbour| centers[neighbour])
                .collect();
            let count = f64::from(u32::try_from(neighbours.len().max(1)).expect("few"));
            neighbours.iter().sum::<f64>() / count
        };
        for row in &mut rows {
            row.sort_by(|a, b| mean(a).total_cmp(&mean(b)).then(a.cmp(b)));
        }
    }
    rows
}

fn svg(uses: &Uses) -> String {
    let arrows = without_implied(uses);
    let rows = sort_rows(rows(uses), &arrows);
    let height = ROW_HEIGHT * f64::from(u32::try_from(rows.len()).expect("few"));
    let line = |name: &str| {
        rows.iter()
            .position(|row| row.iter().any(|row| row == name))
    };
    let top = |name: &str| {
        let line = u32::try_from(line(name).expect("it has a row")).expect("few");
        height - ROW_HEIGHT * (f64::from(line) + 1.0) + MARGIN
    };
    let box_centers = box_centers(&rows);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 1L7 4L0 7z\" \
         fill=\"#567\"/></marker></defs>\n"
    );
    for (from, used) in &arrows {
        for to in used {
            let (x, y) = (box_centers[from.as_str()], top(from) + BOX_SIZE.1);
            let (u, v) = (box_centers[to.as_str()], top(to));
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
    for (name, x) in &box_centers {
        let (left, y) = (x - BOX_SIZE.0 / 2.0, top(name));
        let short = name.strip_prefix("neph-").unwrap_or(name);
        writeln!(
            out,
            "<rect x=\"{left:.0}\" y=\"{y:.0}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"#eef3f8\" \
             stroke=\"#567\"/><text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{short}</text>",
            BOX_SIZE.0,
            BOX_SIZE.1,
            y + 20.0
        )
        .expect("text");
    }
    out + "</svg>\n"
}

#[test]
fn the_crate_diagram_matches_the_manifests() {
    let path = root().join("docs/crates.svg");
    let drawn = svg(&uses());
    if std::env::var_os("NEPH_BLESS").is_some() {
        fs::write(&path, &drawn).expect("it can be written");
    }
    let content = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        content == drawn,
        "docs/crates.svg is old: NEPH_BLESS=1 cargo test -p neph --test architecture draws it"
    );
    let page = fs::read_to_string(root().join("docs/design.md")).expect("the page");
    assert!(page.contains("(crates.svg)"), "docs/design.md shows it");
}
