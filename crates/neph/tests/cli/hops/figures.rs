//! The figures of `neph hops`: what is drawn of a path whose losses are known, and where it goes.

use std::fs;

use super::simulated::{Path, Simulated};
use super::{run, shows};
use crate::neph::TestFolder;

#[test]
fn figures_name_the_points_and_count_what_was_lost() {
    let place = TestFolder::empty();
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
    let reported = format!(
        "of {} packets seen at every point, and 20 of {lost} lost",
        all - lost
    );
    assert!(drawn.contains("p0 → p1 → p2"));
    assert!(drawn.contains(&reported), "{reported}");
}

#[test]
fn a_place_where_no_figures_can_be_is_refused_before_anything_is_told() {
    let place = TestFolder::empty();
    let mut simulated = Simulated::of(Path::PLAIN, 5, 3);
    let (files, _) = simulated.write(&place, shows(2));
    fs::write(place.path("taken"), "").expect("a file");
    for (folder, why) in [
        (place.text("taken"), "a folder is needed, and this is none"),
        (place.text("taken/drawn"), "no figures can be written there"),
        (place.text("new/x.svg"), "leave the file's name away"),
        ("/proc".to_owned(), "no figures can be written there"),
    ] {
        let ran = run(&files, &["--figure", &folder]);
        assert_eq!(
            (ran.status, ran.out.as_str()),
            (2, ""),
            "{folder}: {}",
            ran.err
        );
        assert!(ran.err.contains(why), "{folder}: {}", ran.err);
    }
    let ran = run(
        &files[..1],
        &["p1=/nowhere.pcap", "--figure", &place.text("a/b")],
    );
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(!place.path("a").exists(), "nothing was drawn");
}
