//! The proxy that ends connections (layer 7), as a real program: `HAProxy`, with or without TLS. It
//! keeps WebSocket connections open and spreads new ones in turn.

use neph_text::{Fields, choice};

use super::proxy::{Proxy, certificate, path};
use crate::fixture::{Build, Built, FixtureKind, Ground, Nodes};
use crate::plan::Operation;

#[derive(Debug)]
pub(crate) struct HaProxy;

/// What it understands of what it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Http,
    Tcp,
}

#[derive(Debug)]
struct Balancer {
    proxy: Proxy,
    mode: Mode,
}

impl FixtureKind for HaProxy {
    fn name(&self) -> &'static str {
        "haproxy"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn Build>> {
        let proxy = Proxy::read(table, nodes);
        let modes = [("http", Mode::Http), ("tcp", Mode::Tcp)];
        let mode = table.optional_with("mode", |node| choice(node, &modes));
        Some(Box::new(Balancer {
            proxy: proxy?,
            mode: mode.map_or(Mode::Http, |mode| mode.value),
        }))
    }
}

impl Build for Balancer {
    fn build(&self, ground: &Ground<'_>) -> Built {
        let name = format!("{}.cfg", ground.name);
        let namespace = &ground.namespaces[self.proxy.site];
        let configuration = Operation::file(namespace, &name, self.configuration(ground));
        let file = path(ground.folder, &name);
        let command = ["haproxy", "-db", "-q", "-f", &file];
        let service = self
            .proxy
            .service(ground, command.map(str::to_owned).to_vec());
        Built {
            operations: self
                .proxy
                .certify(ground)
                .into_iter()
                .chain([configuration])
                .collect(),
            services: vec![service],
            ..Built::default()
        }
    }
}

impl Balancer {
    fn configuration(&self, ground: &Ground<'_>) -> String {
        let mode = match self.mode {
            Mode::Http => "http",
            Mode::Tcp => "tcp",
        };
        let secure = if self.proxy.tls {
            format!(" ssl crt {}", certificate(ground))
        } else {
            String::new()
        };
        let onwards = if self.proxy.tls_to {
            " ssl verify none"
        } else {
            ""
        };
        let servers = self.proxy.to.iter().enumerate();
        let servers: Vec<String> = servers
            .map(|(number, to)| format!("  server s{number} {to}{onwards}\n"))
            .collect();
        // As many connections as the default limit of open files allows, two for each.
        format!(
            "global\n  maxconn 400\ndefaults\n  mode {mode}\n  timeout connect 5s\n  \
             timeout client 1h\n  timeout server 1h\n  timeout tunnel 1h\n\
             frontend in\n  bind {}{secure}\n  default_backend out\n\
             backend out\n  balance roundrobin\n{}",
            self.proxy.address(ground),
            servers.concat()
        )
    }
}
