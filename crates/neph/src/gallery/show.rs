//! Output of the gallery: the entries, sentences and numbers of an entry, and the table of results.

use std::io::Write;

use neph_analysis::gallery::{
    ComparedNumber, Entry, EntryResult, Expectation, ExpectationResult, Number, Topic, entries,
};
use neph_documents::gallery::EntryRow;
use neph_documents::table::{Heading, Table};
use neph_documents::{Format, rows};
use neph_text::decimals;

use crate::exit::{Failure, Outcome};
use crate::output;

/// Lists the entries.
pub(super) fn list_entries(format: Format) -> Result<Outcome, Failure> {
    let rows = entries().iter().map(|entry| EntryRow {
        name: entry.name,
        finding: &entry.finding,
        published: &entry.published,
    });
    let rows: Vec<EntryRow> = rows.collect();
    let mut out = output::data();
    rows::write(&rows, format, &mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

const NUMBER_COLUMNS: [Heading; 4] = [
    Heading::left("  NUMBER"),
    Heading::right("EXPECTED"),
    Heading::right("MEASURED"),
    Heading::left(""),
];

/// Shows neph's result for an entry, and whether it is correct.
pub(super) fn show_entry(entry_result: &EntryResult) -> Result<(), Failure> {
    let mut out = output::data();
    let Entry {
        finding, published, ..
    } = entry_result.entry;
    writeln!(out, "\n{}: {finding} ({published})", title(entry_result))?;
    for result in entry_result.results() {
        writeln!(out, "  {}", statement_text(&result))?;
        if !result.numbers.is_empty() {
            let mut table = Table::new(NUMBER_COLUMNS);
            result
                .numbers
                .iter()
                .for_each(|compared| table.push(number_row(compared)));
            out.write_all(table.text().as_bytes())?;
        }
    }
    for statement in entry_result.wrong_causes() {
        writeln!(out, "  neph reports what is not there: {}", statement.text)?;
    }
    for statement in entry_result.disturbances() {
        writeln!(
            out,
            "  disturbed, and no part of the entry: {}",
            statement.text
        )?;
    }
    if let Some(figure) = &entry_result.figure {
        writeln!(out, "  figure: {}", figure.display())?;
    }
    writeln!(out, "  verdict: {}", verdict(entry_result.is_right()))?;
    out.flush()?;
    Ok(())
}

fn title(entry_result: &EntryResult) -> String {
    format!("{}{}", entry_result.entry.name, entry_result.side.suffix())
}

const fn verdict(is_right: bool) -> &'static str {
    if is_right { "right" } else { "WRONG" }
}

/// The sentence, or that it is absent, and which is expected.
fn statement_text(result: &ExpectationResult<'_>) -> String {
    let expected_text = expectation_name(result.expectation);
    match (result.statement, result.is_expected) {
        (Some(statement), true) => format!("neph reports: {}", statement.text),
        (None, true) => format!("neph does not say what it should: {expected_text}"),
        (Some(statement), false) => {
            format!(
                "neph reports what it must not report here: {}",
                statement.text
            )
        }
        (None, false) => format!("neph does not say, and must not: {expected_text}"),
    }
}

/// The name of the sentence: `a finding 'endpoint' about REST and persistent`.
fn expectation_name(expectation: &Expectation) -> String {
    let message = match &expectation.topic {
        Topic::Finding(topic) => format!("a finding '{topic}'"),
        Topic::Cause(rule) => format!("the cause '{rule}'"),
        Topic::Median => "the median".to_owned(),
    };
    match &expectation.about[..] {
        [] => message,
        about => format!("{message} about {}", about.join(" and ")),
    }
}

fn number_row(compared: &ComparedNumber) -> [String; 4] {
    let Number { name, low, high } = &compared.number;
    let (low, high) = (*low, *high);
    let expected = if high.is_infinite() {
        format!("{} or more", format_rounded(low))
    } else if high - low <= 0.0 {
        format_rounded(low)
    } else {
        format!("{} to {}", format_rounded(low), format_rounded(high))
    };
    let remark = if compared.is_as_expected {
        ""
    } else {
        "not as expected"
    };
    [
        format!("  {name}"),
        expected,
        compared
            .measured
            .map_or_else(|| "-".to_owned(), format_rounded),
        remark.to_owned(),
    ]
}

/// Three digits suffice for a comparison with the expected value.
fn format_rounded(value: f64) -> String {
    let text = decimals::fixed(value, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const SUMMARY_COLUMNS: [Heading; 4] = [
    Heading::left("ENTRY"),
    Heading::left("VERDICT"),
    Heading::right("SECONDS"),
    Heading::left("SENTENCE"),
];

/// The table of all results.
pub(super) fn show_summary(results: &[EntryResult]) -> Result<(), Failure> {
    let mut table = Table::new(SUMMARY_COLUMNS);
    for result in results {
        table.push(summary_row(result));
    }
    let mut out = output::data();
    writeln!(out)?;
    out.write_all(table.text().as_bytes())?;
    out.flush()?;
    Ok(())
}

fn summary_row(entry_result: &EntryResult) -> [String; 4] {
    let result = entry_result.results();
    let sentence = result.iter().find_map(|result| result.statement);
    [
        title(entry_result),
        verdict(entry_result.is_right()).to_owned(),
        format!("{:.0}", entry_result.seconds),
        sentence.map_or_else(|| "-".to_owned(), |statement| statement.text.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_shown_with_their_expected_values() {
        let row_of = |number: Number, measured: Option<f64>, is_as_expected: bool| {
            let compared = ComparedNumber {
                number,
                measured,
                is_as_expected,
            };
            let cells = number_row(&compared);
            let texts: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
            texts.join("|")
        };
        let shift = Number::between("shift_ms", 7.5, 9.0);
        assert_eq!(
            row_of(shift, Some(8.1234), true),
            "shift_ms|7.5 to 9|8.123|"
        );
        let slower = Number::at_least("slower", 1.0);
        assert_eq!(
            row_of(slower, None, false),
            "slower|1 or more|-|not as expected"
        );
        let pairs = Number::between("pairs", 15.0, 15.0);
        assert_eq!(row_of(pairs, Some(15.0), true), "pairs|15|15|");
    }
}
