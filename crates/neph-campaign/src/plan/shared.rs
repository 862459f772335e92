//! `[[shared_link]]`, `[[shared_overlay]]` and `mode`: what a timetable is made of.

use neph_text::{Fault, Fields, Node, Spanned, choice};

use super::single_line_text::single_line_text;
use crate::timetable::{Resource, UseMode};

/// A circuit: from a site to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCircuit {
    /// The site's name.
    pub site: String,
    /// The endpoint's name.
    pub endpoint: String,
}

/// A link or an overlay that several circuits share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedResource {
    /// What it is.
    pub resource: Resource,
    /// Every circuit that begins or ends at one of these sites uses it.
    pub sites: Vec<Spanned<String>>,
    /// Every circuit to one of these endpoints uses it.
    pub endpoints: Vec<Spanned<String>>,
    /// These circuits use it.
    pub circuits: Vec<Spanned<PlannedCircuit>>,
}

impl SharedResource {
    /// Whether a circuit from `site` to `endpoint`, which is at the site `endpoint_site`, uses it.
    pub fn is_used_by_circuit(
        &self,
        site: Option<&str>,
        endpoint: &str,
        endpoint_site: Option<&str>,
    ) -> bool {
        let ends = [site, endpoint_site];
        let has_end = |name: &Spanned<String>| ends.contains(&Some(name.value.as_str()));
        let is_circuit = |circuit: &Spanned<PlannedCircuit>| {
            Some(circuit.value.site.as_str()) == site && circuit.value.endpoint == endpoint
        };
        self.sites.iter().any(has_end)
            || self.endpoints.iter().any(|placed| placed.value == endpoint)
            || self.circuits.iter().any(is_circuit)
    }
}

/// `"amsterdam -> service"`.
fn circuit(node: &Node) -> Result<PlannedCircuit, Fault> {
    let text = single_line_text(node)?;
    let names = text.split_once("->");
    let names = names.map(|(site, endpoint)| (site.trim(), endpoint.trim()));
    match names {
        Some((site, endpoint)) if !site.is_empty() && !endpoint.is_empty() => Ok(PlannedCircuit {
            site: site.to_owned(),
            endpoint: endpoint.to_owned(),
        }),
        _ => Err(Fault::new(
            format!("'{text}' is no circuit"),
            "write a site and an endpoint, for example \"amsterdam -> service\"",
        )),
    }
}

/// Reads a mode, at the top or in an endpoint.
pub(crate) fn mode(fields: &mut Fields<'_>) -> Option<Spanned<UseMode>> {
    let modes = UseMode::ALL.map(|mode| (mode.keyword(), mode));
    fields.optional_with("mode", |node| choice(node, &modes))
}

const LINK: &str = "shared_link";
const OVERLAY: &str = "shared_overlay";

fn resource(table: &str, name: &str) -> Resource {
    if table == LINK {
        Resource::Link(name.to_owned())
    } else {
        Resource::Overlay(name.to_owned())
    }
}

/// Reads every shared link and overlay of a plan.
pub(crate) fn read(fields: &mut Fields<'_>) -> Vec<SharedResource> {
    let mut resources: Vec<SharedResource> = Vec::new();
    for key in [LINK, OVERLAY] {
        for mut table in fields.tables(key) {
            let name = table.required_with("name", single_line_text);
            let shared = SharedResource {
                resource: resource(key, name.as_ref().map_or("", |name| &name.value)),
                sites: table
                    .one_or_list_with("sites", single_line_text)
                    .unwrap_or_default(),
                endpoints: table
                    .one_or_list_with("endpoints", single_line_text)
                    .unwrap_or_default(),
                circuits: table
                    .one_or_list_with("circuits", circuit)
                    .unwrap_or_default(),
            };
            let user_keys = ["sites", "endpoints", "circuits"];
            if user_keys.iter().all(|key| table.entry(key).is_none()) {
                let message = format!("no circuit uses this [[{key}]]");
                let remedy = "add sites = [\"amsterdam\"], endpoints or circuits";
                table.fault(table.span(), message, remedy);
            }
            if let Some(name) = name {
                if resources
                    .iter()
                    .any(|other| other.resource == shared.resource)
                {
                    let message = format!("there are two [[{key}]] '{}'", name.value);
                    table.fault(name.span.clone(), message, "give each a name of its own");
                }
                resources.push(shared);
            }
            table.finish();
        }
    }
    resources
}
