//! The part of a file that a mistake is shown with: a few lines, cut and without hidden characters.
//! Neither a line of 10 MB nor an escape sequence reaches the terminal.

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use neph_model::{mask_credentials, without_secrets};
use neph_text::{PrintableText, Problem, Source, visible};

/// Number of characters that are shown before and after a mistake in its line.
const CONTEXT_CHARS: usize = 120;
/// Maximum number of lines of a mistake that are shown; of a longer one, the first.
const MAX_LINES: usize = 8;
/// Number of bytes of a line that are examined before and after a mistake.
const CONTEXT_BYTES: usize = 4096;

/// Lines of a file as they are shown, and the position of the mistake in them.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    text: String,
    /// Lines of the file before the first one, and characters before the mistake in its own.
    lines_before: usize,
    column: usize,
    marked: SourceSpan,
}

impl Excerpt {
    /// Of `problem` in `source`, with a line before and after it.
    #[must_use]
    pub fn of(source: &Source, problem: &Problem) -> Self {
        let public = without_secrets(source.text());
        let source_text = public.as_str();
        let span = &problem.position.span;
        let begin = source_text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end_of = |from: usize| {
            source_text[from..]
                .find('\n')
                .map_or(source_text.len(), |at| from + at)
        };
        let mut mark_end = span.end.max(span.start);
        if source_text[span.start..mark_end].matches('\n').count() >= MAX_LINES {
            mark_end = end_of(span.start);
        }
        let end = end_of(mark_end);

        let mut text = String::new();
        let mut lines_before = problem.position.line - 1;
        if begin > 0 {
            let previous_begin = source_text[..begin - 1].rfind('\n').map_or(0, |at| at + 1);
            text.push_str(&shown_line(&source_text[previous_begin..begin - 1], 0).0);
            text.push('\n');
            lines_before -= 1;
        }
        let mut mark = None;
        let mut line_begin = begin;
        for line in source_text[begin..end].split('\n') {
            let from = span.start.saturating_sub(line_begin).min(line.len());
            let until = mark_end.saturating_sub(line_begin).min(line.len());
            let (part_text, start) = shown_line(line, from);
            let start = text.len() + start;
            let length = marked_length(
                &line[from.min(until)..until],
                text.len() + part_text.len() - start,
            );
            let (_, mark_until) = mark.get_or_insert((start, start));
            *mark_until = (start + length).max(*mark_until);
            text.push_str(&part_text);
            text.push('\n');
            line_begin += line.len() + 1;
        }
        if end + 1 < source_text.len() {
            text.push_str(&shown_line(&source_text[end + 1..end_of(end + 1)], 0).0);
            text.push('\n');
        }
        let (start, mark_until) = mark.unwrap_or_default();
        Self {
            name: PrintableText::text(source.name()).into(),
            text,
            lines_before,
            column: problem.position.column - 1,
            marked: (start, (mark_until - start).max(1)).into(),
        }
    }

    /// What is marked in it.
    #[must_use]
    pub fn label(&self) -> LabeledSpan {
        LabeledSpan::new_with_span(None, self.marked)
    }
}

/// How long the escaped form of what is marked in a line is, of which `room` bytes are shown.
fn marked_length(marked: &str, room: usize) -> usize {
    let length = char_boundary_below(marked, CONTEXT_BYTES);
    visible(&marked[..length]).len().min(room)
}

/// A line as it is shown around the byte `at`, and where that byte is in it.
fn shown_line(line: &str, at: usize) -> (String, usize) {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let at = at.min(line.len());
    let from = char_boundary_below(line, at.saturating_sub(CONTEXT_BYTES));
    let to = char_boundary_below(line, at.saturating_add(CONTEXT_BYTES));
    // The mask has as many bytes as before, so that positions are unchanged.
    let masked = mask_credentials(&line[from..to]);
    let (before, after) = masked.split_at(at - from);
    let skipped_chars = before.chars().count().saturating_sub(CONTEXT_CHARS);
    let ellipsis = |is_cut: bool| if is_cut { "..." } else { "" };
    let part: String = before.chars().skip(skipped_chars).collect();
    let mut text = format!(
        "{}{}",
        ellipsis(skipped_chars > 0 || from > 0),
        visible_text(&part)
    );
    let start = text.len();
    let part: String = after.chars().take(CONTEXT_CHARS).collect();
    text.push_str(&visible_text(&part));
    text.push_str(ellipsis(part.len() < after.len() || to < line.len()));
    (text, start)
}

/// Without hidden characters; a tab is a space, as it moves what follows by a width that only the
/// terminal knows.
fn visible_text(text: &str) -> String {
    visible(&text.replace('\t', " ")).into_owned()
}

/// The greatest boundary between characters up to `at`.
fn char_boundary_below(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let contents = self.text.read_span(span, before, after)?;
        let column = if before == 0 {
            self.column
        } else {
            contents.column()
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            contents.data(),
            *contents.span(),
            self.lines_before + contents.line(),
            column,
            contents.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Position;

    use super::*;

    fn excerpt_of(text: &str, span: std::ops::Range<usize>) -> Excerpt {
        let source = Source::new("plan.toml", text);
        let position: Position = source.position(span);
        let problem = Problem {
            file: "plan.toml".to_owned(),
            position,
            message: "wrong".to_owned(),
            remedy: "mend it".to_owned(),
        };
        Excerpt::of(&source, &problem)
    }

    fn marked_text(excerpt: &Excerpt) -> &str {
        let start = excerpt.marked.offset();
        &excerpt.text[start..start + excerpt.marked.len()]
    }

    #[test]
    fn the_line_before_and_after_are_shown_too() {
        let excerpt = excerpt_of("a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n", 12..13);
        assert_eq!(excerpt.text, "b = 2\nc = 3\nd = 4\n");
        assert_eq!((marked_text(&excerpt), excerpt.lines_before), ("c", 1));
    }

    #[test]
    fn a_line_of_megabytes_is_cut_around_the_mistake() {
        let text = format!("{}HERE{}\n", "x".repeat(5_000_000), "y".repeat(5_000_000));
        let excerpt = excerpt_of(&text, 5_000_000..5_000_004);
        assert!(
            excerpt.text.len() < 2 * CONTEXT_CHARS + 10,
            "{}",
            excerpt.text.len()
        );
        assert_eq!((marked_text(&excerpt), excerpt.column), ("HERE", 5_000_000));
        assert!(excerpt_of(&text, 0..text.len()).text.len() < 2 * CONTEXT_CHARS);
    }

    #[test]
    fn escapes_are_written_out_and_the_mark_stays_in_place() {
        let excerpt = excerpt_of("\t\x1b[2J bad\u{202e} = 1\n", 6..12);
        assert_eq!(excerpt.text, " \\u001b[2J bad\\u202e = 1\n");
        assert_eq!(marked_text(&excerpt), "bad\\u202e");
    }

    #[test]
    fn only_the_first_line_of_a_long_mistake_is_marked() {
        let text = "[t]\n".repeat(100_000);
        let excerpt = excerpt_of(&text, 0..text.len());
        assert_eq!(
            (excerpt.text.as_str(), marked_text(&excerpt)),
            ("[t]\n[t]\n", "[t]")
        );
        let short_excerpt = excerpt_of("[t]\na = 1\nb = 2\n", 0..9);
        assert_eq!(marked_text(&short_excerpt), "[t]\na = 1");
    }

    #[test]
    fn credentials_stay_masked() {
        let text = "target = \"http://user:secret@host/\"\n";
        assert!(!excerpt_of(text, 0..6).text.contains("secret"));
    }
}
