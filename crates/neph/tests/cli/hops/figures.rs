//! The figures of `neph hops`: what is drawn of a path whose losses are known, and where it goes.

use std::fs;

use super::simulated::{PathModel, Simulation};
use super::{last_clock_shifted, run};
use crate::neph::TestFolder;

#[test]
fn figures_name_the_points_and_count_losses() {
    let test_folder = TestFolder::empty();
    let path = PathModel {
        points: 3,
        lost: 20,
        ..PathModel::PLAIN
    };
    let mut simulated = Simulation::of(path, 300, 11);
    let (files, _) = simulated.write(&test_folder, last_clock_shifted(3));
    let folder = test_folder.path("drawn");
    let ran = run(&files, &["--figure", &folder.display().to_string()]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    for name in ["hops-segments", "hops-cdf", "hops-waterfall-1"] {
        for ending in ["svg", "png", "pdf"] {
            let file = folder.join(format!("{name}.{ending}"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
    let drawn = fs::read_to_string(folder.join("hops-waterfall-1.svg")).expect("a drawing");
    let lost = simulated
        .truths
        .iter()
        .filter(|truth| truth.lost_in.is_some());
    let (lost, total) = (lost.count(), simulated.truths.len());
    let expected = format!(
        "of {} packets seen at every point, and 20 of {lost} lost",
        total - lost
    );
    assert!(drawn.contains("p0 → p1 → p2"));
    assert!(drawn.contains(&expected), "{expected}");
}

#[test]
fn an_unusable_figure_folder_is_refused_before_any_output() {
    let test_folder = TestFolder::empty();
    let mut simulated = Simulation::of(PathModel::PLAIN, 5, 3);
    let (files, _) = simulated.write(&test_folder, last_clock_shifted(2));
    fs::write(test_folder.path("taken"), "").expect("a file");
    for (folder, why) in [
        (
            test_folder.text("taken"),
            "a folder is needed, and this is none",
        ),
        (
            test_folder.text("taken/drawn"),
            "no figures can be written there",
        ),
        (test_folder.text("new/x.svg"), "leave the file's name away"),
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
        &["p1=/nowhere.pcap", "--figure", &test_folder.text("a/b")],
    );
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(!test_folder.path("a").exists(), "nothing was drawn");
}
