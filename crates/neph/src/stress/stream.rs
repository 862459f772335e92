//! `neph stress stream`: a constant bit-rate in UDP packets, in frames as a video has them.
//!
//! The packets are STAMP requests, so that a reflector sends each back and tells how many it had:
//! what was lost on the way there and on the way back is known apart.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use clap::Args as ClapArgs;
use neph_model::{BitRate, ByteSize, Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_sys::ppoll::{self, Awaited};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format as StampFormat, SenderPacket, Timestamp, decode_reply,
    encode_request, request_size,
};

use super::announce::{Announce, Beginning};
use super::duty::HELD;
use super::telling::{add_faults, rate, received_rate};
use super::{aim, video};
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{interrupt, output, value};

/// How long the last packets may take to come back.
const GRACE: Span = Span::from_secs(1);
/// How soon a set stop flag is seen.
const TICK: Span = Span::from_millis(50);
/// The largest datagram there is.
const LARGEST: usize = 1 << 16;

/// Options of `neph stress stream`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "TARGET: where neph reflect answers, host[:port] (8080 unless another is named).\n\
Exit status: 0 it was sent within 3 points of its rate and came back to the end, 1 it was not or nobody answered, at all \
or any more, 2 usage, 130 interrupted (with what was sent)."
)]
pub(super) struct Args {
    /// The reflector that receives it, and sends it back
    target: String,
    /// Payload that is sent, each way
    #[arg(long, value_name = "RATE", default_value = "1450kbit/s", value_parser = aim::some_rate)]
    rate: BitRate,
    /// Stop after this long
    #[arg(short = 'w', long, value_name = "TIME", default_value = "1min",
          value_parser = value::positive_span)]
    duration: Span,
    #[command(flatten)]
    announce: Announce,
    /// How to write what was sent
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    pub(super) user: UserChoice,
}

impl Args {
    /// As an order asks for it.
    pub(super) fn ordered(to: &str, rate: BitRate, duration: Span) -> Self {
        Self {
            target: to.to_owned(),
            rate,
            duration,
            announce: Announce::YES,
            format: Format::Json,
            user: UserChoice::default(),
        }
    }
}

/// What was sent, and what became of it.
#[derive(Clone, Copy, Debug, Default)]
struct Streamed {
    /// Frames that were sent whole.
    frames: u64,
    /// Frames whose time came, and their payload.
    due: u64,
    due_bytes: u64,
    packets: u64,
    bytes: u64,
    /// Packets that the reflector had, as the last one that came back tells.
    there: u64,
    /// Packets and bytes that came back.
    back: u64,
    back_bytes: u64,
    /// When something came back last.
    heard: Span,
    /// Packets that this host did not send.
    refused: u64,
    lasted: Span,
}

impl Streamed {
    /// Frames whose time passed before they were sent whole.
    fn left_out(&self) -> u64 {
        self.due - self.frames
    }

    /// How much of what was due was sent, percent.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn percent(&self) -> f64 {
        100.0 * self.bytes as f64 / self.due_bytes.max(1) as f64
    }

    /// Why it is not the stream that was asked for.
    fn fault(&self, rate: BitRate, to: SocketAddr) -> Option<String> {
        if self.back == 0 {
            return Some(format!(
                "no packet came back from {to}: is neph reflect there, and does it take UDP without \
                 a key?"
            ));
        }
        let silent = self.lasted - self.heard;
        if silent >= GRACE {
            let heard = self.heard;
            return Some(format!(
                "{to} stopped answering after {heard}, {silent} before the end: does neph reflect still \
                 work there?"
            ));
        }
        let held = self.percent();
        (100.0 - held > HELD).then(|| {
            let (left_out, due) = (self.left_out(), self.due);
            format!(
                "{held:.1} % of {rate} was sent, 100 % was asked; frames left out: {left_out} of \
                 {due}: somebody else had the CPU, or a limit holds here"
            )
        })
    }
}

