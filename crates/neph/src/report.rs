//! `neph report`: the page, the figures and the tables of a campaign.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_analysis::{
    Basis, CampaignData, Equalization, Include, Layer, Margin, PlotSettings, Tail, diagnose, load,
};
use neph_campaign::Plan;
use neph_campaign::plan::{ComparePlan, ComparedLayer, PlotPlan};
use neph_model::{Campaign, Span, UtcOffset};
use neph_report::{FIGURES, ReportError, check_folder, diagnoses_in_brief, write_report};
use neph_store::Store;
use neph_text::Existing;
use neph_text::{Fault, Problems, Source};

use crate::exit::{Failure, Outcome};
use crate::sink::Force;
use crate::time_zone::Zone;
use crate::workspace::Workspace;
use crate::{list, output, sink, value};
use neph_store::find::{self};
use neph_text::counted::{blocks, counted};

/// Options of `neph report`.
#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Campaign (one run of a plan) to report: its id or the beginning of it, its name, or 'last'
    #[arg(default_value = "last")]
    campaign: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Write the report to this folder [default: reports/CAMPAIGN in the --workspace folder, where neph
    /// replaces an earlier report]
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Leave out this percentage of messages at each end (the lowest and the highest latencies) in box
    /// plots and distributions, 0 to 49
    #[arg(long, value_name = "PERCENT")]
    percentiles_to_remove: Option<f64>,
    /// Give each panel of a figure its own axis scale [default: the panels of a group share one scale]
    #[arg(long)]
    no_equalize: bool,
    /// Lower end of the latency axes in figures, such as 1ms [default: from the data]
    #[arg(long, value_name = "TIME", value_parser = value::span)]
    rtt_min: Option<Span>,
    /// Upper end of the latency axes in figures, such as 50ms [default: from the data]
    #[arg(long, value_name = "TIME", value_parser = value::span)]
    rtt_max: Option<Span>,
    /// End the lower whisker of box plots at this percentile, 0 to 25 [default: at 1.5 interquartile ranges]
    #[arg(long, value_name = "PERCENT")]
    whisker_min: Option<f64>,
    /// End the upper whisker of box plots at this percentile, 75 to 100 [default: at 1.5 interquartile
    /// ranges]
    #[arg(long, value_name = "PERCENT")]
    whisker_max: Option<f64>,
    /// Show only these blocks (each contains every scenario once), counted from 1, such as 1,3
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',')]
    blocks: Vec<u32>,
    /// Draw the tail (the slowest messages) of distribution figures on a logarithmic axis
    #[arg(long)]
    log_tail: bool,
    /// Show service time (from actual send time to reply) instead of response time (from scheduled send time)
    #[arg(long)]
    service_time: bool,
    /// Draw only the figures with these names, such as timeline,cdf; docs/figures.md explains them
    /// [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    figures: Vec<String>,
    /// Also show experiments that were interrupted, failed or are still running
    #[arg(long)]
    everything: bool,
    #[command(flatten)]
    zone: Zone,
}

/// Writes a campaign's report.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let campaign = find::campaign(store.as_ref(), &args.campaign)?;
    let mut settings = stored_settings(&campaign);
    args.apply(&mut settings)?;
    settings.utc_offset = args.zone.offset;
    let folder = args
        .output
        .clone()
        .unwrap_or_else(|| report_folder(&args.workspace, &campaign));
    let include = if args.everything {
        Include::Everything
    } else {
        Include::Complete
    };
    // neph may replace its own report folder in the workspace.
    let existing = match &args.output {
        Some(_) => args.force.existing(),
        None => Existing::Replace,
    };
    check_folder(&folder, existing).map_err(|error| to_failure(&error))?;
    let data = load(store.as_ref(), &campaign, include)?;
    if let Some(message) = missing_blocks_message(&data, &settings) {
        return Err(Failure::Usage(message));
    }
    if data.experiments.is_empty() {
        let stored_count = list::count_stored_messages(store.as_ref(), &data.left_out)?;
        if stored_count > 0 {
            // A page without any measurement would be misleading.
            return Err(Failure::Refused(format!(
                "nothing to report is complete; {} of {} that did not end are kept: \
                 neph report {}{} --everything shows them",
                counted(stored_count, "message"),
                counted(data.left_out.len() as u64, "experiment"),
                campaign.id,
                args.workspace.option()
            )));
        }
    }
    write_and_print(&data, &settings, &folder)?;
    Ok(if data.experiments.is_empty() {
        Outcome::Nothing
    } else {
        Outcome::Done
    })
}

