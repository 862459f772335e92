//! What every refusal of a text owes its reader.

use neph_text::{Problem, Source};

/// There is one, they are few, each lies within the text, says something and obeys no terminal.
pub fn check(source: &Source, problems: &[Problem]) {
    assert!((1..=101).contains(&problems.len()), "{}", problems.len());
    for problem in problems {
        let position = &problem.position;
        assert!(position.line >= 1 && position.column >= 1);
        assert!(
            source.text().get(position.span.clone()).is_some(),
            "{problem:?}"
        );
        assert!(
            !problem.message.is_empty() && !problem.remedy.is_empty(),
            "{problem:?}"
        );
        assert!(
            !problem.to_string().chars().any(char::is_control),
            "{problem:?}"
        );
        assert!(problem.message.len() + problem.remedy.len() < 4096);
    }
    let order = problems.iter().map(|problem| problem.position.span.start);
    assert!(order.is_sorted() || problems.len() == 101);
}
