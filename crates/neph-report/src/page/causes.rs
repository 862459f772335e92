//! What the rules named, before anything else: causes, remedies, and behind them what they rest on.

use maud::{Markup, html};

use crate::{Diagnosis, RULES};

/// The causes, the costliest first; a sentence where no rule speaks.
pub(super) fn section(causes: &[Diagnosis]) -> Markup {
    html! {
        section.causes {
            h3 { "What causes it" }
            @if causes.is_empty() {
                p { (format!("None of the {} rules speaks: no cause is visible in these measurements.", RULES.len())) }
            }
            @if !causes.is_empty() {
                ol { @for cause in causes { (one(cause)) } }
            }
        }
    }
}

fn one(cause: &Diagnosis) -> Markup {
    html! {
        li {
            b { (crate::figure::capital(cause.title)) } " (" (cause.confidence.level.name()) "). " (cause.cause)
            " What to do: " (cause.remedy) "."
            details {
                summary { "What this rests on, and what it cannot tell" }
                p.notes { (crate::figure::capital(&cause.confidence.why)) ". " (cause.limits) }
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
