//! What balancers with a port share: where they accept connections and where these go. Also builds a proxy
//! from a real program: a certificate if TLS ends there, a configuration, a service.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddrV4;
use std::path::Path;

use neph_model::Span;
use neph_text::{Fields, Port};

use crate::plan::Operation;
use crate::topology::fixture::{Build, Built, FixtureContext, Nodes};
use crate::topology::{Ready, ReadyCheck, Service};

const READY_TIMEOUT: Span = Span::from_secs(10);
const STOP_TIMEOUT: Span = Span::from_secs(2);

/// Where connections are accepted, and where they go.
#[derive(Clone, Debug)]
pub(super) struct Front {
    pub(super) site: usize,
    listen: u16,
    /// Never empty.
    pub(super) to: Vec<SocketAddrV4>,
}

impl Front {
    /// Reads `site`, `listen` and `to`.
    pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Self> {
        let site = nodes.site(table, "site");
        let listen = table.required::<Port>("listen");
        table.needed("to");
        let to = table.one_or_list_with("to", |node| nodes.endpoint(node));
        Some(Self {
            site: site?,
            listen: listen?.value.0,
            to: to?.into_iter().map(|endpoint| endpoint.value).collect(),
        })
    }

    pub(super) fn address(&self, context: &FixtureContext<'_>) -> SocketAddrV4 {
        SocketAddrV4::new(context.topology.sites[self.site].v4.address, self.listen)
    }
}

/// A proxy: accepts connections at one address and opens its own to others.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) front: Front,
    /// Whether TLS ends here.
    pub(super) tls: bool,
    /// Whether its own connections have TLS. Certificates are not verified: it is a lab.
    pub(super) tls_to: bool,
}

/// The program that is the proxy.
pub(super) trait Program: Debug + Send + Sync + 'static {
    /// The suffix of its configuration file.
    const ENDING: &'static str;
    /// The content of that file.
    fn configuration(&self, proxy: &Proxy, context: &FixtureContext<'_>) -> String;
    /// The program and its arguments, with the configuration in `file`.
    fn command(&self, context: &FixtureContext<'_>, file: &str) -> Vec<String>;
}

#[derive(Debug)]
struct Balancer<P> {
    proxy: Proxy,
    program: P,
}

/// A proxy by `program`; `None` if it could not be read.
pub(super) fn balancer(proxy: Option<Proxy>, program: impl Program) -> Option<Box<dyn Build>> {
    let proxy = proxy?;
    Some(Box::new(Balancer { proxy, program }))
}

impl<P: Program> Build for Balancer<P> {
    fn build(&self, context: &FixtureContext<'_>) -> Built {
        let Self { proxy, program } = self;
        let name = context.own_file(P::ENDING);
        let namespace = &context.namespaces[proxy.front.site];
        let text = program.configuration(proxy, context);
        let configuration = Operation::file(namespace, &name, text);
        let command = program.command(context, &path(context.folder, &name));
        let operations = proxy.certify(context).into_iter().chain([configuration]);
        Built {
            services: vec![proxy.service(context, command)],
            ..Built::of(operations.collect())
        }
    }
}

impl Proxy {
    /// Reads the settings that every proxy has.
    pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Self> {
        let front = Front::read(table, nodes);
        let tls = table.optional::<bool>("tls");
        let tls_to = table.optional::<bool>("tls_to");
        Some(Self {
            front: front?,
            tls: tls.is_some_and(|tls| tls.value),
            tls_to: tls_to.is_some_and(|tls| tls.value),
        })
    }

    /// Creates a certificate for the proxy, if it needs one: key and certificate in the file [`certificate`].
    fn certify(&self, context: &FixtureContext<'_>) -> Option<Operation> {
        let namespace = &context.namespaces[self.front.site];
        let address = context.topology.sites[self.front.site].v4.address;
        self.tls.then(|| {
            let file = certificate(context);
            let line = format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                 -subj /CN={address} -addext subjectAltName=IP:{address} -keyout {file} -out {file}"
            );
            Operation::openssl(namespace, line)
        })
    }

    /// The service of the program, ready when it accepts connections.
    fn service(&self, context: &FixtureContext<'_>, command: Vec<String>) -> Service {
        Service {
            name: context.name.to_owned(),
            site: self.front.site,
            command,
            environment: BTreeMap::new(),
            ready: Some(Ready {
                check: ReadyCheck::Tcp(self.front.listen),
                timeout: READY_TIMEOUT,
            }),
            log: None,
            grace: STOP_TIMEOUT,
        }
    }
}

/// The file with a proxy's key and certificate.
pub(super) fn certificate(context: &FixtureContext<'_>) -> String {
    path(context.folder, &context.own_file("pem"))
}

/// A file in the lab's folder.
pub(super) fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}
