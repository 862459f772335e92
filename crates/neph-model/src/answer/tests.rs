use super::*;

#[test]
fn every_answer_roundtrips_through_its_name_and_its_code() {
    let numbered = NUMBERED.iter().flat_map(|row| row.codes.clone());
    let numbered = numbered.filter_map(Answer::from_code);
    let answers = numbered.chain(FIXED_ANSWERS.iter().map(|row| row.answer));
    for answer in answers {
        assert_eq!(
            Answer::from_name(&answer.name()),
            Some(answer),
            "{answer:?}"
        );
        assert_eq!(Answer::from_code(answer.code()), Some(answer), "{answer:?}");
        assert!(!answer.description().is_empty());
    }
    // True of what was lost and of what was not sent.
    for answer in [Answer::Closed, Answer::Reset] {
        assert!(!answer.description().contains("reply"), "{answer:?}");
    }
    for unknown in [
        "",
        "http-",
        "http-99",
        "http-1000",
        "ws-close-999",
        "ws-close-x",
        "dns-",
        "dns-rcode-16",
        "lost",
    ] {
        assert_eq!(Answer::from_name(unknown), None, "{unknown}");
    }
}

#[test]
fn each_answer_code_belongs_to_one_protocol() {
    for row in NUMBERED {
        for code in row.codes.clone() {
            assert_eq!((row.code)((row.answer)(code)), Some(code));
        }
    }
    for pair in NUMBERED.windows(2) {
        assert!(pair[0].codes.end() < pair[1].codes.start());
    }
}
