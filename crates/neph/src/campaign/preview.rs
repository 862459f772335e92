//! `neph plan`: scenarios, order and cost of a plan, before anything runs.

use std::io::Write;

use neph_campaign::expand;
use neph_documents::plan::{notes, write_preview, write_shared_links};
use neph_store::find::campaign;

use super::{PreviewArgs, load_plan, power};
use crate::exit::{Failure, Outcome};
use crate::{approval, output};

/// Shows what a plan would run.
pub(crate) fn run(args: &PreviewArgs) -> Result<Outcome, Failure> {
    let plan_source = load_plan(&args.plan.plan)?;
    let plan = &plan_source.plan;
    let scenarios = expand::scenarios(plan);
    let mut out = output::data();
    write_preview(plan, &scenarios, &mut out)?;
    power::print_power(&mut out, plan, &scenarios, args)?;
    if let Some(name) = &args.traces {
        let store = args.workspace.read()?;
        let campaign = campaign(store.as_ref(), name)?;
        write_shared_links(&mut out, plan, &store.traceroutes(campaign.id)?)?;
    }
    for note in notes(plan) {
        output::say(&format!("neph: {note}"));
    }
    let topologies = plan_source
        .lab_topologies
        .iter()
        .map(|lab_topology| &lab_topology.topology);
    approval::print_commands(plan_source.source.name(), topologies);
    out.flush()?;
    Ok(Outcome::Done)
}
