//! `neph explain`: what a warning means, how neph detects it, and what to do.
//!
//! Owns the search in the page. The texts are those of docs/warnings.md.

use clap::Args as ClapArgs;
use neph_text::nearest;

use crate::exit::{Failure, Outcome};
use crate::output;

/// The page of all warnings.
const PAGE: &str = include_str!("../../../docs/warnings.md");

/// Options of `neph explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Code or name of a warning, such as W012 or late-link; without it, neph lists all warnings
    code: Option<String>,
}

/// A warning's section of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Section {
    /// `W012`.
    code: &'static str,
    /// `late-link`.
    name: &'static str,
    text: &'static str,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let sections: Vec<Section> = sections().collect();
    let Some(requested) = &args.code else {
        for Section { code, name, text } in sections {
            let summary = text.lines().next().unwrap_or(text);
            let summary = summary.split(". ").next().unwrap_or(summary);
            output::print_line(&format!(
                "{code}  {name:20}  {}",
                strip_markup(summary.trim_end_matches('.'))
            ))?;
        }
        return Ok(Outcome::Done);
    };
    let requested_section = sections
        .iter()
        .find(|section| section.code.eq_ignore_ascii_case(requested) || section.name == requested);
    let Some(Section { code, name, text }) = requested_section else {
        // W12 means W012. Other numbers are not near to each other.
        let number = requested.strip_prefix(['W', 'w']);
        let number = number.and_then(|number| number.parse::<u32>().ok());
        let code = number.map(|number| format!("W{number:03}"));
        let mut codes = sections.iter().map(|section| section.code);
        let suggestion = codes.find(|name| Some(*name) == code.as_deref());
        let suggestion =
            suggestion.or_else(|| nearest(requested, sections.iter().map(|section| section.name)));
        let suggestion =
            suggestion.map_or_else(String::new, |name| format!("did you mean '{name}'? "));
        return Err(Failure::usage(format!(
            "there is no warning '{requested}': {suggestion}neph explain lists all"
        )));
    };
    output::print_line(&format!("{code} {name}\n\n{}", strip_markup(text)))?;
    Ok(Outcome::Done)
}

/// The sections of the page, in its order.
fn sections() -> impl Iterator<Item = Section> {
    PAGE.split("\n## ").skip(1).filter_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        let (code, name) = heading.split_once(' ')?;
        Some(Section {
            code,
            name,
            text: text.trim(),
        })
    })
}

/// Text without the markup of Markdown.
fn strip_markup(text: &str) -> String {
    text.replace("**", "").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_has_a_meaning_its_detection_and_a_remedy() {
        let all_sections: Vec<Section> = sections().collect();
        assert_eq!(all_sections.len(), neph_model::WarningCode::COUNT);
        for Section { code, name, text } in all_sections {
            assert!(code.len() == 4 && !name.is_empty(), "{code} {name}");
            let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{code}: {part}"));
            assert!(0 < position("- **Detected:**"), "{code}");
            assert!(
                position("- **Detected:**") < position("- **Remedy:**"),
                "{code}"
            );
        }
    }
}
