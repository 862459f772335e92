//! Guests without a kernel of their own: each is its site's network namespace, with a veth instead of a tap.
//! Addresses, share of the host, bandwidth limit and reflector are the same.
//!
//! One kernel then does the work of host and guests, on any CPU. The effects of neighbours can be measured,
//! the cost of a guest kernel cannot.

use std::collections::BTreeMap;
use std::path::PathBuf;

use neph_model::Span;
use neph_text::Fields;

use super::guest_settings::{GuestSettings, no_gso_options, routes_to_guest, tap_name};
use super::pods::{Pod, Pods, host_mac, pod_mac};
use crate::guest::{Guest, Kernel};
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureKind, FixtureParts, Nodes};
use crate::topology::{Ready, ReadyCheck, Service};

/// The interface of a guest, named as in `uml`.
const INTERFACE: &str = "vec0";
const READY_TIMEOUT: Span = Span::from_secs(60);

#[derive(Debug)]
pub(crate) struct Namespace;

/// Guests that are namespaces.
#[derive(Debug)]
pub(super) struct Namespaces(GuestSettings);

impl FixtureKind for Namespace {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        Some(Box::new(Namespaces(GuestSettings::read(table, nodes)?)))
    }
}

impl Namespaces {
    /// Replaces guests with these settings.
    pub(super) const fn new(settings: GuestSettings) -> Self {
        Self(settings)
    }
}

impl FixtureBuilder for Namespaces {
    fn pods(&self) -> Vec<usize> {
        self.0.sites.iter().map(|guest| guest.site).collect()
    }

    fn guests(&self) -> Vec<Guest> {
        self.0.guests(Kernel::Shared)
    }

    fn lines(&self) -> &[String] {
        &self.0.run
    }

    fn build(&self, context: &FixtureContext<'_>) -> FixtureParts {
        let pods = Pods {
            pods: &self.0.sites,
            context: *context,
        };
        let mut operations = Vec::new();
        for host in pods.hosts() {
            operations.extend(
                self.0
                    .bridge_operations(pods, host, |guest| veth_command(pods, guest)),
            );
            let mac = host_mac(context.number, host);
            for guest in pods.inside_host(host) {
                let gso_options = no_gso_options(pods.underlay_mtu());
                let namespace = pods.namespace(guest.site);
                operations.push(Operation::ip(
                    namespace,
                    format!("link set dev {INTERFACE} {gso_options}"),
                ));
                operations.extend(pods.add_default_route(guest, &mac, INTERFACE));
            }
        }
        for guest in pods.pods {
            operations.extend(routes_to_guest(pods, *guest));
        }
        let services = pods.pods.iter().map(|guest| self.service(context, *guest));
        FixtureParts {
            services: services.collect(),
            ..FixtureParts::from_operations(operations)
        }
    }
}

impl Namespaces {
    /// The services of a guest's first process.
    fn service(&self, context: &FixtureContext<'_>, guest: Pod) -> Service {
        let (run_script, port) = (self.0.run_script(), self.0.port);
        let line = format!("{run_script}exec \"$0\" reflect --listen 0.0.0.0:{port}");
        let neph = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("neph"));
        let neph = neph.to_string_lossy().into_owned();
        Service {
            name: context.name_at(guest.site),
            site: guest.site,
            command: vec!["sh".to_owned(), "-c".to_owned(), line, neph],
            environment: BTreeMap::new(),
            ready: Some(Ready {
                check: ReadyCheck::Tcp(port),
                timeout: READY_TIMEOUT,
            }),
            log: None,
            // Killed at once, like a guest.
            grace: Span::ZERO,
        }
    }
}

/// The line of `ip` that creates the veth between the host and a guest.
fn veth_command(pods: Pods<'_>, guest: Pod) -> String {
    let (tap, mtu) = (tap_name(guest), pods.underlay_mtu());
    let (mac, namespace) = (pod_mac(guest.site), pods.namespace(guest.site));
    format!(
        "link add name {tap} mtu {mtu} type veth peer name {INTERFACE} mtu {mtu} address {mac} \
         netns {namespace}"
    )
}
