//! A translator whose rule is not given, beside hosts that it leaves alone.

use std::fs;

use super::mirrored::{path_of, records};
use super::run;
use super::simulated::{Path, Simulated};
use crate::neph::Place;

/// Hosts 1 and 2 of a record are 11 and 12.
fn of_others(mut record: Vec<u8>) -> Vec<u8> {
    for last in [16 + 15, 16 + 19] {
        record[last] += 10;
    }
    record
}

/// Captures of a path whose first point calls the server 192.0.2.77, and of hosts that have one name.
fn captures(place: &Place, points: usize) -> Vec<String> {
    let path = Path {
        points,
        ..Path::PLAIN
    };
    let other = Place::empty();
    let (plain, _) = Simulated::of(path, 1, 3).write(&other, |_, at| at);
    let path = Path { nat: true, ..path };
    let (files, _) = Simulated::of(path, 100, 5).write(place, |_, at| at);
    for (file, plain) in files.iter().zip(plain) {
        let (header, mut all) = records(path_of(file));
        all.extend(records(path_of(&plain)).1.into_iter().map(of_others));
        all.sort_by_key(|record| {
            let field = |at: usize| record[at..at + 4].try_into().map(u32::from_le_bytes);
            (field(0).expect("four bytes"), field(4).expect("four bytes"))
        });
        fs::write(path_of(file), [header, all.concat()].concat()).expect("a file");
    }
    files
}

#[test]
fn hosts_that_are_not_translated_do_not_hide_those_that_are() {
    let rule = "p0:192.0.2.77=192.0.2.2";
    for points in [2, 4] {
        let place = Place::empty();
        let files = captures(&place, points);
        let ran = run(&files, &["--clock", "same"]);
        let told = format!(
            "neph hops: of p0 599 packets are in p1 with other addresses, and not told: with a translator \
             between them give its rule (--nat '{rule}')\n"
        );
        // A datagram with the number 0 is not known by it.
        assert_eq!((ran.status, &ran.err), (0, &told));
        // In what is kept too.
        let doubt = told.trim_end().replacen("neph hops: ", "In doubt: ", 1);
        assert!(ran.out.contains(&doubt), "{}", ran.out);
        // With it nothing is left to be said.
        let ran = run(&files, &["--clock", "same", "--nat", rule]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        let rows: Vec<&str> = (ran.out.lines().filter(|line| line.starts_with("p0 - p1")))
            .filter(|line| line.contains(" 101 "))
            .collect();
        assert_eq!(rows.len(), 6, "{}", ran.out);
    }
}

#[test]
fn of_two_points_that_show_other_hosts_mostly_it_is_said() {
    let place = Place::empty();
    let files = captures(&place, 2);
    // Numbers that the translator writes too are known nowhere.
    let (header, all) = records(path_of(&files[1]));
    let all: Vec<Vec<u8>> = all
        .into_iter()
        .filter(|record| record[16 + 9] == 17)
        .map(|mut record| {
            if record[16 + 19] < 10 {
                record[16 + 4] ^= 0x40;
            }
            record
        })
        .collect();
    fs::write(path_of(&files[1]), [header, all.concat()].concat()).expect("a file");
    let (header, all) = records(path_of(&files[0]));
    let all: Vec<Vec<u8>> = all
        .into_iter()
        .filter(|record| record[16 + 9] == 17)
        .collect();
    fs::write(path_of(&files[0]), [header, all.concat()].concat()).expect("a file");
    let ran = run(&files, &["--clock", "same"]);
    let told = "neph hops: 200 packets of p0 are of hosts of which p1 shows nothing, and 200 packets of p1 of \
                hosts of which p0 shows nothing: with a translator between them give its rule";
    assert!(ran.err.starts_with(told), "{}", ran.err);
    assert_eq!((ran.status, ran.err.lines().count()), (0, 1), "{}", ran.err);
}
