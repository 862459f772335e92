//! Checks external objects of a plan: sites of its topology, files of its reflectors, key files,
//! and congestion controls of this kernel.

use std::ops::Range;
use std::path::Path;

use neph_campaign::plan::LabPlan;
use neph_campaign::{Plan, resolve};
use neph_lab::Topology;
use neph_model::{Parameter, ReflectorIdentity, ReflectorSpec, ThroughputTool};
use neph_probe::{Secret, check_private};
use neph_text::{Fault, FileKind, Problems, Spanned, did_you_mean, open_file};

use super::LabTopology;
use crate::congestion::{self, Unusable};

/// Reports every external object of a plan that is missing or unsuitable. The prober is on this
/// host, also with a lab.
pub(super) fn check(plan: &Plan, problems: &Problems<'_>) {
    for reflector in plan.lab.iter().flat_map(|lab| &lab.reflectors) {
        check_reflector(&reflector.spec, problems);
    }
    for key in &plan.key_files {
        check_secret(
            "key file",
            FileKind::Secret,
            &key.value,
            &key.span,
            problems,
        );
    }
    for endpoint in &plan.endpoints {
        for file in endpoint.axes.values(Parameter::ca_file) {
            check_file(
                "certificate file",
                FileKind::Certificates,
                file,
                &endpoint.address_span,
                problems,
            );
        }
    }
    check_iperf3(plan, problems);
    for name in &plan.congestion_controls {
        if let Err(Unusable { reason, loaded }) = congestion::check(&name.value) {
            let message = format!(
                "congestion control '{}' cannot be had here: {reason}",
                name.value
            );
            let fault = Fault::new(message, format!("loaded are {loaded}"));
            problems.add(name.span.clone(), fault);
        }
    }
}

/// Reports that the program of throughput checks is missing.
fn check_iperf3(plan: &Plan, problems: &Problems<'_>) {
    let checks = plan.throughput.as_ref();
    let checks = checks.filter(|checks| checks.tool == ThroughputTool::Iperf3);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed = std::env::split_paths(&path).any(|folder| folder.join("iperf3").is_file());
    if let (Some(server), false) = (
        checks.and_then(|checks| checks.servers.first()),
        is_installed,
    ) {
        let message = "iperf3 is not installed here, and the throughput checks need it";
        let remedy =
            "install it (apt-get install iperf3), or write tool = \"neph\" under [throughput]";
        problems.add(server.span.clone(), Fault::new(message, remedy));
    }
}

/// Reports every site that the topology does not have, and every site that is used as a host name.
pub(super) fn check_sites(plan: &Plan, lab_topologies: &[LabTopology], problems: &Problems<'_>) {
    if let Some(lab) = &plan.lab {
        for lab_topology in lab_topologies {
            check_sites_of(plan, lab, &lab_topology.topology, problems);
        }
    }
    check_hosts(plan, lab_topologies, problems);
}

/// A lab has no name resolution for its sites.
fn check_hosts(plan: &Plan, lab_topologies: &[LabTopology], problems: &Problems<'_>) {
    for (host, address_span) in resolve::hosts(plan) {
        let mut sites = lab_topologies
            .iter()
            .flat_map(|lab_topology| &lab_topology.topology.sites);
        let Some(site) = sites.find(|site| site.name == host) else {
            continue;
        };
        let message =
            format!("host '{host}' is a site of the lab, and a site is reached by its address");
        let remedy = site.addresses().next().map_or_else(
            || "it is a switch, which has none: name a site".to_owned(),
            |address| format!("write {address}"),
        );
        problems.add(address_span, Fault::new(message, remedy));
    }
}

fn check_sites_of(plan: &Plan, lab: &LabPlan, topology: &Topology, problems: &Problems<'_>) {
    let site_names: Vec<&str> = topology
        .sites
        .iter()
        .map(|site| site.name.as_str())
        .collect();
    let reflector_sites = lab.reflectors.iter().map(|reflector| &reflector.site);
    check_load_sites(plan, &site_names, problems);
    let named_sites = std::iter::once(&lab.prober)
        .chain(reflector_sites)
        .chain(&plan.referenced_sites);
    for site in named_sites {
        if !site_names.contains(&site.value.as_str()) {
            let message = format!("the topology has no site '{}'", site.value);
            let fault = Fault::new(message, did_you_mean(&site.value, &site_names));
            problems.add(site.span.clone(), fault);
            continue;
        }
        if topology.is_guest(&site.value) {
            let message = format!(
                "'{}' is a guest, and nothing of this host runs in it",
                site.value
            );
            let remedy = "measure from its host or past it; a guest has a reflector of its own";
            problems.add(site.span.clone(), Fault::new(message, remedy));
        }
    }
}

/// Reports every missing site of a load.
fn check_load_sites(plan: &Plan, site_names: &[&str], problems: &Problems<'_>) {
    for background_load in &plan.background_loads {
        let loads = background_load.value.loads().iter();
        for load in loads.filter(|load| !site_names.contains(&load.site.as_str())) {
            let message = format!("the topology has no site '{}' to load", load.site);
            let fault = Fault::new(message, did_you_mean(&load.site, site_names));
            problems.add(background_load.span.clone(), fault);
        }
    }
}

/// Reports files of a reflector that cannot be read, and missing secrets.
fn check_reflector(reflector: &Spanned<ReflectorSpec>, problems: &Problems<'_>) {
    let Spanned { value: spec, span } = reflector;
    if let Some(ReflectorIdentity::Files { certificate, key }) = &spec.identity {
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        check_file(
            "certificate",
            FileKind::Certificates,
            &certificate,
            span,
            problems,
        );
        check_secret("key", FileKind::PrivateKey, &key, span, problems);
    }
    let secret = spec.stamp_key.as_ref().map(Secret::read);
    if let Some(Err(error)) = secret {
        let message = format!("neph reflect does not accept these flags: --stamp-key: {error}");
        let remedy = "give the reflector an existing secret, or remove --stamp-key";
        problems.add(span.clone(), Fault::new(message, remedy));
    }
}

/// As [`check_file`], for a file that only its owner may read.
fn check_secret(
    noun: &str,
    kind: FileKind,
    path: &str,
    span: &Range<usize>,
    problems: &Problems<'_>,
) {
    if let Err(error) = check_private(kind, Path::new(path)) {
        let message = format!("{noun} cannot be used: {error}");
        let remedy = "name a file with mode 0600, as seen from the folder that neph is started in";
        problems.add(span.clone(), Fault::new(message, remedy));
    }
}

fn check_file(
    noun: &str,
    kind: FileKind,
    path: &str,
    span: &Range<usize>,
    problems: &Problems<'_>,
) {
    if let Err(error) = open_file(kind, Path::new(path)) {
        let message = format!("{noun} {path} cannot be read: {error}");
        let default_remedy = "write its path as seen from the folder that neph is started in";
        let remedy = error.remedy().unwrap_or(default_remedy);
        problems.add(span.clone(), Fault::new(message, remedy));
    }
}
