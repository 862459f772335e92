use neph_model::Span;
use neph_text::{Problem, Source};

use crate::topology::{Role, Routing, Topology};

fn parse(text: &str) -> Result<Topology, Vec<Problem>> {
    Topology::parse(&Source::new("lab.toml", format!("version = 1\n{text}")))
}

fn delay_between(topology: &Topology, a: &str, b: &str) -> Span {
    let index = |name| topology.site_index(name).expect("there");
    let ends = [index(a), index(b)];
    let link = topology.links.iter();
    let mut link = link.filter(|link| ends.contains(&link.a) && ends.contains(&link.b));
    link.next().expect("linked").a_to_b.wire.delay
}

#[test]
fn a_mesh_of_twenty_sites_has_a_hundred_and_ninety_links() {
    let text = "[[generate]]\nshape = \"mesh\"\nsites = 20\nlink = { delay = \"5ms\" }\n";
    let topology = parse(text).expect("fine");
    assert_eq!((topology.sites.len(), topology.links.len()), (20, 190));
    assert_eq!(topology.routing, Routing::Direct);
    assert_eq!(delay_between(&topology, "s3", "s17"), Span::from_millis(5));
    let addresses: std::collections::BTreeSet<_> =
        topology.sites.iter().map(|site| site.v4.address).collect();
    assert_eq!(addresses.len(), 20, "each has its own");
}

#[test]
fn the_five_european_sites_have_the_round_trips_that_were_measured() {
    let topology = parse("[[generate]]\nshape = \"mesh\"\nmatrix = \"europe-5\"\n").expect("fine");
    assert_eq!((topology.sites.len(), topology.links.len()), (5, 10));
    let one_way = |a, b| delay_between(&topology, a, b);
    assert_eq!(one_way("amsterdam", "milan"), Span::from_micros(18_250));
    assert_eq!(one_way("ljubljana", "milan"), Span::from_micros(31_050));
    // 711 km: 7.1 ms RTT in straight fibre, times 1.86.
    assert_eq!(one_way("amsterdam", "prague"), Span::from_micros(6_600));
    let prague = &topology.sites[topology.site_index("prague").expect("there")];
    assert_eq!(prague.labels["round_trips"], "estimated from distance");
}

#[test]
fn the_aws_matrix_has_sixteen_regions_and_can_be_reduced() {
    let topology = parse("[[generate]]\nshape = \"mesh\"\nmatrix = \"aws\"\n").expect("fine");
    assert_eq!(
        (topology.sites.len(), topology.links.len()),
        (16, 120),
        "120 pairs"
    );
    let text = "[[generate]]\nshape = \"mesh\"\nmatrix = \"aws\"\n\
                names = [\"oregon\", \"virginia\"]\nsite = { congestion_control = \"cubic\" }\n";
    let reduced = parse(text).expect("fine");
    assert_eq!((reduced.sites.len(), reduced.links.len()), (2, 1));
    assert_eq!(reduced.sites[0].name, "oregon");
    assert_eq!(reduced.sites[0].labels["region"], "us-west-2");
    assert_eq!(
        reduced.sites[0].congestion_control.as_deref(),
        Some("cubic")
    );
    assert_eq!(
        delay_between(&reduced, "virginia", "oregon"),
        delay_between(&topology, "virginia", "oregon")
    );
}

#[test]
fn a_matrix_in_the_file_sets_the_delays() {
    let text = "[[generate]]\nshape = \"mesh\"\nnames = [\"a\", \"b\", \"c\"]\n\
                matrix = [[\"10ms\", \"20ms\"], [\"15ms\"]]\nlink = { loss = \"1%\" }\n";
    let topology = parse(text).expect("fine");
    assert_eq!(delay_between(&topology, "a", "c"), Span::from_millis(10));
    assert_eq!(delay_between(&topology, "b", "c"), Span::from_micros(7_500));
}

#[test]
fn generated_stars_and_tiers_have_routers_and_join_manual_links() {
    let text = "[[generate]]\nshape = \"star\"\nnames = [\"a\", \"b\"]\ncentre = \"hub\"\n\
                [[generate]]\nshape = \"tiers\"\nclients = 2\naccess = { rate = \"15Mbit/s\" }\n\
                core = { delay = \"5ms\" }\ncloud = { delay = \"1ms\" }\n\
                [[link]]\na = \"hub\"\nb = \"core\"\n";
    let topology = parse(text).expect("fine");
    let role = |name| topology.sites[topology.site_index(name).expect("there")].role;
    assert_eq!((role("hub"), role("core")), (Role::Router, Role::Router));
    assert_eq!((role("client2"), role("cloud")), (Role::Site, Role::Site));
    assert_eq!(topology.links.len(), 2 + 4 + 1);
    let from_client =
        crate::route::first_hops(&topology, topology.site_index("client1").expect(""));
    assert!(from_client[topology.site_index("b").expect("there")].is_some());
}

#[test]
fn mistakes_in_generated_topologies_are_reported_once_at_their_token() {
    for (text, position, part) in [
        ("shape = \"mash\"\nsites = 3", "3:9", "did you mean 'mesh'?"),
        (
            "shape = \"mesh\"\nmatrix = \"asw\"",
            "4:10",
            "did you mean 'aws'?",
        ),
        (
            "shape = \"mesh\"\nsites = 9\nlink = { dealy = \"1ms\" }",
            "5:10",
            "did you mean 'delay'?",
        ),
        (
            "shape = \"mesh\"\nmatrix = \"aws\"\nlink = { delay = \"1ms\" }",
            "5:10",
            "leave delay out",
        ),
        ("shape = \"star\"\n", "2:1", "either names"),
        (
            "shape = \"mesh\"\nsites = 3\nmatrix = [[\"1ms\"], [\"2ms\"]]",
            "5:11",
            "the round trips",
        ),
        (
            "shape = \"pair\"\nnames = [\"a\", \"b\"]\ncolour = 1",
            "5:1",
            "known here",
        ),
        ("shape = \"mesh\"\nsites = 65", "4:9", "at most 64"),
        ("shape = \"tiers\"\nclients = 33", "4:11", "1 to 32"),
        ("shape = \"tiers\"\nclouds = 0", "4:10", "1 to 32"),
    ] {
        let mistakes = parse(&format!("[[generate]]\n{text}\n")).expect_err(text);
        assert_eq!(
            mistakes[0].position.to_string(),
            position,
            "{text}: {mistakes:?}"
        );
        assert!(mistakes[0].remedy.contains(part), "{text}: {mistakes:?}");
        let same = mistakes
            .iter()
            .filter(|other| other.position == mistakes[0].position);
        assert_eq!(same.count(), 1, "{mistakes:?}");
    }
}
