//! The turn of bulk transfers: whoever keeps it without using it keeps nobody waiting.

use neph_load::{UploadSpec, upload};
use neph_model::{Permit, Target};
use neph_sys::deadline::{Stopwatch, poll};

use super::refusals::hello_for;
use super::*;

/// How long an honest client waits for the turn, at most: 1.5 s of silence, and ticks of 100 ms.
const WAIT: Duration = Duration::from_secs(4);

fn ask_for_bulk(reflector: &Reflector, last: u8) -> TcpStream {
    let mut stream = connect(reflector, last);
    let hello = hello_for(Mode::Upload, 0, 2_000);
    stream.write_all(&hello).expect("it is new");
    stream
}

fn honest_upload(reflector: &Reflector) -> Duration {
    let address = reflector.address();
    let spec = UploadSpec {
        target: Target::parse(&format!("tcp://{address}")).expect("a target"),
        address,
        duration: Span::from_millis(300),
        congestion: None,
        site: None,
        permit: Permit::ANYTHING,
    };
    let began = Stopwatch::start();
    // The reflector notices within 100 ms that our upload before is over, and refuses us until then.
    let has_turn = poll(Duration::from_millis(20), WAIT, || {
        let refused = upload(&spec, &Stop::new()).err();
        let why = refused.as_ref().map(ToString::to_string);
        assert!(why.is_none_or(|why| why.contains("busy")), "{refused:?}");
        refused.is_none()
    });
    assert!(has_turn, "its turn comes");
    began.elapsed().saturating_sub(Duration::from_millis(300))
}

/// Sets a flag when it is dropped.
struct SetAtEnd<'a>(&'a Stop);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// The same address asks anew as soon as it lost the turn, and is silent each time.
#[test]
fn repeated_silent_uploads_delay_no_other_upload() {
    let reflector = with_caps(ReflectorCaps::default());
    let over = Stop::new();
    std::thread::scope(|scope| {
        // Also when an assertion fails: the other thread would go on for ever.
        let _over = SetAtEnd(&over);
        scope.spawn(|| {
            while !over.is_set() {
                let mut stream = ask_for_bulk(&reflector, 9);
                let granted = stream.read(&mut [0; 16]);
                assert!(granted.is_ok(), "it is answered");
                // Until the reflector ends it, or the test does.
                let tick = Some(Duration::from_millis(50));
                stream.set_read_timeout(tick).expect("a time limit");
                while !over.is_set()
                    && stream
                        .read(&mut [0])
                        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
                {
                }
            }
        });
        let stalls = || counted(&reflector, Counted::BulkStalled);
        eventually("the silent one has the turn", || {
            counted(&reflector, Counted::Bulk) == 1
        });
        let waits: Vec<_> = (0..3).map(|_| honest_upload(&reflector)).collect();
        over.set();
        assert!(waits.iter().all(|wait| *wait < WAIT), "{waits:?}");
        assert!(stalls() >= 1, "the silent one lost its turn");
    });
}

#[test]
fn a_bulk_transfer_of_an_address_that_has_one_is_refused_at_once() {
    let reflector = with_caps(ReflectorCaps::default());
    let _first = ask_for_bulk(&reflector, 9);
    eventually("the first one has the turn", || {
        counted(&reflector, Counted::Bulk) == 1
    });
    let _second = ask_for_bulk(&reflector, 9);
    eventually("the second one is refused", || {
        counted(&reflector, Counted::RefusedBusy) == 1
    });
}
