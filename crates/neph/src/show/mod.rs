//! `neph show`: all data of a campaign or an experiment.

mod experiment;

use std::io::Write;

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::rows::write_json;
use neph_documents::store_content::{CampaignDocument, CampaignParts};
use neph_model::Campaign;
use neph_store::Store;

use crate::exit::{Failure, Outcome};
use crate::time_zone::Zone;
use crate::workspace::Workspace;
use crate::{format, list, output};
use neph_store::find::{LAST, Subject, subject};

/// Options of `neph show`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Campaign (its id, name, or 'last') or experiment (its id) to show; the beginning of an id is enough
    #[arg(default_value = LAST)]
    subject: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::DOCUMENT))]
    format: Format,
    #[command(flatten)]
    zone: Zone,
}

/// Shows.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let offset = args.zone.offset;
    let is_text = args.format == Format::Text;
    let mut out = output::data();
    match subject(store.as_ref(), &args.subject)? {
        Subject::Campaign(subject) => {
            let document = campaign_document(store.as_ref(), &subject, args)?;
            if is_text {
                out.write_all(document.text().as_bytes())?;
            } else {
                write_json(&document, &mut out)?;
            }
        }
        Subject::Experiment(subject) => {
            let (campaign, selected) = &*subject;
            let document = experiment::document(store.as_ref(), campaign, selected, offset)?;
            if is_text {
                out.write_all(document.text().as_bytes())?;
            } else {
                write_json(&document, &mut out)?;
            }
        }
    }
    // Dropping the buffer would hide a write error.
    out.flush()?;
    Ok(Outcome::Done)
}

/// Writes all data of a campaign.
fn campaign_document(
    store: &dyn Store,
    campaign: &Campaign,
    args: &Args,
) -> Result<CampaignDocument, Failure> {
    let (status, next_command) = list::campaign_status(store, campaign, &args.workspace)?;
    let parts = CampaignParts {
        campaign,
        status: (status, next_command.as_deref()),
        scenarios: &store.scenarios(campaign.id)?,
        experiments: &store.experiments(campaign.id)?,
        checks: &store.throughputs(campaign.id)?,
        routes: &store.traceroutes(campaign.id)?,
        pings: &store.pings_between(campaign.id)?,
        offset: args.zone.offset,
    };
    let rows = list::experiment_rows(store, campaign, args.zone.offset)?;
    Ok(CampaignDocument::of(&parts, rows))
}