/// Writes the report of a campaign that has just ended, and prints its conclusion.
pub(crate) fn report_after_run(
    store: &dyn Store,
    campaign: &Campaign,
    plan: &Plan,
    workspace: &Workspace,
) -> Result<(), Failure> {
    let settings = build_settings(&plan.plot, &plan.compares, plan.baseline.clone());
    let data = load(store, campaign, Include::Complete)?;
    if let Some(message) = missing_blocks_message(&data, &settings) {
        // The campaign may have ended before these blocks; its results are kept.
        output::say(&format!("neph: no report: {message}"));
        return Ok(());
    }
    write_and_print(&data, &settings, &report_folder(workspace, campaign))
}

/// The message if none of the selected blocks was measured. If only some were, prints which are
/// missing.
fn missing_blocks_message(data: &CampaignData, settings: &PlotSettings) -> Option<String> {
    let (selected_blocks, measured_blocks) = (settings.blocks_to_plot.as_ref()?, data.blocks());
    let missing_blocks: BTreeSet<u32> = selected_blocks
        .difference(&measured_blocks)
        .copied()
        .collect();
    if missing_blocks.is_empty() || measured_blocks.is_empty() {
        return None;
    }
    let sentence = format!(
        "nothing to show of {}: the campaign has measured {}",
        blocks(missing_blocks.iter().copied()),
        blocks(measured_blocks)
    );
    if missing_blocks.len() == selected_blocks.len() {
        return Some(sentence);
    }
    output::say(&format!("neph: {sentence}"));
    None
}

/// The default folder of a campaign's report.
pub(crate) fn report_folder(workspace: &Workspace, campaign: &Campaign) -> PathBuf {
    workspace
        .folder()
        .join("reports")
        .join(campaign.id.to_string())
}

fn write_and_print(
    data: &CampaignData,
    settings: &PlotSettings,
    folder: &Path,
) -> Result<(), Failure> {
    use std::io::Write;
    let diagnoses = diagnose(data, settings);
    let written_files =
        write_report(data, settings, &diagnoses, folder).map_err(|error| to_failure(&error))?;
    let mut out = output::data();
    write!(
        out,
        "{}",
        neph_report::text(data, settings, &diagnoses, output::width())
    )?;
    if !data.experiments.is_empty() {
        write!(out, "\n{}", diagnoses_in_brief(&diagnoses, output::width()))?;
    }
    if let Some(page) = written_files.first() {
        writeln!(out, "\nreport: {}", page.display())?;
    }
    out.flush()?;
    Ok(())
}

fn to_failure(error: &ReportError) -> Failure {
    match error {
        ReportError::ForeignContent { .. } | ReportError::Exists { .. } => Failure::usage(error),
        ReportError::Folder { path, source } | ReportError::File { path, source } => {
            sink::failure(path, source)
        }
        _ => Failure::refused(error),
    }
}

/// The plot settings of a campaign's plan; the defaults without a plan (imports).
pub(crate) fn stored_settings(campaign: &Campaign) -> PlotSettings {
    let source = Source::new(campaign.plan_path.clone(), campaign.plan_text.clone());
    neph_campaign::plan::read(&source).map_or_else(
        |_| build_settings(&PlotPlan::default(), &[], None),
        |plan| build_settings(&plan.plot, &plan.compares, plan.baseline),
    )
}

fn build_settings(
    plot: &PlotPlan,
    compares: &[ComparePlan],
    baseline: Option<String>,
) -> PlotSettings {
    // Plans count blocks from 0, figures from 1.
    let blocks = plot.blocks.iter().map(|block| block + 1).collect();
    PlotSettings {
        percentiles_to_remove: plot.percentiles_to_remove,
        equalization: if plot.equalize {
            Equalization::Shared
        } else {
            Equalization::Separate
        },
        rtt_min: plot.rtt_min,
        rtt_max: plot.rtt_max,
        whisker_min: plot.whisker_min,
        whisker_max: plot.whisker_max,
        blocks_to_plot: (!plot.blocks.is_empty()).then_some(blocks),
        tail: if plot.log_tail {
            Tail::Logarithmic
        } else {
            Tail::Linear
        },
        basis: Basis::Response,
        figures: requested_figures(plot),
        utc_offset: UtcOffset::UTC,
        margins: compares.iter().map(margin).collect(),
        baseline,
    }
}

