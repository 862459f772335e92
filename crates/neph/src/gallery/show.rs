//! What is shown of the gallery: its entries, an entry's sentences and numbers, the table of all.

use std::io::Write;

use neph_analysis::gallery::{Compared, Entry, Expectation, Judged, Number, Shown, Topic, entries};
use neph_text::decimals;

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::sheet::{Cell, Column, Format, Sheet};

const ENTRY_COLUMNS: [Column; 3] = [
    Column::left("NAME", "name"),
    Column::left("FINDING", "finding"),
    Column::left("PUBLISHED", "published"),
];

/// Lists the entries.
pub(super) fn list(format: Format) -> Result<Outcome, Failure> {
    let mut sheet = Sheet::new(&ENTRY_COLUMNS);
    let texts = |entry: &'static Entry| [entry.name, &entry.finding, &entry.published];
    let rows = entries().iter().map(|entry| texts(entry).map(Cell::text));
    sheet.rows.extend(rows.map(Vec::from));
    let mut out = output::data();
    sheet.write(format, &mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

const NUMBER_COLUMNS: [Column; 4] = [
    Column::left("  NUMBER", "number"),
    Column::right("EXPECTED", "expected"),
    Column::right("MEASURED", "measured"),
    Column::left("", "holds"),
];

/// Shows what neph says of an entry, and whether that is right.
pub(super) fn entry(shown: &Shown) -> Result<(), Failure> {
    let mut out = output::data();
    let Entry {
        finding, published, ..
    } = shown.entry;
    writeln!(out, "\n{}: {finding} ({published})", title(shown))?;
    for judged in shown.judged() {
        writeln!(out, "  {}", said(&judged))?;
        if !judged.numbers.is_empty() {
            let mut sheet = Sheet::new(&NUMBER_COLUMNS);
            sheet.rows = judged.numbers.iter().map(row).collect();
            sheet.write(Format::Text, &mut out)?;
        }
    }
    for said in shown.misnamed() {
        writeln!(out, "  neph names what is not there: {}", said.text)?;
    }
    for said in shown.disturbances() {
        writeln!(out, "  disturbed, and no part of the entry: {}", said.text)?;
    }
    if let Some(figure) = &shown.figure {
        writeln!(out, "  figure: {}", figure.display())?;
    }
    writeln!(out, "  verdict: {}", verdict(shown.is_right()))?;
    out.flush()?;
    Ok(())
}

fn title(shown: &Shown) -> String {
    format!("{}{}", shown.entry.name, shown.side.suffix())
}

const fn verdict(is_right: bool) -> &'static str {
    if is_right { "right" } else { "WRONG" }
}

/// The sentence, or that there is none, and which of both is as it should be.
fn said(judged: &Judged<'_>) -> String {
    let wanted = wanted(judged.expectation);
    match (judged.said, judged.is_wanted) {
        (Some(said), true) => format!("neph says: {}", said.text),
        (None, true) => format!("neph does not say what it should: {wanted}"),
        (Some(said), false) => format!("neph says what it must not say here: {}", said.text),
        (None, false) => format!("neph does not say, and must not: {wanted}"),
    }
}

/// Which sentence is meant: `a finding 'endpoint' about REST and persistent`.
fn wanted(expectation: &Expectation) -> String {
    let what = match &expectation.topic {
        Topic::Finding(topic) => format!("a finding '{topic}'"),
        Topic::Cause(rule) => format!("the cause '{rule}'"),
        Topic::Median => "the median".to_owned(),
    };
    match &expectation.about[..] {
        [] => what,
        about => format!("{what} about {}", about.join(" and ")),
    }
}

fn row(compared: &Compared) -> Vec<Cell> {
    let Number { name, low, high } = &compared.number;
    let (low, high) = (*low, *high);
    let expected = if high.is_infinite() {
        format!("{} or more", rounded(low))
    } else if high - low <= 0.0 {
        rounded(low)
    } else {
        format!("{} to {}", rounded(low), rounded(high))
    };
    let holds = if compared.holds {
        ""
    } else {
        "not as expected"
    };
    vec![
        Cell::text(format!("  {name}")),
        Cell::text(expected),
        Cell::text(compared.measured.map_or_else(|| "-".to_owned(), rounded)),
        Cell::text(holds),
    ]
}

/// Three places are enough to be held against an expectation.
fn rounded(value: f64) -> String {
    let text = decimals::fixed(value, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const ALL_COLUMNS: [Column; 4] = [
    Column::left("ENTRY", "entry"),
    Column::left("VERDICT", "verdict"),
    Column::right("SECONDS", "seconds"),
    Column::left("SENTENCE", "sentence"),
];

/// The table of everything that was shown.
pub(super) fn all(everything: &[Shown]) -> Result<(), Failure> {
    let mut sheet = Sheet::new(&ALL_COLUMNS);
    sheet.rows = everything.iter().map(summary).collect();
    let mut out = output::data();
    writeln!(out)?;
    sheet.write(Format::Text, &mut out)?;
    out.flush()?;
    Ok(())
}

fn summary(shown: &Shown) -> Vec<Cell> {
    let judged = shown.judged();
    let sentence = judged.iter().find_map(|one| one.said);
    vec![
        Cell::text(title(shown)),
        Cell::text(verdict(shown.is_right())),
        Cell::new(format!("{:.0}", shown.seconds), shown.seconds),
        Cell::text(sentence.map_or("-", |said| said.text.as_str())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_beside_what_was_expected_of_them() {
        let told = |number: Number, measured: Option<f64>, holds: bool| {
            let compared = Compared {
                number,
                measured,
                holds,
            };
            let cells = row(&compared);
            let shown: Vec<&str> = cells.iter().map(|cell| cell.shown.trim()).collect();
            shown.join("|")
        };
        let shift = Number::between("shift_ms", 7.5, 9.0);
        assert_eq!(told(shift, Some(8.1234), true), "shift_ms|7.5 to 9|8.123|");
        let slower = Number::at_least("slower", 1.0);
        assert_eq!(
            told(slower, None, false),
            "slower|1 or more|-|not as expected"
        );
        let pairs = Number::between("pairs", 15.0, 15.0);
        assert_eq!(told(pairs, Some(15.0), true), "pairs|15|15|");
    }
}
