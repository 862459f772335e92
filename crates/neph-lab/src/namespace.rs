//! The network namespace that a text means, by its own name or by a lab's site.

use std::collections::BTreeSet;
use std::path::Path;

use neph_text::did_you_mean;

use crate::{Lab, LabError};

/// Where namespaces with a name are (`ip netns`).
const FOLDER: &str = "/run/netns";

/// The namespace that `text` names. A site of the only lab that has one so called may be named
/// alone.
///
/// # Errors
/// There is none, or several: a sentence with what there is.
pub fn namespace(text: &str) -> Result<String, String> {
    let exists = !text.contains('/') && Path::new(FOLDER).join(text).exists();
    if exists {
        return Ok(text.to_owned());
    }
    let listed = Lab::list().unwrap_or_default();
    let is_hidden = |error: &LabError| matches!(error, LabError::NotPermitted { .. });
    let is_complete = !listed.errors.iter().any(is_hidden);
    let labs = listed.labs.into_iter();
    let labs: Vec<_> = labs.map(|lab| (lab.name, lab.namespaces)).collect();
    let known_labs = KnownLabs {
        labs: &labs,
        is_complete,
    };
    find_namespace(text, known_labs, &named_namespaces())
}

/// The namespaces that have a name; none where they cannot be listed.
fn named_namespaces() -> BTreeSet<String> {
    let entries = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string());
    names.filter_map(Result::ok).collect()
}

/// The labs that are up, each by its name with its namespaces.
#[derive(Clone, Copy)]
struct KnownLabs<'l> {
    labs: &'l [(String, Vec<String>)],
    /// Whether they are all that are up.
    is_complete: bool,
}

/// The namespace that `text` names, among labs and all named namespaces.
fn find_namespace(
    text: &str,
    known_labs: KnownLabs<'_>,
    named_namespaces: &BTreeSet<String>,
) -> Result<String, String> {
    let KnownLabs { labs, is_complete } = known_labs;
    let named = labs.iter().flat_map(|(lab, namespaces)| {
        let prefix = format!("neph-{lab}-");
        namespaces.iter().filter_map(move |namespace| {
            Some((
                namespace.as_str(),
                namespace.strip_prefix(&prefix)?.to_owned(),
            ))
        })
    });
    let candidates: Vec<(&str, String)> = named.collect();
    let matching = candidates.iter().filter(|(_, site)| site == text);
    let matching: Vec<&str> = matching.map(|(namespace, _)| *namespace).collect();
    if let Some((lab, site)) = text.split_once('/') {
        let full_name = format!("neph-{lab}-{site}");
        if let Some((namespace, _)) = candidates
            .iter()
            .find(|(namespace, _)| *namespace == full_name)
        {
            return Err(format!("write it as {namespace}"));
        }
    }
    match matching.as_slice() {
        [namespace] => Ok((*namespace).to_owned()),
        [others @ .., last] => Err(format!(
            "several labs have this site: write {} or {last}",
            others.join(", ")
        )),
        _ => Err(unknown_namespace_message(
            text,
            &candidates,
            is_complete,
            named_namespaces,
        )),
    }
}

/// The message that no namespace matches, with the known names: sites of labs first.
fn unknown_namespace_message(
    text: &str,
    sites: &[(&str, String)],
    is_complete: bool,
    named_namespaces: &BTreeSet<String>,
) -> String {
    let belongs_to_lab = |name: &&str| sites.iter().any(|(namespace, _)| namespace == name);
    let others = named_namespaces.iter().map(String::as_str);
    let others = others.filter(|name| !belongs_to_lab(name));
    // Labs have sites of the same names.
    let known: BTreeSet<&str> = sites.iter().map(|(_, site)| site.as_str()).collect();
    let known: Vec<&str> = known.into_iter().chain(others).collect();
    let hint = match (sites, is_complete) {
        (_, false) => "only root can see all labs that are up (use sudo)",
        ([], true) => "no lab is up (neph lab up FILE --detach)",
        _ => "no lab has this site",
    };
    if known.is_empty() {
        return format!("this network namespace does not exist, and {hint}");
    }
    let remedy = did_you_mean(text, &known);
    let several_labs_hint = if sites.is_empty() {
        ""
    } else {
        "; where several labs have it, neph-LAB-SITE"
    };
    format!("this network namespace does not exist, and {hint}; {remedy}{several_labs_hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(name: &str, sites: &[&str]) -> (String, Vec<String>) {
        let namespaces = sites.iter().map(|site| format!("neph-{name}-{site}"));
        (name.to_owned(), namespaces.collect())
    }

    /// All labs that are up.
    const fn all_labs(labs: &[(String, Vec<String>)]) -> KnownLabs<'_> {
        KnownLabs {
            labs,
            is_complete: true,
        }
    }

    /// The labs that a user without root can see.
    const fn visible_labs(labs: &[(String, Vec<String>)]) -> KnownLabs<'_> {
        KnownLabs {
            labs,
            is_complete: false,
        }
    }

    #[test]
    fn a_site_name_is_enough_if_only_one_lab_has_it() {
        let labs = [
            lab("one", &["client", "server"]),
            lab("two", &["server"]),
            lab("three", &["server"]),
        ];
        let none = BTreeSet::new();
        assert_eq!(
            find_namespace("client", all_labs(&labs), &none),
            Ok("neph-one-client".to_owned())
        );
        let error = find_namespace("server", all_labs(&labs), &none).expect_err("two have it");
        assert!(
            error.contains("neph-one-server, neph-two-server or neph-three-server"),
            "{error}"
        );
        let error = find_namespace("clint", all_labs(&labs), &none).expect_err("none has it");
        assert!(error.contains("did you mean 'client'?"), "{error}");
        let error = find_namespace("nosuch", all_labs(&labs), &none).expect_err("none has it");
        assert!(error.contains("known here: client, server"), "{error}");
        assert_eq!(error.matches("server").count(), 1, "{error}");
        let error = find_namespace("two/server", all_labs(&labs), &none).expect_err("not so");
        assert_eq!(error, "write it as neph-two-server");
        let error = find_namespace("client", all_labs(&[]), &none).expect_err("there is none");
        assert!(error.contains("no lab is up"), "{error}");
        let error =
            find_namespace("client", visible_labs(&[]), &none).expect_err("none may be looked at");
        assert!(error.ends_with("only root can see all labs that are up (use sudo)"));
    }

    #[test]
    fn network_namespaces_that_are_no_labs_are_offered_too() {
        let labs = [lab("one", &["client"])];
        let names_of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let result = find_namespace(
            "x",
            all_labs(&labs),
            &names_of(&["neph-one-client", "red", "blue"]),
        );
        let error = result.expect_err("none has it");
        assert!(
            error.contains("known here: client, blue, red; where"),
            "{error}"
        );
        let error =
            find_namespace("bleu", all_labs(&[]), &names_of(&["blue"])).expect_err("none has it");
        let expected = "this network namespace does not exist, and no lab is up (neph lab up FILE \
                     --detach); did you mean 'blue'?";
        assert_eq!(error, expected);
        let many: Vec<String> = (0..100).map(|number| format!("pod-{number:02}")).collect();
        let error = find_namespace("x", all_labs(&[]), &many.into_iter().collect())
            .expect_err("none has it");
        assert!(
            error.contains("pod-00, pod-01") && error.contains(" more"),
            "{error}"
        );
    }
}
