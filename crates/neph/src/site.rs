//! The option `--site`: the network namespace that is meant, by its own name or by a lab's site.

use std::collections::BTreeSet;
use std::path::Path;

use neph_lab::Lab;
use neph_text::did_you_mean;

/// Where namespaces with a name are (`ip netns`).
const FOLDER: &str = "/run/netns";

/// The namespace that `text` names. A site of the only lab that has one so called may be named
/// alone.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    let is_there = !text.contains('/') && Path::new(FOLDER).join(text).exists();
    if is_there {
        return Ok(text.to_owned());
    }
    let labs = Lab::list().unwrap_or_default().labs.into_iter();
    let labs: Vec<_> = labs.map(|lab| (lab.name, lab.namespaces)).collect();
    among(text, &labs)
}

/// The same among labs, each by its name with its namespaces.
fn among(text: &str, labs: &[(String, Vec<String>)]) -> Result<String, String> {
    let all = labs.iter().flat_map(|(lab, namespaces)| {
        let prefix = format!("neph-{lab}-");
        namespaces
            .iter()
            .filter_map(move |one| Some((one.as_str(), one.strip_prefix(&prefix)?.to_owned())))
    });
    let all: Vec<(&str, String)> = all.collect();
    let named = all.iter().filter(|(_, site)| site == text);
    let named: Vec<&str> = named.map(|(namespace, _)| *namespace).collect();
    if let Some((lab, site)) = text.split_once('/') {
        let whole = format!("neph-{lab}-{site}");
        if let Some((namespace, _)) = all.iter().find(|(namespace, _)| *namespace == whole) {
            return Err(format!("write it as {namespace}"));
        }
    }
    match named.as_slice() {
        [namespace] => Ok((*namespace).to_owned()),
        [others @ .., last] => Err(format!(
            "several labs have such a site: write {} or {last}",
            others.join(", ")
        )),
        _ if all.is_empty() => Err(
            "there is no such network namespace, and no lab is up (neph lab up FILE --detach)"
                .to_owned(),
        ),
        _ => {
            // Labs have sites of the same names.
            let sites: BTreeSet<&str> = all.iter().map(|(_, site)| site.as_str()).collect();
            let sites: Vec<&str> = sites.into_iter().collect();
            let remedy = did_you_mean(text, &sites);
            Err(format!(
                "there is no such network namespace, and no lab has such a site; {remedy}; where \
                 several labs have it, neph-LAB-SITE"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(name: &str, sites: &[&str]) -> (String, Vec<String>) {
        let namespaces = sites.iter().map(|site| format!("neph-{name}-{site}"));
        (name.to_owned(), namespaces.collect())
    }

    #[test]
    fn a_site_is_known_by_its_own_name_where_one_lab_has_it() {
        let labs = [
            lab("one", &["client", "server"]),
            lab("two", &["server"]),
            lab("three", &["server"]),
        ];
        assert_eq!(among("client", &labs), Ok("neph-one-client".to_owned()));
        let told = among("server", &labs).expect_err("two have it");
        assert!(
            told.contains("neph-one-server, neph-two-server or neph-three-server"),
            "{told}"
        );
        let told = among("clint", &labs).expect_err("none has it");
        assert!(told.contains("did you mean 'client'?"), "{told}");
        let told = among("nosuch", &labs).expect_err("none has it");
        assert!(told.contains("known here: client, server"), "{told}");
        assert_eq!(told.matches("server").count(), 1, "{told}");
        let told = among("two/server", &labs).expect_err("not so");
        assert_eq!(told, "write it as neph-two-server");
        let told = among("client", &[]).expect_err("there is none");
        assert!(told.contains("no lab is up"), "{told}");
    }
}
