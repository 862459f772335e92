//! What the rules named, before anything else: causes, remedies, and behind them what they rest on.

use maud::{Markup, html};
use neph_analysis::{Diagnoses, Diagnosis};

/// The root causes, ordered by added latency; or that there is none; and rules that were not evaluated.
pub(super) fn section(diagnoses: &Diagnoses) -> Markup {
    let not_evaluated = diagnoses.not_evaluated_text();
    html! {
        @if !diagnoses.fleets_only { section.causes {
            h3 { "What causes it" }
            @if diagnoses.causes.is_empty() {
                p { (diagnoses.no_cause()) }
            } @else {
                ol { @for cause in &diagnoses.causes { (cause_item(cause)) } }
            }
            @for note in &diagnoses.notes {
                p { "Note: " (note.text) }
            }
            @if !not_evaluated.is_empty() {
                details {
                    summary { "Rules that were not evaluated, and what they need" }
                    ul { @for line in &not_evaluated { li { (neph_analysis::text::capital(line)) } } }
                }
            }
        } }
    }
}

fn cause_item(cause: &Diagnosis) -> Markup {
    html! {
        li {
            b { (neph_analysis::text::capital(cause.title)) } " (" (cause.confidence.level.name()) "). " (cause.cause)
            " Remedy: " (cause.remedy) "."
            details {
                summary { "Evidence and limits" }
                p.notes { (neph_analysis::text::capital(&cause.confidence.why)) ". " (cause.limits) }
                table {
                    tbody {
                        @for number in &cause.evidence {
                            tr { td.words { (number.name) } td { (number.to_text()) } }
                        }
                        @for observation in &cause.observations {
                            tr { td.words { "seen in" } td.words { (observation.to_text()) } }
                        }
                    }
                }
            }
        }
    }
}
