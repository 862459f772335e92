//! The figures of `neph hops`: what is drawn of a path whose losses are known, and where it goes.

use std::fs;

use super::simulated::{Path, Simulated};
use super::{run, shows};
use crate::neph::Place;

#[test]
fn figures_name_the_points_and_count_what_was_lost() {
    let place = Place::empty();
    let path = Path {
        points: 3,
        lost: 20,
        ..Path::PLAIN
    };
    let mut simulated = Simulated::of(path, 300, 11);
    let (files, _) = simulated.write(&place, shows(3));
    let folder = place.path("drawn");
    let ran = run(&files, &["--figure", &folder.display().to_string()]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    for name in ["hops-segments", "hops-cdf", "hops-waterfall-1"] {
        for ending in ["svg", "png", "pdf"] {
            let file = folder.join(format!("{name}.{ending}"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
    let drawn = fs::read_to_string(folder.join("hops-waterfall-1.svg")).expect("a drawing");
    let lost = simulated.truths.iter().filter(|one| one.lost_in.is_some());
    let (lost, all) = (lost.count(), simulated.truths.len());
    let told = format!(
        "of {} packets that every point saw, and 20 of {lost} lost",
        all - lost
    );
    assert!(drawn.contains("p0 → p1 → p2"));
    assert!(drawn.contains(&told), "{told}");
}

#[test]
fn a_file_is_no_folder_for_figures() {
    let place = Place::empty();
    let mut simulated = Simulated::of(Path::PLAIN, 5, 3);
    let (files, _) = simulated.write(&place, shows(2));
    let file = place.path("taken");
    fs::write(&file, "").expect("a file");
    let ran = run(&files, &["--figure", &file.display().to_string()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("a folder is needed"), "{}", ran.err);
}
