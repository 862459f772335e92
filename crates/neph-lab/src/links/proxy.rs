//! What the proxies have in common: what their tables say, and a certificate where TLS ends.

use std::net::SocketAddrV4;
use std::path::Path;

use neph_model::Span;
use neph_text::{Fields, Port};

use crate::fixture::{Ground, Nodes};
use crate::plan::Operation;
use crate::topology::{Ready, ReadyCheck, Service};

const PATIENCE: Span = Span::from_secs(10);
const GRACE: Span = Span::from_secs(2);

/// A proxy: takes connections at one place and makes its own to others.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) site: usize,
    pub(super) listen: u16,
    pub(super) to: Vec<SocketAddrV4>,
    /// Whether TLS ends here.
    pub(super) tls: bool,
    /// Whether its own connections have TLS. Certificates are not verified: it is a lab.
    pub(super) tls_to: bool,
}

impl Proxy {
    /// Reads what every proxy has.
    pub(super) fn read(table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Self> {
        let site = nodes.site(table, "site");
        let listen = table.required::<Port>("listen");
        table.needed("to");
        let to = table.one_or_list_with("to", |node| nodes.endpoint(node));
        let tls = table.optional::<bool>("tls");
        let tls_to = table.optional::<bool>("tls_to");
        Some(Self {
            site: site?,
            listen: listen?.value.0,
            to: to?.into_iter().map(|endpoint| endpoint.value).collect(),
            tls: tls.is_some_and(|tls| tls.value),
            tls_to: tls_to.is_some_and(|tls| tls.value),
        })
    }

    pub(super) fn address(&self, ground: &Ground<'_>) -> SocketAddrV4 {
        SocketAddrV4::new(ground.topology.sites[self.site].v4.address, self.listen)
    }

    /// What makes a certificate for the proxy, where it needs one: key and certificate in the
    /// file [`certificate`].
    pub(super) fn certify(&self, ground: &Ground<'_>) -> Option<Operation> {
        let namespace = &ground.namespaces[self.site];
        let address = ground.topology.sites[self.site].v4.address;
        self.tls.then(|| {
            let file = certificate(ground);
            let line = format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                 -subj /CN={address} -addext subjectAltName=IP:{address} -keyout {file} -out {file}"
            );
            Operation::openssl(namespace, line)
        })
    }

    /// The program that does the work, ready when it takes connections.
    pub(super) fn service(&self, ground: &Ground<'_>, command: Vec<String>) -> Service {
        Service {
            name: ground.name.to_owned(),
            site: self.site,
            command,
            environment: std::collections::BTreeMap::new(),
            ready: Some(Ready {
                check: ReadyCheck::Tcp(self.listen),
                timeout: PATIENCE,
            }),
            log: None,
            grace: GRACE,
        }
    }
}

/// The file with a proxy's key and certificate.
pub(super) fn certificate(ground: &Ground<'_>) -> String {
    path(ground.folder, &format!("{}.pem", ground.name))
}

/// A file in the lab's folder.
pub(super) fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}
