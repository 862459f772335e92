//! Designs and what their results show, counted by hand.

use neph_model::Wall;
use neph_text::Source;

use super::InterferenceVerdict::{Independent, Interferes};
use super::*;
use crate::plan::parse;
use crate::rounds::rounds;

const REQUEST: DesignRequest = DesignRequest {
    blocks: None,
    duration: Span::from_secs(5),
    rate: BitRate(100_000_000),
    bytes: ByteSize(20_000_000_000),
};

/// Four sites, and a circuit between each two of them, one way.
fn mesh() -> Plan {
    let names = ["ams", "bra", "lju", "mil"];
    let mut text = "version = 1\nname = \"m\"\ninterval = \"10ms\"\nmessages = 10\n".to_owned();
    for (index, name) in names.iter().enumerate() {
        text.push_str(&format!(
            "[[site]]\nname = \"{name}\"\nagent = \"{name}\"\naddress = \"10.0.0.{index}\"\n\
             reflector = [\"--listen\", \"[::]:8600\", \"--throughput=742{index}\"]\n"
        ));
    }
    for (index, name) in names.iter().enumerate().skip(1) {
        let from = names[..index].iter().map(|name| format!("\"{name}\""));
        let from: Vec<String> = from.collect();
        text.push_str(&format!(
            "[[endpoint]]\nname = \"to {name}\"\nurl = \"udp://{name}:8600\"\nfrom = [{}]\n",
            from.join(", ")
        ));
    }
    parse(&Source::new("m.toml", text)).expect("a good plan")
}

fn pair_names(design: &Design) -> Vec<[String; 2]> {
    let name = |index: usize| circuit_name(&design.circuits[index]);
    let pairs = design.pairs.iter();
    pairs
        .map(|(first, second)| [name(*first), name(*second)])
        .collect()
}

/// A mesh of four has three pairs of circuits without a common end. Its design has six circuits alone and
/// each pair in one round, for any other part of the timetable.
#[test]
fn circuits_without_a_common_host_are_measured_alone_and_at_the_same_time() {
    let design = create_design(&mesh(), &REQUEST).expect("a design");
    let pairs = pair_names(&design);
    let expected_pairs = [
        ["ams -> to bra", "lju -> to mil"],
        ["ams -> to lju", "bra -> to mil"],
        ["bra -> to lju", "ams -> to mil"],
    ];
    assert_eq!(pairs, expected_pairs.map(|pair| pair.map(str::to_owned)));
    assert_eq!(design.separated_pairs.len(), 12);
    // Two shares of three pairs: 2 * 6 / 2^n is at most 0.05 from n = 8 on.
    assert_eq!(design.blocks, 9);
    // 9 blocks of 12 transfers of 62.5 MB.
    assert_eq!(design.bytes, ByteSize(9 * 12 * 62_500_000));

    let plan = parse(&Source::new("d.toml", design.text)).expect("a good plan");
    assert_eq!((plan.blocks, plan.name.as_str()), (9, "interference m"));
    let matrix = scenarios(&plan);
    let plan_rounds = rounds(&plan, &matrix);
    let mut joint_pairs = Vec::new();
    let mut single_count = 0;
    for round in plan_rounds.scenarios() {
        let round_scenarios: Vec<_> = round.iter().map(|index| &matrix[*index as usize]).collect();
        let measures = round_scenarios
            .iter()
            .map(|scenario| scenario.measure().to_string());
        assert!(
            measures
                .clone()
                .all(|measure| measure == "tcp throughput 100Mbit/s")
        );
        let circuits = round_scenarios
            .iter()
            .filter_map(|scenario| scenario.parameters.circuit());
        let circuits: Vec<String> = circuits.cloned().collect();
        let networks = round_scenarios
            .iter()
            .filter_map(|scenario| scenario.parameters.network());
        let networks: Vec<&str> = networks.map(String::as_str).collect();
        match circuits.as_slice() {
            [_] => {
                assert_eq!(networks, ["alone"]);
                single_count += 1;
            }
            [a, b] => {
                assert_eq!(networks, [format!("with {b}"), format!("with {a}")]);
                joint_pairs.push([a.clone(), b.clone()]);
            }
            _ => panic!("{circuits:?}"),
        }
    }
    joint_pairs.sort();
    let mut expected_pairs = pairs;
    expected_pairs.sort();
    assert_eq!((single_count, joint_pairs), (6, expected_pairs));
}