/// Streams until its time is over or ctrl-C, and tells what was sent.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let address = aim::address(&args.target)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let socket = open(address)
        .map_err(|error| Failure::refused(format!("open a UDP socket to {address}: {error}")))?;
    let mut stream = Stream {
        args,
        beginning: Beginning::of(&args.announce, 1),
        socket,
        told: Streamed::default(),
        buffer: vec![0; LARGEST],
        began: clock::raw().0,
    };
    stream.send_all(&stop)?;
    stream.told.lasted = stream.elapsed();
    let until = stream.elapsed() + GRACE;
    while stream.told.back < stream.told.packets && stream.elapsed() < until {
        stream.hear(TICK)?;
    }
    let fault = stream.told.fault(args.rate, address);
    tell(stream.told, fault.clone(), args)?;
    if stop.is_set() {
        return Ok(Outcome::Interrupted);
    }
    let Some(why) = fault else {
        return Ok(Outcome::Done);
    };
    output::say(&format!("neph stress: {why}"));
    Ok(Outcome::Nothing)
}

fn open(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    // A datagram that was announced and then found broken is not waited for.
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    Ok(socket)
}

struct Stream<'a> {
    args: &'a Args,
    beginning: Beginning,
    socket: UdpSocket,
    told: Streamed,
    buffer: Vec<u8>,
    began: i64,
}

impl Stream<'_> {
    fn elapsed(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.began)
    }

    fn send_all(&mut self, stop: &Stop) -> Result<(), Failure> {
        let due = |frame| video::INTERVAL.times(frame);
        let mut frame = 0;
        while due(frame) < self.args.duration && !stop.is_set() {
            while self.elapsed() < due(frame) && !stop.is_set() {
                self.hear((due(frame) - self.elapsed()).min(TICK).max(Span::ZERO))?;
            }
            if stop.is_set() {
                return Ok(());
            }
            self.told.frames += u64::from(self.send_frame(number(frame), stop)?);
            // Who was kept from sending leaves frames out, as a player would: it sends no burst.
            let now = self.elapsed().min(self.args.duration);
            let next = (now.nanos() / video::INTERVAL.nanos()).max(frame + 1);
            self.count_due(frame, next);
            frame = next;
        }
        if !stop.is_set() {
            let end = RawNanos(self.began + self.args.duration.nanos());
            clock::sleep_until(end, clock::Spin::NONE);
        }
        Ok(())
    }

    /// Sends one frame; whether all of it, before the end of the time and before it was stopped.
    fn send_frame(&mut self, frame: u64, stop: &Stop) -> Result<bool, Failure> {
        for size in video::packets(frame, self.args.rate) {
            // A frame of a large rate takes longer than its time.
            if stop.is_set() || self.elapsed() >= self.args.duration {
                return Ok(false);
            }
            self.send(size)?;
        }
        Ok(true)
    }

    /// The time of these frames came.
    fn count_due(&mut self, from: i64, until: i64) {
        self.told.due += number(until - from);
        let bytes = (from..until).map(|frame| video::bytes(number(frame), self.args.rate));
        self.told.due_bytes += bytes.sum::<u64>();
    }

    fn send(&mut self, size: u64) -> Result<(), Failure> {
        let wall = clock::wall().0;
        #[expect(clippy::cast_possible_truncation, reason = "STAMP numbers wrap")]
        let packet = SenderPacket {
            seq: self.told.packets as u32,
            timestamp: Timestamp::from_unix(wall, StampFormat::Ntp).unwrap_or(Timestamp(0)),
            // Nobody asks what time it is here.
            error: ErrorEstimate::from_nanos(1_000_000_000, StampFormat::Ntp),
            ssid: 0,
        };
        let size = usize::try_from(size).unwrap_or(LARGEST);
        let size = request_size(Auth::Open, size);
        let mut datagram = Vec::with_capacity(size);
        encode_request(&packet, Auth::Open, size, &mut datagram).map_err(Failure::refused)?;
        match self.socket.send(&datagram) {
            Ok(_) => {
                self.told.packets += 1;
                self.told.bytes += datagram.len() as u64;
            }
            // A full queue here, or the word that nobody listened to an earlier one.
            Err(_) => self.told.refused += 1,
        }
        Ok(())
    }

    /// Takes in what comes back within a time.
    fn hear(&mut self, most: Span) -> Result<(), Failure> {
        let mut most = most;
        loop {
            let mut awaited = [Awaited::readable(self.socket.as_fd())];
            ppoll::wait(&mut awaited, Some(most.to_duration())).map_err(Failure::refused)?;
            if !awaited[0].has_something() {
                return Ok(());
            }
            most = Span::ZERO;
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => self.take(length),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => return Ok(()),
            }
        }
    }

    fn take(&mut self, length: usize) {
        let Ok(reply) = decode_reply(&self.buffer[..length], Auth::Open) else {
            return;
        };
        self.told.back += 1;
        if self.told.back == 1 {
            self.beginning.one_works();
        }
        self.told.back_bytes += length as u64;
        self.told.heard = self.elapsed();
        // The reflector numbers what it answers from 0.
        self.told.there = self.told.there.max(u64::from(reply.packet.seq) + 1);
    }
}

