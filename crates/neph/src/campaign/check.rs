//! `neph check`: every mistake of a plan with its position, and names without an address.

use neph_model::Target;
use neph_probe::Resolve;
use std::net::{IpAddr, SocketAddr};

use neph_campaign::resolve;

use super::{PlanArgs, read};
use crate::exit::{Failure, Outcome};
use crate::{approval, output};
use neph_documents::plan::notes;

/// Checks a plan without running anything.
pub(crate) fn run(args: &PlanArgs) -> Result<Outcome, Failure> {
    let read = read(&args.plan)?;
    let resolver = |host: &str| -> Result<Vec<IpAddr>, String> {
        let target = Target::icmp(host).map_err(|error| error.to_string())?;
        let addresses = target.addresses(None);
        let addresses = addresses.map_err(|error| error.to_string())?;
        Ok(addresses.iter().map(SocketAddr::ip).collect())
    };
    if let Err(problems) = resolve::resolve(&read.plan, &read.source, &resolver) {
        return Err(Failure::Text(read.source, problems));
    }
    for note in notes(&read.plan) {
        output::say(&format!("neph: {note}"));
    }
    let topologies = read.scenes.iter().map(|scene| &scene.topology);
    approval::note(read.source.name(), topologies);
    output::say(&format!(
        "neph: {} has no mistakes; neph plan shows what it does",
        read.source.name()
    ));
    Ok(Outcome::Done)
}
