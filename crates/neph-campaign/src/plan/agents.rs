//! `[[site]]`: sites at a distance, and the agent that measures at each.

use neph_model::AgentName;
use neph_text::{Fault, Fields, Node, Placed, Problems};

use super::word::word;

/// A site at a distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSite {
    /// Its name, which `from` uses.
    pub name: Placed<String>,
    /// The agent that is there.
    pub agent: Placed<AgentName>,
}

fn agent_name(node: &Node) -> Result<AgentName, Fault> {
    let text = word(node)?;
    text.parse().map_err(|_| {
        Fault::new(
            format!("'{text}' cannot be the name of an agent"),
            "write the name that neph agents shows: lower-case letters, digits and hyphens",
        )
    })
}

pub(super) fn read(fields: &mut Fields<'_>) -> Vec<AgentSite> {
    let mut sites: Vec<AgentSite> = Vec::new();
    for mut table in fields.tables("site") {
        let name = table.required_with("name", word);
        let agent = table.required_with("agent", agent_name);
        if let (Some(name), Some(agent)) = (name, agent) {
            if sites.iter().any(|other| other.name.value == name.value) {
                let what = format!("there are two sites '{}'", name.value);
                table.fault(name.span.clone(), what, "give each a name of its own");
            }
            if sites.iter().any(|other| other.agent.value == agent.value) {
                let what = format!("two sites have agent {}", agent.value);
                table.fault(agent.span.clone(), what, "an agent is at one site");
            }
            sites.push(AgentSite { name, agent });
        }
        table.finish();
    }
    sites
}

/// What `from` names must be there, and a lab and sites at a distance do not go into one plan.
pub(super) fn check(
    sites: &[AgentSite],
    has_lab: bool,
    named: &[Placed<String>],
    problems: &Problems<'_>,
) {
    let Some(first) = sites.first() else {
        return;
    };
    if has_lab {
        let what = "a plan has a [lab] or a [[site]] with an agent, not both";
        problems.add(
            first.name.span.clone(),
            Fault::new(what, "remove one of them"),
        );
    }
    for name in named {
        if !sites.iter().any(|site| site.name.value == name.value) {
            let known: Vec<&str> = sites.iter().map(|site| site.name.value.as_str()).collect();
            let what = format!("there is no site '{}'", name.value);
            let remedy = format!("write one of {}, or add a [[site]]", known.join(", "));
            problems.add(name.span.clone(), Fault::new(what, remedy));
        }
    }
}
