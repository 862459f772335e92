//! `neph report`: the page, the figures and the tables of a campaign.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_campaign::Plan;
use neph_campaign::plan::PlotPlan;
use neph_model::{Campaign, Span};
use neph_report::{Basis, Equalization, Include, PlotSettings, Tail, load, write_report};
use neph_store::Store;
use neph_text::Source;

use crate::exit::{Failure, Outcome};
use crate::workspace::{self, Workspace};
use crate::{output, value};

/// Options of `neph report`.
#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// The campaign: its id, the beginning of it, its name, or the last one
    #[arg(default_value = "last")]
    campaign: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Folder for the report; by default reports/CAMPAIGN in the workspace
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Percentiles to cut off at each end, 0 to 49
    #[arg(long, value_name = "PERCENT")]
    percentiles_to_remove: Option<f64>,
    /// Each figure of a group with a scale of its own
    #[arg(long)]
    no_equalize: bool,
    /// Least round-trip time shown
    #[arg(long, value_name = "TIME", value_parser = value::span)]
    rtt_min: Option<Span>,
    /// Greatest round-trip time shown
    #[arg(long, value_name = "TIME", value_parser = value::span)]
    rtt_max: Option<Span>,
    /// Percentile of the lower whisker, instead of 1.5 interquartile ranges
    #[arg(long, value_name = "PERCENT")]
    whisker_min: Option<f64>,
    /// Percentile of the upper whisker, instead of 1.5 interquartile ranges
    #[arg(long, value_name = "PERCENT")]
    whisker_max: Option<f64>,
    /// Blocks to show, counted from 1 (1,3)
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',')]
    blocks: Vec<u32>,
    /// Distributions with their tail on a logarithmic axis
    #[arg(long)]
    log_tail: bool,
    /// Count from sending (service time) instead of from the schedule (response time)
    #[arg(long)]
    service_time: bool,
    /// Only these figures (timeline,cdf)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    figures: Vec<String>,
    /// Interrupted and failed experiments too
    #[arg(long)]
    everything: bool,
}

/// Writes a campaign's report.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let campaign = workspace::campaign(store.as_ref(), &args.campaign)?;
    let mut settings = settings_of(&plot_of(&campaign));
    args.apply(&mut settings)?;
    let folder = args
        .output
        .clone()
        .unwrap_or_else(|| folder_of(&args.workspace, &campaign));
    let include = if args.everything {
        Include::Everything
    } else {
        Include::Complete
    };
    write(store.as_ref(), &campaign, &settings, &folder, include)?;
    Ok(Outcome::Done)
}

/// Writes the report of a campaign that has just ended, and tells its conclusion.
pub(crate) fn after_run(
    store: &dyn Store,
    campaign: &Campaign,
    plan: &Plan,
    workspace: &Workspace,
) -> Result<(), Failure> {
    let folder = folder_of(workspace, campaign);
    write(
        store,
        campaign,
        &settings_of(&plan.plot),
        &folder,
        Include::Complete,
    )
}

/// Where a campaign's report goes unless told otherwise.
fn folder_of(workspace: &Workspace, campaign: &Campaign) -> PathBuf {
    workspace
        .folder()
        .join("reports")
        .join(campaign.id.to_string())
}

fn write(
    store: &dyn Store,
    campaign: &Campaign,
    settings: &PlotSettings,
    folder: &Path,
    include: Include,
) -> Result<(), Failure> {
    use std::io::Write;
    let data = load(store, campaign, include).map_err(Failure::refused)?;
    let written = write_report(&data, settings, folder).map_err(Failure::refused)?;
    let mut out = output::data();
    write!(
        out,
        "{}",
        neph_report::text(&data, settings, output::width())
    )?;
    if let Some(page) = written.first() {
        writeln!(out, "\nreport: {}", page.display())?;
    }
    out.flush()?;
    Ok(())
}

/// The plot settings that a campaign's plan has; the defaults where it has none (imports).
fn plot_of(campaign: &Campaign) -> PlotPlan {
    let source = Source::new(campaign.plan_path.clone(), campaign.plan_text.clone());
    neph_campaign::plan::read(&source)
        .map(|plan| plan.plot)
        .unwrap_or_default()
}

fn settings_of(plot: &PlotPlan) -> PlotSettings {
    // Plans keep blocks from 0, figures name them from 1.
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
        figures: (!plot.figures.is_empty()).then(|| plot.figures.iter().cloned().collect()),
    }
}

impl Args {
    fn apply(&self, settings: &mut PlotSettings) -> Result<(), Failure> {
        let percent = |name: &str, value: Option<f64>, below: f64| match value {
            Some(value) if !(0.0..=below).contains(&value) => Err(Failure::Usage(format!(
                "--{name} {value}: give a number from 0 to {below}"
            ))),
            value => Ok(value),
        };
        if let Some(cut) = percent("percentiles-to-remove", self.percentiles_to_remove, 49.0)? {
            settings.percentiles_to_remove = cut;
        }
        if let Some(low) = percent("whisker-min", self.whisker_min, 25.0)? {
            settings.whisker_min = Some(low);
        }
        if let Some(high) = percent("whisker-max", self.whisker_max, 100.0)? {
            settings.whisker_max = Some(high);
        }
        if self.no_equalize {
            settings.equalization = Equalization::Separate;
        }
        settings.rtt_min = self.rtt_min.or(settings.rtt_min);
        settings.rtt_max = self.rtt_max.or(settings.rtt_max);
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
        let known: Vec<&str> = neph_report::FIGURES
            .iter()
            .map(|figure| figure.name)
            .collect();
        match self
            .figures
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => Err(Failure::Usage(format!(
                "--figures: there is no figure '{name}'; there are {}",
                known.join(", ")
            ))),
        }
    }
}