#[test]
fn separated_circuits_are_omitted_and_oversized_designs_refused() {
    let link = "[[shared_link]]\nname = \"alps\"\nsites = [\"mil\"]\n\
                [[shared_link]]\nname = \"x\"\ncircuits = [\"ams -> to bra\", \"lju -> to mil\", \"ams -> to lju\", \
                \"bra -> to mil\"]\n";
    let text = mesh().text + link;
    let plan = parse(&Source::new("m.toml", text.clone())).expect("a good plan");
    let reduced_design = create_design(&plan, &REQUEST).expect("a design");
    assert_eq!(
        pair_names(&reduced_design),
        [["bra -> to lju", "ams -> to mil"]]
    );
    let separated = reduced_design
        .separated_pairs
        .iter()
        .map(|(.., shared)| shared.to_string());
    assert_eq!(separated.filter(|shared| shared == "link x").count(), 2);
    let shared_by_all = link.replace(
        "\"ams -> to bra\"",
        "\"ams -> to mil\", \"bra -> to lju\", \"ams -> to bra\"",
    );
    let plan =
        parse(&Source::new("m.toml", text.replace(link, &shared_by_all))).expect("a good plan");
    assert_eq!(create_design(&plan, &REQUEST), Err(DesignError::NoPairs));

    let two_blocks = DesignRequest {
        blocks: Some(2),
        bytes: ByteSize(2 * 12 * 62_500_000),
        ..REQUEST
    };
    assert_eq!(
        create_design(&mesh(), &two_blocks).expect("it fits").blocks,
        2
    );
    let fewer_bytes = DesignRequest {
        bytes: ByteSize(two_blocks.bytes.0 - 1),
        ..two_blocks
    };
    let error = create_design(&mesh(), &fewer_bytes)
        .expect_err("too much")
        .to_string();
    assert!(
        error.starts_with(
            "24 transfers of 5 s at 100Mbit/s are up to 1.4 GiB, more than the 1.4 GiB"
        ),
        "{error}"
    );
}

/// Readings of two circuits in each block: what each gets alone and while the other runs, Mbit/s.
fn readings(blocks: &[([f64; 2], [f64; 2])]) -> Vec<TransferReading> {
    let mut readings = Vec::new();
    for (block, (alone_rates, joint_rates)) in (0..).zip(blocks) {
        let reading = |circuit: &str, network: &str, from: i64, megabits: f64| TransferReading {
            circuit: circuit.to_owned(),
            network: network.to_owned(),
            block,
            from: Wall::from_unix_nanos(from * 1_000_000_000),
            until: Wall::from_unix_nanos((from + 5) * 1_000_000_000),
            goodput_bit_s: megabits * 1e6,
        };
        readings.push(reading("a", "alone", 0, alone_rates[0]));
        readings.push(reading("b", "alone", 10, alone_rates[1]));
        readings.push(reading("a", "with b", 20, joint_rates[0]));
        readings.push(reading("b", "with a", 20, joint_rates[1]));
    }
    readings
}

fn only_finding(readings: &[TransferReading]) -> PairFinding {
    let findings = evaluate_pairs(readings, 0.1);
    let [finding] = <[PairFinding; 1]>::try_from(findings).expect("one pair");
    finding
}

/// Seven blocks are the fewest that can decide two shares: 2 * 2 / 2^7 is 0.03. Six are not, 0.06.
#[test]
fn circuits_with_halved_goodput_interfere_from_seven_blocks_on() {
    let halved = [([20.0, 20.0], [10.0, 10.0]); 7];
    let finding = only_finding(&readings(&halved));
    assert_eq!(finding.verdict, Interferes);
    let share = &finding.shares[0];
    assert_eq!((share.circuit.as_str(), share.blocks), ("a", 7));
    assert!((share.estimate.expect("seven blocks") - 0.5).abs() < 1e-9);
    let interval = share.interval.expect("seven blocks");
    assert!((interval.low - 0.5).abs() < 1e-9 && (interval.high - 0.5).abs() < 1e-9);
    assert!((share.alone_bit_s - 20e6).abs() < 1.0);

    let finding = only_finding(&readings(&halved[..6]));
    assert_eq!(
        finding.verdict,
        InterferenceVerdict::Unknown {
            more_blocks: Some(1)
        }
    );
    assert_eq!(finding.shares[1].interval, None);
}

