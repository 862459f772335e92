//! What balancers with a port share: where they accept connections and where these go. Also builds a proxy
//! from a real program: a certificate if TLS ends there, a configuration, a service.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddrV4;
use std::path::Path;

use neph_model::Span;
use neph_text::{Fields, Port};

use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureParts, Nodes};
use crate::topology::{Ready, ReadyCheck, Service};

const READY_TIMEOUT: Span = Span::from_secs(10);
const STOP_TIMEOUT: Span = Span::from_secs(2);

/// Where connections are accepted, and where they go.
#[derive(Clone, Debug)]
pub(super) struct Frontend {
    pub(super) site: usize,
    port: u16,
    /// Never empty.
    pub(super) endpoints: Vec<SocketAddrV4>,
}

impl Frontend {
    /// Reads `site`, `listen` and `to`.
    pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Self> {
        let site = nodes.site(table, "site");
        let port = table.required::<Port>("listen");
        table.needed("to");
        let endpoints = table.one_or_list_with("to", |node| nodes.endpoint(node));
        Some(Self {
            site: site?,
            port: port?.value.0,
            endpoints: endpoints?
                .into_iter()
                .map(|endpoint| endpoint.value)
                .collect(),
        })
    }

    pub(super) fn address(&self, context: &FixtureContext<'_>) -> SocketAddrV4 {
        SocketAddrV4::new(context.topology.sites[self.site].v4.address, self.port)
    }
}

/// A proxy: accepts connections at one address and opens its own to others.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) frontend: Frontend,
    /// Whether TLS ends here.
    pub(super) has_tls: bool,
    /// Whether its own connections have TLS. Certificates are not verified: it is a lab.
    pub(super) has_server_tls: bool,
}

/// The program that is the proxy.
pub(super) trait Program: Debug + Send + Sync + 'static {
    /// The suffix of its configuration file.
    const CONFIG_EXTENSION: &'static str;
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
pub(super) fn balancer(
    proxy: Option<Proxy>,
    program: impl Program,
) -> Option<Box<dyn FixtureBuilder>> {
    let proxy = proxy?;
    Some(Box::new(Balancer { proxy, program }))
}

impl<P: Program> FixtureBuilder for Balancer<P> {
    fn build(&self, context: &FixtureContext<'_>) -> FixtureParts {
        let Self { proxy, program } = self;
        let configuration_file = context.own_file(P::CONFIG_EXTENSION);
        let namespace = &context.namespaces[proxy.frontend.site];
        let configuration_text = program.configuration(proxy, context);
        let configuration = Operation::file(namespace, &configuration_file, configuration_text);
        let command = program.command(context, &file_path(context.folder, &configuration_file));
        let operations = proxy
            .certificate_operation(context)
            .into_iter()
            .chain([configuration]);
        FixtureParts {
            services: vec![proxy.service(context, command)],
            ..FixtureParts::from_operations(operations.collect())
        }
    }
}

impl Proxy {
    /// Reads the settings that every proxy has.
    pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Self> {
        let frontend = Frontend::read(table, nodes);
        let tls = table.optional::<bool>("tls");
        let server_tls = table.optional::<bool>("tls_to");
        Some(Self {
            frontend: frontend?,
            has_tls: tls.is_some_and(|tls| tls.value),
            has_server_tls: server_tls.is_some_and(|tls| tls.value),
        })
    }

    /// Creates a certificate for the proxy, if it needs one: key and certificate in the file [`certificate_file`].
    fn certificate_operation(&self, context: &FixtureContext<'_>) -> Option<Operation> {
        let namespace = &context.namespaces[self.frontend.site];
        let address = context.topology.sites[self.frontend.site].v4.address;
        self.has_tls.then(|| {
            let file = certificate_file(context);
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
            site: self.frontend.site,
            command,
            environment: BTreeMap::new(),
            ready: Some(Ready {
                check: ReadyCheck::Tcp(self.frontend.port),
                timeout: READY_TIMEOUT,
            }),
            log: None,
            grace: STOP_TIMEOUT,
        }
    }
}

/// The file with a proxy's key and certificate.
pub(super) fn certificate_file(context: &FixtureContext<'_>) -> String {
    file_path(context.folder, &context.own_file("pem"))
}

/// A file in the lab's folder.
pub(super) fn file_path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}
