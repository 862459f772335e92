//! `neph check`: every mistake of a plan with its position, and names without an address.

use neph_model::Target;
use neph_probe::Resolve;
use std::net::{IpAddr, SocketAddr};

use neph_campaign::resolve;

use super::{PlanArgs, load_plan};
use crate::exit::{Failure, Outcome};
use crate::{approval, output};
use neph_documents::plan::notes;

/// Checks a plan without running anything.
pub(crate) fn run(args: &PlanArgs) -> Result<Outcome, Failure> {
    let plan_source = load_plan(&args.plan)?;
    let resolver = |host: &str| -> Result<Vec<IpAddr>, String> {
        let target = Target::icmp(host).map_err(|error| error.to_string())?;
        let addresses = target.addresses(None);
        let addresses = addresses.map_err(|error| error.to_string())?;
        Ok(addresses.iter().map(SocketAddr::ip).collect())
    };
    if let Err(problems) = resolve::resolve(&plan_source.plan, &plan_source.source, &resolver) {
        return Err(Failure::Text(plan_source.source, problems));
    }
    for note in notes(&plan_source.plan) {
        output::say(&format!("neph: {note}"));
    }
    let topologies = plan_source
        .lab_topologies
        .iter()
        .map(|lab_topology| &lab_topology.topology);
    approval::print_commands(plan_source.source.name(), topologies);
    output::say(&format!(
        "neph: {} has no mistakes; neph plan shows what it does",
        plan_source.source.name()
    ));
    Ok(Outcome::Done)
}
