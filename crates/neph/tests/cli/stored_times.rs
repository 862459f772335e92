//! At which offset from UTC what is kept is shown.

use serde_json::Value;

use crate::neph::TestFolder;

#[test]
fn lists_and_documents_use_the_requested_utc_offset() {
    let folder = TestFolder::with_campaign();
    let listed =
        serde_json::from_str::<Value>(&folder.neph(["list", "last", "--format", "json"]).out)
            .expect("JSON");
    let nanos = listed[0]["started_unix_ns"].as_i64().expect("a time");
    let id = listed[0]["id"].as_str().expect("a text");
    for (offset, hours) in [("UTC", 0.0), ("+02:00", 2.0), ("-05:30", -5.5)] {
        #[expect(clippy::cast_possible_truncation, reason = "seconds of a day")]
        let later = (hours * 3600.0) as i64;
        let local = (nanos / 1_000_000_000 + later).rem_euclid(86_400);
        let clock = format!(
            "{:02}:{:02}:{:02} UTC",
            local / 3600,
            local / 60 % 60,
            local % 60
        );
        let clock = clock + if offset == "UTC" { "" } else { offset };
        let requested = [vec!["list", "last"], vec!["show", "last"], vec!["show", id]];
        for mut args in requested {
            args.extend(["--utc-offset", offset]);
            let ran = folder.neph(args.clone());
            assert!(
                ran.out.contains(&clock),
                "{args:?} {clock}: {}{}",
                ran.out,
                ran.err
            );
        }
    }
    let ran = folder.neph(["list", "--utc-offset", "CET"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err.contains("write +02:00, -05:30 or UTC"),
        "{}",
        ran.err
    );
}
