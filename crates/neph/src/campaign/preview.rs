//! `neph plan`: the matrix, the order, and what it will cost, before anything runs.

use std::io::Write;

use neph_campaign::expand;
use neph_documents::plan::{notes, preview};

use super::{PreviewArgs, power, read};
use crate::exit::{Failure, Outcome};
use crate::{approval, output};

/// Shows what a plan would do.
pub(crate) fn run(args: &PreviewArgs) -> Result<Outcome, Failure> {
    let read = read(&args.plan.plan)?;
    let plan = &read.plan;
    let scenarios = expand::scenarios(plan);
    let mut out = output::data();
    preview(plan, &scenarios, &mut out)?;
    power::tell(&mut out, plan, &scenarios, args)?;
    for note in notes(plan) {
        output::say(&format!("neph: {note}"));
    }
    let topologies = read.scenes.iter().map(|scene| &scene.topology);
    approval::note(read.source.name(), topologies);
    out.flush()?;
    Ok(Outcome::Done)
}
