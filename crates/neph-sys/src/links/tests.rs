use super::*;

fn link_of(name: &str, is_up: bool) -> Link {
    let name = name.to_owned();
    Link { name, is_up }
}

/// A message about interface 7: its address first, then its name.
fn message(kind: u16, flags: u32) -> Vec<u8> {
    let mut about = vec![0, 0, 1, 0];
    about.extend(7_u32.to_ne_bytes());
    about.extend(flags.to_ne_bytes());
    about.extend([0; 4]);
    about.extend([10_u16, 1].map(u16::to_ne_bytes).as_flattened());
    about.extend([2; 6]);
    about.extend([0; 2]);
    about.extend([9_u16, NAME].map(u16::to_ne_bytes).as_flattened());
    about.extend(b"eth1\0\0\0\0");
    let length = u32::try_from(HEADER + about.len()).expect("short");
    let mut message = length.to_ne_bytes().to_vec();
    message.extend([kind, 0].map(u16::to_ne_bytes).as_flattened());
    message.extend([0; 8]);
    message.extend(about);
    message
}

#[test]
fn link_messages_report_up_down_and_removal() {
    let datagram = [
        message(NEW, UP | 0x40),
        message(NEW, 0x40),
        message(GONE, UP),
    ]
    .concat();
    let present = |is_up| Reported::Present(7, link_of("eth1", is_up));
    assert_eq!(
        links(&datagram),
        [present(true), present(false), Reported::Removed(7)]
    );
}

#[test]
fn a_bridge_message_about_a_leaving_port_does_not_remove_the_interface() {
    const AF_BRIDGE: u8 = 7;
    let mut left = message(GONE, UP | 0x40);
    assert_eq!(links(&left), [Reported::Removed(7)], "by itself");
    left[HEADER] = AF_BRIDGE;
    assert_eq!(links(&left), []);
}

#[test]
fn an_interface_without_name_is_skipped() {
    let mut nameless = message(NEW, UP);
    let at = nameless.len() - 10;
    nameless[at..at + 2].copy_from_slice(&(NAME + 1).to_ne_bytes());
    assert_eq!(links(&nameless), []);
}

#[test]
fn a_truncated_netlink_datagram_is_parsed_up_to_its_end() {
    let datagram = [message(NEW, UP), message(GONE, 0)].concat();
    for end in 0..datagram.len() {
        assert!(links(&datagram[..end]).len() <= 1, "{end}");
    }
    // Lengths that lie.
    for length in [0_u32, 3, 17, u32::MAX] {
        let mut wrong_length = datagram.clone();
        wrong_length[..4].copy_from_slice(&length.to_ne_bytes());
        assert!(links(&wrong_length).len() <= 1, "{length}");
    }
}

#[test]
fn an_interface_missing_from_a_new_listing_is_reported_as_down() {
    let mut links = Links::listen().expect("netlink");
    links.known.insert(u32::MAX, link_of("away0", true));
    let away = Change::Down("away0".to_owned());
    assert!(!links.changes().contains(&away), "nothing says so");
    links.has_missed = true;
    // Others may change their interfaces just then, and all are asked for again.
    let change_lists = (0..1000).filter(|_| links.changes().contains(&away));
    assert_eq!(change_lists.count(), 1);
    assert!(!links.has(u32::MAX));
}

#[test]
fn an_incomplete_listing_reports_no_interface_as_down() {
    let mut links = Links::listen().expect("netlink");
    links.known.insert(u32::MAX, link_of("there0", true));
    for notice in [Reported::Truncated, Reported::EndOfListing] {
        links.incoming.get_or_insert_default();
        assert_eq!(links.see(notice), []);
    }
    assert!(links.has_missed, "asked again");
}

/// The names of those that are up, as the kernel's files have them.
fn up() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/sys/class/net").expect("a list");
    let entries = entries.filter_map(|dir_entry| dir_entry.ok()?.file_name().into_string().ok());
    let is_up = |name: &String| {
        let flags = std::fs::read_to_string(format!("/sys/class/net/{name}/flags"));
        flags.is_ok_and(|flags| {
            let digits = flags.trim().trim_start_matches("0x");
            u32::from_str_radix(digits, 16).expect("flags") & UP != 0
        })
    };
    entries.filter(is_up).collect()
}

#[test]
fn a_link_listener_knows_exactly_the_interfaces_that_are_up() {
    let look = || {
        let links = Links::listen().expect("netlink");
        let there = links.known.into_values();
        let received = there.filter(|link| link.is_up).map(|link| link.name);
        (received.collect::<BTreeSet<_>>(), up())
    };
    // Others may change theirs between the two.
    let is_equal = (0..100).any(|_| {
        let (received, names) = look();
        received == names
    });
    assert!(is_equal, "{:?}", look());
}

#[test]
fn each_state_change_is_reported_once_and_removal_while_down_is_not() {
    let mut links = Links::listen().expect("netlink");
    links.known.insert(1 << 30, link_of("down0", false));
    assert_eq!(links.number_of_up("down0"), None);
    let mut see = |notice| links.see(notice);
    let present = |is_up| Reported::Present(u32::MAX, link_of("turn0", is_up));
    let went_down = || vec![Change::Down("turn0".to_owned())];
    let went_up = || vec![Change::Up("turn0".to_owned())];
    assert_eq!(see(present(false)), []);
    assert_eq!(see(present(true)), went_up());
    assert_eq!(see(present(true)), []);
    assert_eq!(see(present(false)), went_down());
    assert_eq!(see(Reported::Removed(u32::MAX)), []);
    assert_eq!(see(present(true)), went_up());
    assert_eq!(see(Reported::Removed(u32::MAX)), went_down());
    assert!(!links.has(u32::MAX));
}
