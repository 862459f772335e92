//! The layer 4 balancer: nftables in the balancer's namespace, as in kube-proxy. A new connection goes to one
//! of several endpoints, at random or by its source address, and stays there. By default it has the
//! balancer's source address (masquerade), so that replies return through the balancer.

use std::fmt::Write;
use std::net::SocketAddrV4;

use neph_text::{Fields, choice};

use super::proxy::Frontend;
use crate::plan::Operation;
use crate::topology::fixture::{FixtureBuilder, FixtureContext, FixtureKind, FixtureParts, Nodes};

#[derive(Debug)]
pub(crate) struct L4;

/// How the endpoint of a new connection is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    Random,
    Source,
}

/// The source address of a balanced connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The balancer's address.
    Masquerade,
    /// The client's address; the endpoints must reply through the balancer.
    Kept,
}

#[derive(Debug)]
struct Balancer {
    frontend: Frontend,
    spread: Spread,
    origin: Origin,
}

impl FixtureKind for L4 {
    fn name(&self) -> &'static str {
        "l4"
    }

    fn read(&self, table: &mut Fields<'_>, nodes: Nodes<'_>) -> Option<Box<dyn FixtureBuilder>> {
        let frontend = Frontend::read(table, nodes);
        let spreads = [("random", Spread::Random), ("source", Spread::Source)];
        let spread = table.optional_with("spread", |node| choice(node, &spreads));
        let masquerade = table.optional::<bool>("masquerade");
        let origin = match masquerade.map(|masquerade| masquerade.value) {
            Some(false) => Origin::Kept,
            _ => Origin::Masquerade,
        };
        Some(Box::new(Balancer {
            frontend: frontend?,
            spread: spread.map_or(Spread::Random, |spread| spread.value),
            origin,
        }))
    }
}

impl FixtureBuilder for Balancer {
    fn build(&self, context: &FixtureContext<'_>) -> FixtureParts {
        let namespace = &context.namespaces[self.frontend.site];
        let frontend_address = self.frontend.address(context);
        FixtureParts::from_operations(vec![
            // With a single link it would not forward otherwise.
            Operation::sysctl(namespace, "net.ipv4.ip_forward", "1"),
            Operation::nft(namespace, self.rules(context.name, frontend_address)),
        ])
    }
}

impl Balancer {
    fn rules(&self, name: &str, frontend_address: SocketAddrV4) -> String {
        let (address, port) = (frontend_address.ip(), frontend_address.port());
        let count = self.frontend.endpoints.len();
        let endpoint_choice = match self.spread {
            Spread::Random => format!("numgen random mod {count}"),
            Spread::Source => format!("jhash ip saddr mod {count}"),
        };
        let endpoints = self.frontend.endpoints.iter().enumerate();
        let endpoints: Vec<String> = endpoints
            .map(|(number, endpoint)| format!("{number} : {} . {}", endpoint.ip(), endpoint.port()))
            .collect();
        let endpoints = endpoints.join(", ");
        let jump_rule = format!("ip daddr {address} tcp dport {port} jump spread");
        let mut rules = format!("table ip balancer-{name} {{\n");
        let mut add_chain = |name: &str, lines: &[&str]| {
            // Writing to a String never fails.
            let _ = writeln!(
                rules,
                "  chain {name} {{\n    {}\n  }}",
                lines.join("\n    ")
            );
        };
        let spread_rule = format!(
            "meta l4proto tcp dnat ip addr . port to {endpoint_choice} map {{ {endpoints} }}"
        );
        add_chain("spread", &[&spread_rule]);
        add_chain(
            "come",
            &["type nat hook prerouting priority dstnat;", &jump_rule],
        );
        add_chain("own", &["type nat hook output priority -100;", &jump_rule]);
        if self.origin == Origin::Masquerade {
            let masquerade_rule =
                format!("ct status dnat ct original ip daddr {address} snat to {address}");
            add_chain(
                "leave",
                &[
                    "type nat hook postrouting priority srcnat;",
                    &masquerade_rule,
                ],
            );
        }
        rules + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::topology::Topology;

    fn parse(balancer: &str) -> Result<Topology, Vec<neph_text::Problem>> {
        let text = format!(
            "version = 1\nsite = [{{name = \"a\"}}, {{name = \"b\"}}]\n\
             link = [{{a = \"a\", b = \"b\"}}]\n[[balancer]]\nname = \"front\"\n{balancer}\n"
        );
        Topology::parse(&Source::new("lab.toml", text))
    }

    #[test]
    fn a_balancer_is_one_file_of_rules() {
        let text = "kind = \"l4\"\nsite = \"a\"\nlisten = 80\nto = [\"b:8080\", \"10.1.1.1:81\"]\n\
                    spread = \"source\"";
        let topology = parse(text).expect("fine");
        let steps = crate::Lab::plan(&topology, &crate::UpOptions::with_name("x")).expect("a plan");
        let rules = steps.iter().find(|step| step.line.starts_with("nft -f -"));
        let rules = &rules.expect("there").line;
        let spread = "dnat ip addr . port to jhash ip saddr mod 2 \
                      map { 0 : 10.78.0.2 . 8080, 1 : 10.1.1.1 . 81 }";
        assert!(rules.contains(spread), "{rules}");
        assert!(rules.contains("snat to 10.78.0.1"), "{rules}");
    }

    #[test]
    fn mistakes_are_reported_at_their_token() {
        for (text, position, part) in [
            ("kind = \"l5\"", "6:8", "did you mean 'l4'?"),
            (
                "kind = \"l4\"\nsite = \"a\"\nlisten = 80\nto = [\"bb:1\"]",
                "9:7",
                "did you mean 'b'?",
            ),
            (
                "kind = \"l4\"\nsite = \"a\"\nlisten = 80\nto = \"b\"",
                "9:6",
                "server:8080",
            ),
            (
                "kind = \"l4\"\nsite = \"a\"\nlisten = 80\nto = \"b:1\"\nspraed = \"source\"",
                "10:1",
                "did you mean 'spread'?",
            ),
        ] {
            let mistakes = parse(text).expect_err(text);
            assert_eq!(mistakes[0].position.to_string(), position, "{mistakes:?}");
            assert!(mistakes[0].remedy.contains(part), "{mistakes:?}");
        }
    }
}