fn margin(compare: &ComparePlan) -> Margin {
    let names = compare.endpoints.iter().map(|name| name.value.clone());
    Margin {
        endpoints: names.collect(),
        layer: match compare.layer {
            ComparedLayer::Response => Layer::Response,
            ComparedLayer::Network => Layer::Network,
        },
        width: compare.margin,
    }
}

/// The figures that a plan asks for. Unknown names in the stored plan of a campaign are reported,
/// not refused: the results must still be shown.
fn requested_figures(plot: &PlotPlan) -> Option<BTreeSet<String>> {
    let names = plot.figures.iter().map(|figure| &figure.value);
    let (known, unknown): (BTreeSet<String>, BTreeSet<String>) =
        names.cloned().partition(|name| is_figure(name));
    for name in unknown {
        output::say(&format!(
            "neph: [plot] of the campaign's plan: {}",
            unknown_figure_message(&name)
        ));
    }
    (!known.is_empty()).then_some(known)
}

/// Reports figure names in a plan that do not exist.
pub(crate) fn check_figures(plot: &PlotPlan, problems: &Problems<'_>) {
    for figure in plot
        .figures
        .iter()
        .filter(|figure| !is_figure(&figure.value))
    {
        let message = format!("there is no figure '{}'", figure.value);
        let fault = Fault::new(message, format!("there are {}", figure_names()));
        problems.add(figure.span.clone(), fault);
    }
}

fn is_figure(name: &str) -> bool {
    FIGURES.iter().any(|figure| figure.name == name)
}

fn figure_names() -> String {
    let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    names.join(", ")
}

fn unknown_figure_message(name: &str) -> String {
    format!("there is no figure '{name}'; there are {}", figure_names())
}

/// Refuses a minimum that is not below the maximum, as `neph check` does; either may be from the plan.
fn check_order<T: PartialOrd + Display>(
    name: &str,
    low: Option<T>,
    high: Option<T>,
) -> Result<(), Failure> {
    match low.zip(high) {
        Some((low, high)) if low >= high => Err(Failure::Usage(format!(
            "--{name}-min {low} is not below --{name}-max {high}: give a smaller minimum or a greater maximum"
        ))),
        _ => Ok(()),
    }
}

impl Args {
    fn apply(&self, settings: &mut PlotSettings) -> Result<(), Failure> {
        let check_percent = |name: &str, value: Option<f64>, max: f64| match value {
            Some(value) if !(0.0..=max).contains(&value) => Err(Failure::Usage(format!(
                "--{name} {value}: give a number from 0 to {max}"
            ))),
            value => Ok(value),
        };
        if let Some(percentage) =
            check_percent("percentiles-to-remove", self.percentiles_to_remove, 49.0)?
        {
            settings.percentiles_to_remove = percentage;
        }
        if let Some(low) = check_percent("whisker-min", self.whisker_min, 25.0)? {
            settings.whisker_min = Some(low);
        }
        if let Some(high) = check_percent("whisker-max", self.whisker_max, 100.0)? {
            settings.whisker_max = Some(high);
        }
        if self.no_equalize {
            settings.equalization = Equalization::Separate;
        }
        settings.rtt_min = self.rtt_min.or(settings.rtt_min);
        settings.rtt_max = self.rtt_max.or(settings.rtt_max);
        check_order("rtt", settings.rtt_min, settings.rtt_max)?;
        check_order("whisker", settings.whisker_min, settings.whisker_max)?;
        if !self.blocks.is_empty() {
            if self.blocks.contains(&0) {
                return Err(Failure::Usage("--blocks counts from 1".to_owned()));
            }
            settings.blocks_to_plot = Some(self.blocks.iter().copied().collect());
        }
        if self.log_tail {
            settings.tail = Tail::Logarithmic;
        }
        if self.service_time {
            settings.basis = Basis::Service;
        }
        if !self.figures.is_empty() {
            self.check_figures()?;
            settings.figures = Some(self.figures.iter().cloned().collect());
        }
        Ok(())
    }

    fn check_figures(&self) -> Result<(), Failure> {
        match self.figures.iter().find(|name| !is_figure(name)) {
            None => Ok(()),
            Some(name) => Err(Failure::Usage(format!(
                "--figures: {}",
                unknown_figure_message(name)
            ))),
        }
    }
}
