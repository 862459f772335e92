use super::*;

fn targets(allow: &[&str], deny: &[&str]) -> AllowedTargets {
    let networks = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().expect("a network"))
            .collect()
    };
    AllowedTargets {
        allow: networks(allow),
        deny: networks(deny),
        ports: vec![53..=53, 8000..=8999],
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn targets_not_allowed_are_refused_and_denials_take_precedence() {
    let targets = targets(&["10.0.0.0/8", "2001:db8::/32"], &["10.9.0.0/16"]);
    for good in [
        "10.0.0.1:53",
        "10.8.9.9:8500",
        "[2001:db8::7]:53",
        "[::ffff:10.0.0.1]:53",
        "10.0.0.1:0",
    ] {
        assert_eq!(targets.check(at(good)), Ok(()), "{good}");
    }
    let refused = |text: &str| targets.check(at(text)).expect_err(text);
    for outside in [
        "192.0.2.1:53",
        "127.0.0.1:53",
        "0.0.0.0:53",
        "[::1]:53",
        "[::]:53",
        "169.254.169.254:8000",
    ] {
        assert!(
            matches!(refused(outside), Forbidden::NotAllowed(_)),
            "{outside}"
        );
    }
    for denied in ["10.9.0.1:53", "[::ffff:10.9.0.1]:53", "[64:ff9b::a09:1]:53"] {
        assert!(
            matches!(refused(denied), Forbidden::Denied { .. }),
            "{denied}"
        );
    }
    assert_eq!(refused("10.0.0.1:22"), Forbidden::Port(22));
}

#[test]
fn broadcast_and_multicast_addresses_are_never_allowed() {
    let anything = targets(&["0.0.0.0/0", "::/0"], &[]);
    for group_address in [
        "224.0.0.1:53",
        "255.255.255.255:53",
        "[ff02::1]:53",
        "[::ffff:224.0.0.1]:53",
    ] {
        assert!(
            matches!(
                anything.check(at(group_address)),
                Err(Forbidden::GroupAddress(_))
            ),
            "{group_address}"
        );
    }
}

#[test]
fn nothing_is_allowed_by_default() {
    assert!(AllowedTargets::default().check(at("192.0.2.1:53")).is_err());
    assert!(
        Permit::new(AllowedTargets::default(), Budgets::default(), 0)
            .check(at("192.0.2.1:53"))
            .is_err()
    );
    assert!(Permit::ANYTHING.check(at("192.0.2.1:53")).is_ok());
}

#[test]
fn the_daily_byte_budget_survives_a_restart() {
    let budgets = Budgets {
        day_bytes: Some(1_000),
        ..Budgets::default()
    };
    let permit = Permit::new(AllowedTargets::default(), budgets, 600);
    assert!(permit.message(300, 0));
    assert!(!permit.message(200, 0), "900 of 1000 are gone");
    assert_eq!(permit.room(0), 100);
    permit.spend(100, 0);
    assert!(permit.is_spent() && permit.room(0) == 0);
    assert_eq!(permit.spent_today(), 1_000);
    permit.begin_day();
    assert!(!permit.is_spent() && permit.message(1_000, 0));
}

#[test]
fn clones_share_one_budget() {
    let budgets = Budgets {
        messages: Some(10),
        rate: Some(BitRate(8_000_000)),
        ..Budgets::default()
    };
    let permit = Permit::new(AllowedTargets::default(), budgets, 0);
    let other = permit.clone();
    assert!(permit.message(10, 0));
    assert!(
        !other.message(10, 0),
        "one message is a tenth of a second's worth"
    );
    assert!(other.message(10, 100_000_000));
    let large = 1 << 20;
    assert!(
        permit.message(large, 200_000_000),
        "it goes when the bucket is full"
    );
    assert!(!other.message(10, 300_000_000), "and is paid for");
}
