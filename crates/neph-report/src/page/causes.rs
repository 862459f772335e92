//! What the rules named, before anything else: causes, remedies, and behind them what they rest on.

use maud::{Markup, html};
use neph_analysis::{Diagnoses, Diagnosis};

/// The causes, the costliest first; where no rule speaks that, and which rules could not look.
pub(super) fn section(told: &Diagnoses) -> Markup {
    let blind = told.blind_in_words();
    html! {
        @if !told.fleets_only { section.causes {
            h3 { "What causes it" }
            @if told.causes.is_empty() {
                p { (told.no_cause()) }
            } @else {
                ol { @for cause in &told.causes { (one(cause)) } }
            }
            @for note in &told.notes {
                p { "Note: " (note.text) }
            }
            @if !blind.is_empty() {
                details {
                    summary { "What was not looked for, and what that needs" }
                    ul { @for line in &blind { li { (neph_analysis::words::capital(line)) } } }
                }
            }
        } }
    }
}

fn one(cause: &Diagnosis) -> Markup {
    html! {
        li {
            b { (neph_analysis::words::capital(cause.title)) } " (" (cause.confidence.level.name()) "). " (cause.cause)
            " What to do: " (cause.remedy) "."
            details {
                summary { "What this rests on, and what it cannot tell" }
                p.notes { (neph_analysis::words::capital(&cause.confidence.why)) ". " (cause.limits) }
                table {
                    tbody {
                        @for number in &cause.evidence {
                            tr { td.words { (number.name) } td { (number.in_words()) } }
                        }
                        @for seen in &cause.seen {
                            tr { td.words { "seen in" } td.words { (seen.in_words()) } }
                        }
                    }
                }
            }
        }
    }
}
