//! The layer 7 proxy as a real program: nginx, with or without TLS, as in Kubernetes' ingress. It reads a
//! complete request before it forwards it.

use neph_text::Fields;

use super::proxy::{self, Program, Proxy, certificate_file, file_path};
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureKind, Nodes};

#[derive(Debug)]
pub(crate) struct Nginx;

impl FixtureKind for Nginx {
    fn name(&self) -> &'static str {
        "nginx"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        proxy::balancer(Proxy::read(table, nodes), Self)
    }
}

impl Program for Nginx {
    const CONFIG_EXTENSION: &'static str = "conf";

    fn command(&self, context: &FixtureContext<'_>, file: &str) -> Vec<String> {
        let folder = format!("{}/", context.folder.display());
        let command = ["nginx", "-p", &folder, "-c", file, "-e", "stderr"];
        command.map(str::to_owned).to_vec()
    }

    fn configuration(&self, proxy: &Proxy, context: &FixtureContext<'_>) -> String {
        let file = |suffix: &str| file_path(context.folder, &context.own_file(suffix));
        let (listen_options, certificate_lines) = if proxy.has_tls {
            let file = certificate_file(context);
            let lines = format!("    ssl_certificate {file};\n    ssl_certificate_key {file};\n");
            (" ssl", lines)
        } else {
            ("", String::new())
        };
        let scheme = if proxy.has_server_tls {
            "https"
        } else {
            "http"
        };
        let servers: Vec<String> = proxy
            .frontend
            .endpoints
            .iter()
            .map(|endpoint| format!("server {endpoint};"))
            .collect();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|suffix| format!("  {suffix}_temp_path {};\n", file(suffix)))
            .concat();
        format!(
            "daemon off;\nmaster_process off;\npid {};\nerror_log stderr warn;\n\
             events {{ worker_connections 400; }}\nhttp {{\n{temporary}  access_log off;\n  \
             client_max_body_size 0;\n  \
             map $http_upgrade $connection_ {{ default upgrade; '' ''; }}\n  \
             upstream out {{ {} keepalive 16; }}\n  server {{\n    listen {}{listen_options};\n{certificate_lines}    \
             location / {{\n      proxy_pass {scheme}://out;\n      proxy_http_version 1.1;\n      \
             proxy_set_header Host $http_host;\n      proxy_set_header Upgrade $http_upgrade;\n      \
             proxy_set_header Connection $connection_;\n      proxy_read_timeout 1h;\n      \
             proxy_send_timeout 1h;\n    }}\n  }}\n}}\n",
            file("pid"),
            servers.join(" "),
            proxy.frontend.address(context),
        )
    }
}
