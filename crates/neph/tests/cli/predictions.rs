//! What a topology will do to protocols, said before anything is up: needs no privilege.

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder};

/// A link of 20 ms each way, and 3 Mbit/s on the way there.
const TWO_SITES: &str = "version = 1\n\
    [[site]]\nname = \"a\"\naddress = \"10.81.0.1/24\"\n\
    [[site]]\nname = \"b\"\naddress = \"10.81.0.2/24\"\n\
    [[link]]\na = \"a\"\nb = \"b\"\ndelay = \"20ms\"\na_to_b = { rate = \"3Mbit/s\" }\n";

fn predict(arguments: &[&str]) -> RunOutput {
    let folder = TestFolder::empty();
    std::fs::write(folder.path("two.toml"), TWO_SITES).expect("a file");
    folder.neph([&["lab", "predict", "two.toml"], arguments].concat())
}

#[test]
fn each_round_trip_of_a_protocol_is_counted() {
    let ran = predict(&["--from", "b", "--to", "a", "--format", "json"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let rows: Value = serde_json::from_str(&ran.out).expect("JSON");
    let rows = rows.as_array().expect("a list");
    let round_trips: Vec<u64> = rows
        .iter()
        .filter_map(|row| row["round_trips"].as_u64())
        .collect();
    assert_eq!(round_trips, [1, 2, 3, 4]);
    for (row, round_trips) in rows.iter().zip(round_trips) {
        // The way back has the slow link: replies of some hundred bytes take their time.
        let small = row["small_ns"].as_u64().expect("a number");
        assert!(
            (round_trips * 40_000_000..round_trips * 42_000_000).contains(&small),
            "{row}"
        );
    }
}

#[test]
fn a_slow_link_is_counted_in_its_direction() {
    let large = |from: &str, to: &str| {
        let ran = predict(&[
            "--from", from, "--to", to, "--size", "10kB", "--format", "csv",
        ]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let nth = ran.out.lines().nth(1).expect("a row").to_owned();
        let cells: Vec<&str> = nth.rsplit(',').collect();
        cells[1].parse::<u64>().expect("nanoseconds")
    };
    // 10,000 bytes in 7 segments with 66 bytes of headers each, at 3 Mbit/s: 27.9 ms.
    assert_eq!(large("a", "b") / 100_000, 678, "40 + 27.9 ms");
    assert_eq!(
        large("b", "a") / 100_000,
        401,
        "40 ms, and the reply's bytes"
    );
}

#[test]
fn invalid_predictions_are_refused() {
    let ran = predict(&["--from", "a", "--to", "a"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(
        ran.err.contains("nothing to predict from 'a' to 'a'"),
        "{}",
        ran.err
    );
    for (arguments, part) in [
        (["--from", "c"], "has no site 'c'; its sites are a, b"),
        (["--size", "1GiB"], "write at most 64 MiB"),
        (["--size", "much"], "'--size <SIZE>'"),
    ] {
        let ran = predict(&arguments);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}
