//! A socket whose calls together take no longer than a limit.
//!
//! A peer that sends a byte now and then would never exceed a timeout of a single call, and would block the
//! running orders.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use neph_sys::deadline::Deadline;

/// A TCP connection, and until when it may be waited for.
#[derive(Debug)]
pub(super) struct DeadlineStream {
    stream: TcpStream,
    deadline: Deadline,
}

impl DeadlineStream {
    /// All calls from now on end within this time.
    pub(super) fn with_time_limit(stream: TcpStream, time: Duration) -> Self {
        Self {
            stream,
            deadline: Deadline::after(time),
        }
    }

    /// The same, from now on.
    pub(super) fn set_time_limit(&mut self, time: Duration) {
        self.deadline = Deadline::after(time);
    }

    fn remaining(&self) -> io::Result<Option<Duration>> {
        if self.deadline.has_passed() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(Some(self.deadline.left().max(Duration::from_micros(1))))
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.remaining()?)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.remaining()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::channel;
    use std::thread;

    use neph_sys::deadline::Stopwatch;

    use super::*;

    #[test]
    fn a_trickling_peer_does_not_extend_the_time_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let (ended, is_over) = channel::<()>();
        let trickle = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("it connects");
            while is_over.recv_timeout(Duration::from_millis(5)).is_err() {
                peer.write_all(b"x").expect("it is read");
            }
        });
        let stream = TcpStream::connect(address).expect("it listens");
        let mut timed = DeadlineStream::with_time_limit(stream, Duration::from_millis(200));
        let stopwatch = Stopwatch::start();
        let mut chunk = vec![0; 1 << 20];
        let failed = timed
            .read_exact(&mut chunk)
            .expect_err("it would take hours");
        assert!(
            matches!(failed.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock),
            "{failed}"
        );
        let elapsed = stopwatch.elapsed();
        assert!(
            elapsed >= Duration::from_millis(150) && elapsed < Duration::from_secs(5),
            "{elapsed:?}"
        );
        ended.send(()).expect("it waits");
        trickle.join().expect("it ended well");
    }
}
