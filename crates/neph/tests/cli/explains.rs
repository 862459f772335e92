//! `neph explain`: each warning by its code.

use crate::neph::neph;

#[test]
fn a_warning_is_explained_by_its_code_and_by_its_name() {
    let output = neph(["explain"]);
    assert_eq!((output.status, output.err.as_str()), (0, ""));
    let lines: Vec<&str> = output.out.lines().collect();
    assert_eq!(lines.len(), neph_model::WarningCode::COUNT);
    for line in lines {
        assert!(line.starts_with('W'), "{line}");
        let mut fields = line.split_whitespace();
        let (code, name) = (
            fields.next().expect("a code"),
            fields.next().expect("a name"),
        );
        let by_code = neph(["explain", code]);
        assert_eq!(by_code.status, 0, "{}", by_code.err);
        assert!(
            by_code.out.starts_with(&format!("{code} {name}\n\n")),
            "{}",
            by_code.out
        );
        assert!(by_code.out.contains("\n- Remedy: "), "{}", by_code.out);
        assert_eq!(neph(["explain", name]).out, by_code.out);
    }
    let wrong = neph(["explain", "W12"]);
    let printed = "neph: there is no warning 'W12': did you mean 'W012'? neph explain lists all\n";
    assert_eq!((wrong.status, wrong.err.as_str()), (2, printed));
}
