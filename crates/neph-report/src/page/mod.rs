//! The page: words first, then figures, tables and provenance, in one HTML file that needs no
//! network and no installed font.

mod causes;
mod provenance;
mod tables;

use crate::figure::{FIGURES, Figure, FigureKind};
use crate::scene::{REGULAR, SEMIBOLD, svg};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use neph_analysis::clock_time::moment;
use neph_analysis::findings::{Finding, FindingKind};
use neph_analysis::table::{FLEET_PREFIX, SummaryRow, Table};
use neph_analysis::{CampaignData, Diagnoses, PlotSettings};
use neph_model::UtcOffset;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// What the title of every page ends with.
pub(crate) const TITLE_END: &str = " · Nephoscope";
/// So many pages of a figure are shown at once; the others unfold.
const MAX_UNFOLDED_PAGES: usize = 2;

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents<'a> {
    pub(crate) data: &'a CampaignData,
    pub(crate) settings: &'a PlotSettings,
    pub(crate) diagnoses: &'a Diagnoses,
    pub(crate) findings: &'a [Finding],
    pub(crate) figures: &'a [Figure],
    pub(crate) summary: &'a [SummaryRow],
    pub(crate) tables: &'a [Table],
}

/// The whole page.
pub(crate) fn page(contents: &Contents<'_>) -> String {
    let campaign = &contents.data.campaign;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (campaign.name) (TITLE_END) }
                style { (PreEscaped(fonts())) (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Latency, layer by layer: " (campaign.name) }
                p.under { (campaign_line(contents.data, contents.settings.utc_offset)) }
                (causes::section(contents.diagnoses))
                (finding_list(contents.findings))
                (navigation(contents))
                @for kind in kinds(contents.diagnoses) {
                    (section(kind, contents.figures))
                }
                @if !contents.summary.is_empty() { (tables::summary(contents.summary, contents.data.shared_label())) }
                @for table in contents.tables.iter().filter(|table| is_plain(table)) {
                    (tables::plain_table(table))
                }
                (tables::fleet_section(contents.tables))
                (provenance::section(contents.data, contents.settings))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// The kinds of figure in the order of the page: where only fleets were measured, theirs first.
fn kinds(diagnoses: &Diagnoses) -> Vec<&'static FigureKind> {
    let mut kinds: Vec<&FigureKind> = FIGURES.iter().collect();
    if diagnoses.fleets_only {
        kinds.sort_by_key(|kind| !kind.name.starts_with(FLEET_PREFIX));
    }
    kinds
}

/// Whether a table stands alone, cell by cell.
fn is_plain(table: &Table) -> bool {
    table.name != "summary" && !tables::is_of_fleets(table)
}

/// The figures' font, so that labels are as wide as they were measured.
fn fonts() -> String {
    let face = |weight: u32, file: &[u8]| {
        format!(
            "@font-face{{font-family:Inter;font-weight:{weight};src:url(data:font/ttf;base64,{}) format('truetype')}}\n",
            STANDARD.encode(file)
        )
    };
    face(400, REGULAR) + &face(600, SEMIBOLD)
}

fn campaign_line(data: &CampaignData, offset: UtcOffset) -> String {
    let campaign = &data.campaign;
    let ended = campaign.ended.map_or_else(
        || campaign.status.name().to_owned(),
        |ended| format!("to {}, {}", moment(ended, offset), campaign.status.name()),
    );
    format!(
        "Campaign {} · {} {ended}",
        campaign.id,
        moment(campaign.started, offset)
    )
}

fn finding_list(findings: &[Finding]) -> Markup {
    let findings_of =
        |kind: FindingKind| findings.iter().filter(move |finding| finding.kind == kind);
    html! {
        section {
            h3 { "What was measured" }
            @for finding in findings_of(FindingKind::Measured) { p { (finding.text) } }
            @if findings_of(FindingKind::Notable).next().is_some() {
                h3 { "Main findings" }
                ul { @for finding in findings_of(FindingKind::Notable) { li { (finding.text) } } }
            }
            @if findings_of(FindingKind::Flagged).next().is_some() {
                h3 { "What was flagged" }
                ul.flagged { @for finding in findings_of(FindingKind::Flagged) { li { (finding.text) } } }
            }
        }
    }
}

fn navigation(contents: &Contents<'_>) -> Markup {
    let has_figure = |name: &str| contents.figures.iter().any(|figure| figure.kind == name);
    html! {
        nav aria-label="Contents" {
            h3 { "Contents" }
            ol {
                @for kind in kinds(contents.diagnoses).into_iter().filter(|kind| has_figure(kind.name)) {
                    li { a href={ "#" (kind.name) } { (kind.title) } }
                }
                @for table in contents.tables.iter().filter(|table| !tables::is_of_fleets(table)) {
                    li { a href={ "#" (table.name) } { (table.title) } }
                }
                @if contents.tables.iter().any(tables::is_of_fleets) {
                    li { a href="#flows" { "Flows and paths in numbers" } }
                }
                li { a href="#provenance" { "Provenance" } }
            }
        }
    }
}

fn section(kind: &FigureKind, figures: &[Figure]) -> Markup {
    let pages: Vec<&Figure> = figures
        .iter()
        .filter(|figure| figure.kind == kind.name)
        .collect();
    let (shown, folded) = pages.split_at(pages.len().min(count_unfolded(&pages)));
    html! {
        @if !pages.is_empty() {
            section {
                h2 id=(kind.name) { (kind.title) }
                p.answers { (kind.answers) }
                @for figure in shown { (figure_markup(figure)) }
                @if !folded.is_empty() {
                    details {
                        summary { (format!("{} more", neph_analysis::text::plural(folded.len(), "page"))) }
                        @for figure in folded { (figure_markup(figure)) }
                    }
                }
            }
        }
    }
}

/// Different views are all shown; of the pages of one view, the first ones.
fn count_unfolded(pages: &[&Figure]) -> usize {
    if pages.len() <= MAX_UNFOLDED_PAGES + 2 {
        pages.len()
    } else {
        MAX_UNFOLDED_PAGES
    }
}

fn figure_markup(figure: &Figure) -> Markup {
    let files = [("SVG", "svg"), ("PNG", "png"), ("PDF", "pdf")];
    html! {
        figure id={ "figure-" (figure.name) } {
            (PreEscaped(svg(&figure.scene, &figure.name, &figure.title)))
            figcaption {
                "This figure as "
                @for (index, (name, ending)) in files.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={ "figures/" (figure.name) "." (ending) } { (name) }
                }
            }
        }
    }
}