#[test]
fn circuits_are_independent_if_both_get_their_solo_throughput() {
    // Shares of 0.98 to 1.02.
    let near_equal = [1.0, 0.98, 1.01, 0.99, 1.02, 1.0, 0.99]
        .map(|share| ([20.0, 10.0], [20.0 * share, 10.0 / share]));
    assert_eq!(only_finding(&readings(&near_equal)).verdict, Independent);
    // One that is disturbed is enough: the other may have had the link for itself.
    let one_disturbed = [([20.0, 10.0], [20.0, 4.0]); 7];
    assert_eq!(only_finding(&readings(&one_disturbed)).verdict, Interferes);
}

/// Shares around the margin show nothing, however many blocks there are: none are named. A share of 80 % that
/// spreads takes more blocks, and so many are named.
#[test]
fn inconclusive_pairs_are_unknown_with_the_blocks_they_need() {
    let at_margin = [0.85, 0.95, 0.88, 0.92, 0.89, 0.91, 0.9];
    let at_margin = at_margin.map(|share| ([20.0, 20.0], [20.0 * share, 20.0 * share]));
    let InterferenceVerdict::Unknown { more_blocks } = only_finding(&readings(&at_margin)).verdict
    else {
        panic!("it is at the margin");
    };
    assert!(
        more_blocks.is_none_or(|blocks| blocks > 50),
        "{more_blocks:?}"
    );
    let spread_shares = [0.65, 0.95, 0.7, 0.92, 0.75, 0.85, 0.8];
    let spread_shares = spread_shares.map(|share| ([20.0, 20.0], [20.0 * share, 20.0 * share]));
    let InterferenceVerdict::Unknown {
        more_blocks: Some(more_blocks),
    } = only_finding(&readings(&spread_shares)).verdict
    else {
        panic!("it spreads");
    };
    assert!((1..40).contains(&more_blocks), "{more_blocks}");
}

#[test]
fn non_concurrent_transfers_are_ignored() {
    let mut shifted = readings(&[([20.0, 20.0], [10.0, 10.0]); 7]);
    for reading in shifted
        .iter_mut()
        .filter(|reading| reading.network == "with a" && reading.block == 0)
    {
        reading.from = Wall::from_unix_nanos(22_000_000_000);
        reading.until = Wall::from_unix_nanos(27_000_000_000);
    }
    let finding = only_finding(&shifted);
    assert_eq!(
        (finding.shares[0].blocks, finding.verdict),
        (
            6,
            InterferenceVerdict::Unknown {
                more_blocks: Some(1)
            }
        )
    );
    // What was lost altogether is no share of nothing.
    shifted.retain(|reading| reading.network != "alone");
    let finding = only_finding(&shifted);
    assert_eq!(
        (finding.shares[0].blocks, finding.shares[0].estimate),
        (0, None)
    );
    assert!(matches!(
        finding.verdict,
        InterferenceVerdict::Unknown {
            more_blocks: Some(_)
        }
    ));
    assert_eq!(evaluate_pairs(&[], 0.1), []);
}

#[test]
fn circuits_that_all_disturb_each_other_share_one_link() {
    let finding = |a: &str, b: &str, verdict: InterferenceVerdict| {
        let share = |circuit: &str| GoodputShare {
            circuit: circuit.to_owned(),
            blocks: 7,
            estimate: None,
            interval: None,
            alone_bit_s: 0.0,
        };
        PairFinding {
            shares: [share(a), share(b)],
            verdict,
        }
    };
    let findings = [
        finding("a", "b", Interferes),
        finding("b", "c", Interferes),
        finding("a", "c", Interferes),
        finding("a", "d", Independent),
        finding("e", "f", Interferes),
    ];
    assert_eq!(
        shared_links(&findings),
        [vec!["a", "b", "c"], vec!["e", "f"]]
    );
    assert_eq!(
        shared_links(&findings[..2]),
        [vec!["a", "b"], vec!["b", "c"]]
    );
    assert_eq!(shared_links(&findings[3..4]), Vec::<Vec<String>>::new());
}
