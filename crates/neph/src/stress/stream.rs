//! `neph stress stream`: a constant bit-rate in UDP packets, in frames as a video has them.
//!
//! The packets are STAMP requests, so that a reflector sends each back and tells how many it had:
//! what was lost on the way there and on the way back is known apart.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use clap::Args as ClapArgs;
use neph_model::{BitRate, ByteSize, Span};
use neph_probe::Stop;
use neph_sys::clock::{self, RawNanos};
use neph_sys::ppoll::{self, Awaited};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format as StampFormat, SenderPacket, Timestamp, decode_reply,
    encode_request, request_size,
};

use super::announce::{Announce, Beginning};
use super::telling::{rate, received_rate};
use super::{aim, video};
use crate::exit::{Failure, Outcome};
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
Exit status: 0 it was sent and some came back, 1 nobody answered, 2 usage, 130 interrupted (with what was sent)."
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
}

/// What was sent, and what became of it.
#[derive(Clone, Copy, Debug, Default)]
struct Streamed {
    frames: u64,
    packets: u64,
    bytes: u64,
    /// Packets that the reflector had, as the last one that came back tells.
    there: u64,
    /// Packets and bytes that came back.
    back: u64,
    back_bytes: u64,
    /// Packets that this host did not send.
    refused: u64,
    lasted: Span,
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
    tell(stream.told, args)?;
    if stop.is_set() {
        return Ok(Outcome::Interrupted);
    }
    if stream.told.back == 0 {
        output::say(&format!(
            "neph stress: no packet came back from {address}: is neph reflect there, and does it \
             take UDP without a key?"
        ));
        return Ok(Outcome::Nothing);
    }
    Ok(Outcome::Done)
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
        let mut due = Span::ZERO;
        while due < self.args.duration && !stop.is_set() {
            while self.elapsed() < due && !stop.is_set() {
                self.hear((due - self.elapsed()).min(TICK).max(Span::ZERO))?;
            }
            for size in video::packets(self.told.frames, self.args.rate) {
                self.send(size)?;
            }
            self.told.frames += 1;
            // Who was kept from sending leaves frames out, as a player would: it sends no burst.
            let late = (self.elapsed() - due).nanos() / video::INTERVAL.nanos();
            due += video::INTERVAL.times(late.max(1));
        }
        let end = RawNanos(self.began + due.min(self.args.duration).nanos());
        if !stop.is_set() {
            clock::sleep_until(end, clock::Spin::NONE);
        }
        Ok(())
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
        // The reflector numbers what it answers from 0.
        self.told.there = self.told.there.max(u64::from(reply.packet.seq) + 1);
    }
}

fn tell(told: Streamed, args: &Args) -> Result<(), Failure> {
    let mut sheet = Sheet::new(&[
        Column::right("ASKED", "asked_bit_s"),
        Column::right("FRAMES", "frames"),
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
        Cell::count(told.packets),
        Cell::new(ByteSize(told.bytes).to_string(), told.bytes),
        Cell::count(told.refused),
        Cell::count(told.there),
        Cell::count(told.back),
        Cell::new(told.lasted.to_string(), told.lasted.nanos()),
        rate(received_rate(told.bytes, told.lasted)),
        rate(received_rate(told.back_bytes, told.lasted)),
    ]);
    let mut out = output::data();
    sheet.write(args.format, &mut out)?;
    Ok(out.flush()?)
}
