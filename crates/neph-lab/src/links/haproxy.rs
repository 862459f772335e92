//! The proxy that ends connections (layer 7), as a real program: `HAProxy`, with or without TLS. It
//! keeps WebSocket connections open and spreads new ones in turn.

use neph_text::{Fields, choice};

use super::proxy::{self, Program, Proxy, certificate_file};
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureKind, Nodes};

#[derive(Debug)]
pub(crate) struct HaProxy;

/// What it understands of what it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Http,
    Tcp,
}

impl FixtureKind for HaProxy {
    fn name(&self) -> &'static str {
        "haproxy"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let proxy = Proxy::read(table, nodes);
        let modes = [("http", Mode::Http), ("tcp", Mode::Tcp)];
        let mode = table.optional_with("mode", |node| choice(node, &modes));
        let mode = mode.map_or(Mode::Http, |mode| mode.value);
        proxy::balancer(proxy, mode)
    }
}

impl Program for Mode {
    const CONFIG_EXTENSION: &'static str = "cfg";

    fn command(&self, _: &FixtureContext<'_>, file: &str) -> Vec<String> {
        let command = ["haproxy", "-db", "-q", "-f", file];
        command.map(str::to_owned).to_vec()
    }

    fn configuration(&self, proxy: &Proxy, context: &FixtureContext<'_>) -> String {
        let mode = match self {
            Mode::Http => "http",
            Mode::Tcp => "tcp",
        };
        let bind_options = if proxy.has_tls {
            format!(" ssl crt {}", certificate_file(context))
        } else {
            String::new()
        };
        let server_options = if proxy.has_server_tls {
            " ssl verify none"
        } else {
            ""
        };
        let servers = proxy.frontend.endpoints.iter().enumerate();
        let servers: Vec<String> = servers
            .map(|(number, endpoint)| format!("  server s{number} {endpoint}{server_options}\n"))
            .collect();
        // As many connections as the default limit of open files allows, two for each.
        format!(
            "global\n  maxconn 400\ndefaults\n  mode {mode}\n  timeout connect 5s\n  \
             timeout client 1h\n  timeout server 1h\n  timeout tunnel 1h\n\
             frontend in\n  bind {}{bind_options}\n  default_backend out\n\
             backend out\n  balance roundrobin\n{}",
            proxy.frontend.address(context),
            servers.concat()
        )
    }
}
