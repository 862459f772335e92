use super::*;

#[test]
fn every_answer_is_found_again_by_its_name_and_by_its_code() {
    let numbered = [100, 200, 404, 999].map(Answer::HttpStatus);
    let closed = [1000, 1011, 4999].map(Answer::WebSocketClose);
    let named = NAMED.iter().map(|(answer, ..)| *answer);
    let dns = (5000..5032).chain(6000..6256).filter_map(Answer::from_code);
    let all = numbered.into_iter().chain(closed).chain(named).chain(dns);
    for answer in all {
        assert_eq!(Answer::named(&answer.name()), Some(answer), "{answer:?}");
        assert_eq!(Answer::from_code(answer.code()), Some(answer), "{answer:?}");
        assert!(!answer.words().is_empty());
    }
    // True of what was lost and of what was not sent.
    for answer in [Answer::Closed, Answer::Reset] {
        assert!(!answer.words().contains("reply"), "{answer:?}");
    }
    for wrong in [
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
        assert_eq!(Answer::named(wrong), None, "{wrong}");
    }
}
