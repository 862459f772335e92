use std::num::NonZeroU32;

use super::*;
use crate::gate::{Shape, Treatment};
use crate::truth::{TruthFile, TruthThread};

#[test]
fn a_copy_without_room_is_recorded_as_a_copy_and_its_packet_departs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.truth");
    let truth_thread = TruthThread::start().expect("a thread");
    let (recorder, writer) = truth_thread
        .open(&path, "x", NonZeroU32::MIN)
        .expect("a new file");
    let gates = [(); 2].map(|()| Gate::new(Shape::default(), 1));
    let counters = Arc::new(LinkCounters::default());
    let mut link_packets = LinkPackets::new(gates, Arc::clone(&counters), Some(recorder));
    let passage = Some(PacketPassage {
        direction: 1,
        length: 60,
        arrival: 5,
        identity: Identity::default(),
    });
    let direction = Direction::BToA;
    let first = link_packets
        .pending_packets
        .store(&[7; 60], direction, passage)
        .expect("room");
    while link_packets
        .pending_packets
        .store(&[0; 60], direction, passage)
        .is_some()
    {}
    link_packets.schedule_departure(
        first,
        Departure {
            due: Moment(9),
            path: 2,
            treatment: Treatment {
                is_duplicated: true,
                is_early: true,
                corrupt: None,
            },
        },
    );
    assert_eq!(link_packets.pending_packets.next_due(), Some(Moment(9)));
    assert_eq!(counters.read(Direction::BToA).overflow, 1);
    drop(link_packets);
    writer.finish().expect("written");
    let written: Vec<Record> = TruthFile::open(&path)
        .expect("open")
        .map(|record| record.expect("fine"))
        .collect();
    let Some(Record::Packet {
        handling, verdict, ..
    }) = written.first()
    else {
        panic!("{written:?}");
    };
    assert_eq!((written.len(), *verdict), (1, Verdict::Overflow));
    assert!(handling.is_copy && handling.is_early, "{handling:?}");
    assert_eq!(handling.path, Some(2));
}
