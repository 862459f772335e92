use std::net::TcpListener;

use super::*;

fn at(secs: i64) -> Instant<Local> {
    Instant::from_nanos(secs * 1_000_000_000)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

struct SlotFixture {
    connection_slots: Arc<ConnectionSlots>,
    stream: Arc<TcpStream>,
    connections: Vec<(IpAddr, SlotGuard)>,
}

impl SlotFixture {
    fn new(connections: u32, connections_per_peer: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        Self {
            connection_slots: Arc::new(ConnectionSlots::new(ReflectorCaps {
                connections,
                connections_per_peer,
                idle: Span::from_secs(300),
                ..ReflectorCaps::default()
            })),
            stream: Arc::new(TcpStream::connect(address).expect("it listens")),
            connections: Vec::new(),
        }
    }

    /// Whether a connection of this address finds a place.
    fn come(&mut self, text: &str, secs: i64) -> bool {
        match self
            .connection_slots
            .receive(ip(text), &self.stream, at(secs))
        {
            Reception::Granted(guard) | Reception::Replaced(guard) => {
                self.connections.push((ip(text), guard));
                true
            }
            Reception::Refused => false,
        }
    }

    /// How many places an address has.
    fn places(&self, text: &str) -> u32 {
        self.connection_slots.lock().count(2, &ip(text))
    }

    /// The threads of connections that were ended are over.
    fn clear(&mut self) {
        let state = self.connection_slots.lock();
        let numbers: Vec<u64> = state.slots.keys().copied().collect();
        drop(state);
        self.connections
            .retain(|(_, guest)| numbers.contains(&guest.number));
    }
}

#[test]
fn an_address_and_a_64_have_one_share_and_a_56_has_one_and_a_half() {
    let mut fixture = SlotFixture::new(1_000, 4);
    let taken =
        |fixture: &mut SlotFixture, text: &str| (0..20).filter(|_| fixture.come(text, 0)).count();
    assert_eq!(taken(&mut fixture, "192.0.2.1"), 4);
    assert_eq!(taken(&mut fixture, "192.0.2.2"), 4);
    assert_eq!(taken(&mut fixture, "2001:db8:0:100::1"), 4);
    assert_eq!(taken(&mut fixture, "2001:db8:0:100::2"), 0, "the same /64");
    assert_eq!(taken(&mut fixture, "2001:db8:0:101::1"), 2, "the same /56");
    assert_eq!(taken(&mut fixture, "2001:db8:0:200::1"), 4, "another /56");
}

#[test]
fn a_new_peer_gets_a_slot_when_two_addresses_hold_all_slots() {
    let mut fixture = SlotFixture::new(8, 4);
    for (second, address) in (0..).zip(["192.0.2.1", "192.0.2.2"].repeat(4)) {
        assert!(fixture.come(address, second));
    }
    assert!(fixture.come("192.0.2.9", 100));
    assert_eq!(fixture.connections.len(), 9);
    fixture.clear();
    let first_of_both = fixture.places("192.0.2.1") + fixture.places("192.0.2.2");
    assert_eq!((first_of_both, fixture.places("192.0.2.9")), (7, 1));
    // A greedy one gets no place of another's.
    assert!(!fixture.come("192.0.2.1", 100));
    // And newcomers get no more than an equal share.
    let more = (0..8).filter(|_| {
        fixture.clear();
        fixture.come("192.0.2.9", 100)
    });
    assert_eq!(more.count(), 1);
    fixture.clear();
    let places = ["192.0.2.1", "192.0.2.2", "192.0.2.9"].map(|text| fixture.places(text));
    assert_eq!(places, [3, 3, 2]);
}

#[test]
fn the_longest_idle_connection_is_closed_first() {
    let mut fixture = SlotFixture::new(3, 3);
    for second in 0..3 {
        assert!(fixture.come("192.0.2.1", second));
    }
    fixture.connections[0].1.record_received(at(50));
    assert!(fixture.come("192.0.2.2", 60));
    let closed_number = fixture.connections[1].1.number;
    fixture.clear();
    assert!(
        fixture
            .connections
            .iter()
            .all(|(_, guest)| guest.number != closed_number)
    );
    assert_eq!(fixture.places("192.0.2.1"), 2);
}

#[test]
fn many_addresses_of_one_56_count_as_one_peer() {
    let mut fixture = SlotFixture::new(6, 6);
    for host in 0..6 {
        assert!(
            fixture.come(&format!("2001:db8:0:10{host}::1"), 0),
            "{host}"
        );
    }
    assert!(fixture.come("192.0.2.1", 1), "a site of six makes room");
    fixture.clear();
    assert!(fixture.come("192.0.2.1", 1));
    fixture.clear();
    // Within the site its own /64s share alike.
    assert!(!fixture.come("2001:db8:0:100::2", 1));
}

#[test]
fn ending_threads_are_counted() {
    let mut fixture = SlotFixture::new(8, 8);
    assert!((0..8).all(|_| fixture.come("192.0.2.1", 0)));
    let hosts = (2..100).filter(|host| fixture.come(&format!("192.0.2.{host}"), 1));
    assert_eq!(hosts.count(), 2, "a quarter of all");
    fixture.clear();
    assert!(fixture.come("192.0.2.101", 1));
}

#[test]
fn the_idle_timeout_shrinks_with_the_number_of_free_slots() {
    let mut fixture = SlotFixture::new(100, 100);
    let mut idle = Vec::new();
    for count in 1..=100 {
        assert!(fixture.come("192.0.2.1", 0));
        if [50, 75, 99, 100].contains(&count) {
            idle.push(fixture.connection_slots.idle());
        }
    }
    assert_eq!(idle, [300, 150, 6, 5].map(Span::from_secs));
    fixture.connections.truncate(10);
    assert_eq!(fixture.connection_slots.idle(), Span::from_secs(300));
}
