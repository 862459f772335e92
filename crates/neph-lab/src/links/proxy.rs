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

const PATIENCE: Span = Span::from_secs(10);
const GRACE: Span = Span::from_secs(2);

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

    pub(super) fn address(&self, ground: &FixtureContext<'_>) -> SocketAddrV4 {
        SocketAddrV4::new(ground.topology.sites[self.site].v4.address, self.listen)
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
    fn configuration(&self, proxy: &Proxy, ground: &FixtureContext<'_>) -> String;
    /// The program and its arguments, with the configuration in `file`.
    fn command(&self, ground: &FixtureContext<'_>, file: &str) -> Vec<String>;
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
    fn build(&self, ground: &FixtureContext<'_>) -> Built {
        let Self { proxy, program } = self;
        let name = ground.own_file(P::ENDING);
        let namespace = &ground.namespaces[proxy.front.site];
        let text = program.configuration(proxy, ground);
        let configuration = Operation::file(namespace, &name, text);
        let command = program.command(ground, &path(ground.folder, &name));
        let operations = proxy.certify(ground).into_iter().chain([configuration]);
        Built {
            services: vec![proxy.service(ground, command)],
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
    fn certify(&self, ground: &FixtureContext<'_>) -> Option<Operation> {
        let namespace = &ground.namespaces[self.front.site];
        let address = ground.topology.sites[self.front.site].v4.address;
        self.tls.then(|| {
            let file = certificate(ground);
            let line = format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                 -subj /CN={address} -addext subjectAltName=IP:{address} -keyout {file} -out {file}"
            );
            Operation::openssl(namespace, line)
        })
    }

    /// The service of the program, ready when it accepts connections.
    fn service(&self, ground: &FixtureContext<'_>, command: Vec<String>) -> Service {
        Service {
            name: ground.name.to_owned(),
            site: self.front.site,
            command,
            environment: BTreeMap::new(),
            ready: Some(Ready {
                check: ReadyCheck::Tcp(self.front.listen),
                timeout: PATIENCE,
            }),
            log: None,
            grace: GRACE,
        }
    }
}

/// The file with a proxy's key and certificate.
pub(super) fn certificate(ground: &FixtureContext<'_>) -> String {
    path(ground.folder, &ground.own_file("pem"))
}

/// A file in the lab's folder.
pub(super) fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}
