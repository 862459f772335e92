//! `neph diagnose`: the causes that the rules see in a campaign.

use std::io::Write;

use clap::{Args as ClapArgs, ValueEnum};
use neph_model::Campaign;
use neph_report::{
    CampaignData, Diagnosis, Include, PlotSettings, diagnose, diagnoses_in_brief,
    diagnoses_in_full, load,
};
use neph_store::Store;
use serde_json::{Value, json};

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::workspace::{self, Workspace};

/// How causes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
}

/// Options of `neph diagnose`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 the rules have looked, 1 nothing was measured, 2 usage. docs/diagnosis.md tells what each rule looks at."
)]
pub(crate) struct Args {
    /// The campaign: its id, the beginning of it, its name, or the last one
    #[arg(default_value = "last")]
    campaign: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Blocks to look at, counted from 1 (1,3)
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    blocks: Vec<u32>,
    /// Interrupted and failed experiments too
    #[arg(long)]
    everything: bool,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Tells the causes that the rules see in a campaign.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let campaign = workspace::campaign(store.as_ref(), &args.campaign)?;
    let include = if args.everything {
        Include::Everything
    } else {
        Include::Complete
    };
    let data = load(store.as_ref(), &campaign, include).map_err(Failure::refused)?;
    let blocks = args.blocks.iter().copied().collect();
    let settings = PlotSettings {
        blocks_to_plot: (!args.blocks.is_empty()).then_some(blocks),
        ..PlotSettings::default()
    };
    let shown = data.experiments.iter();
    let shown = shown.filter(|one| settings.shows_block(one.experiment.block));
    if shown.count() == 0 {
        return Err(Failure::Refused(format!(
            "campaign {} has no complete experiment to look at; --everything takes the others too",
            campaign.name
        )));
    }
    let found = diagnose(&data, &settings);
    let mut out = output::data();
    match args.format {
        Format::Text => write!(out, "{}", diagnoses_in_full(&found, output::width()))?,
        Format::Json => writeln!(out, "{:#}", document(&campaign, &found))?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn document(campaign: &Campaign, found: &[Diagnosis]) -> Value {
    json!({ "campaign": campaign.id, "name": campaign.name, "diagnoses": found })
}

/// The causes in brief, for the end of a run.
pub(crate) fn in_brief(data: &CampaignData, settings: &PlotSettings) -> String {
    diagnoses_in_brief(&diagnose(data, settings), output::width())
}

/// Tells the causes of a campaign that has just ended and gets no report.
pub(crate) fn after_run(store: &dyn Store, campaign: &Campaign) -> Result<(), Failure> {
    let data = load(store, campaign, Include::Complete).map_err(Failure::refused)?;
    if data.experiments.is_empty() {
        return Ok(());
    }
    let mut out = output::data();
    write!(out, "{}", in_brief(&data, &PlotSettings::default()))?;
    out.flush()?;
    Ok(())
}