/// Of frames, from 0 on.
fn number(frames: i64) -> u64 {
    u64::try_from(frames).unwrap_or(0)
}

fn tell(told: Streamed, fault: Option<String>, args: &Args) -> Result<(), Failure> {
    let mut sheet = Sheet::new(&[
        Column::right("ASKED", "asked_bit_s"),
        Column::right("FRAMES", "frames"),
        Column::right("LEFT OUT", "left_out_frames"),
        Column::right("SENT", "sent_packets"),
        Column::right("BYTES", "sent_bytes"),
        Column::right("NOT SENT", "refused_packets"),
        Column::right("RECEIVED", "received_packets"),
        Column::right("BACK", "back_packets"),
        Column::right("LASTED", "lasted_ns"),
        Column::right("SENT/S", "sent_bit_s"),
        Column::right("BACK/S", "back_bit_s"),
    ]);
    sheet.rows.push(vec![
        rate(args.rate),
        Cell::count(told.frames),
        Cell::count(told.left_out()),
        Cell::count(told.packets),
        Cell::new(ByteSize(told.bytes).to_string(), told.bytes),
        Cell::count(told.refused),
        Cell::count(told.there),
        Cell::count(told.back),
        Cell::new(told.lasted.to_string(), told.lasted.nanos()),
        rate(received_rate(told.bytes, told.lasted)),
        rate(received_rate(told.back_bytes, told.lasted)),
    ]);
    add_faults(&mut sheet, vec![fault], args.format);
    let mut out = output::data();
    sheet.write(args.format, &mut out)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Of 100 Gbit/s, of which the first frame alone takes seconds.
    fn stream(args: &Args, to: SocketAddr) -> Stream<'_> {
        Stream {
            args,
            beginning: Beginning::of(&args.announce, 1),
            socket: open(to).expect("a socket"),
            told: Streamed::default(),
            buffer: vec![0; LARGEST],
            began: clock::raw().0,
        }
    }

    fn args(duration: Span) -> Args {
        Args {
            target: String::new(),
            rate: BitRate(100_000_000_000),
            duration,
            format: Format::Text,
            announce: Announce::default(),
            user: UserChoice::default(),
        }
    }

    #[test]
    fn the_end_of_the_time_is_heard_within_a_frame_and_what_was_left_out_is_counted() {
        let there = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let args = args(Span::from_millis(90));
        let mut stream = stream(&args, there.local_addr().expect("an address"));
        stream.send_all(&Stop::new()).expect("it ends");
        let told = stream.told;
        assert_eq!((told.frames, told.due, told.left_out()), (0, 3, 3));
        assert!(told.percent() < 100.0 - HELD, "{told:?}");
    }

    #[test]
    fn a_stop_is_heard_within_a_frame() {
        let there = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let args = args(Span::from_secs(3_600));
        let mut stream = stream(&args, there.local_addr().expect("an address"));
        let stop = Stop::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                there.recv(&mut [0; 8]).expect("the first packet");
                stop.set();
            });
            stream.send_all(&stop).expect("it ends");
        });
        assert_eq!(stream.told.frames, 0);
        assert!(stream.told.left_out() >= 1, "{:?}", stream.told);
    }
}
