//! Telling, message by message, what is safe: for whoever must know it from outside.
//!
//! Each line of the file is `experiment flow seq`, written after the store has the message. A flow of
//! a fleet is `lane/port`: a lane's next flow counts from 0 again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use neph_campaign::{
    Carried, Carrier, CarryError, ExperimentOrder, KeepPings, Part, PingOrder, Prepared, Progress,
    ThroughputOrder, TracerouteOrder,
};
use neph_model::{Event, ExperimentId, FleetMessage, Message, Sample, Throughput, Traceroute};
use neph_store::{Kept, Recorder, StoreError};
use neph_text::Outside;

use crate::exit::Failure;

/// A carrier whose recorders tell what is safe.
#[derive(Debug)]
pub(super) struct Acknowledging<C> {
    inner: C,
    file: File,
}

impl<C> Acknowledging<C> {
    pub(super) fn new(inner: C, path: &Path) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::Usage(format!("--acknowledge {}: {error}", Outside::path(path)))
        };
        // It is appended to, so that one that exists is kept; a link is not followed either.
        if path.is_symlink() && (path.is_file() || !path.exists()) {
            return Err(refused(Kept::Link.into()));
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(refused)?;
        Ok(Self { inner, file })
    }
}

impl<C: Carrier> Carrier for Acknowledging<C> {
    fn prepare(&mut self, orders: &[&ExperimentOrder]) -> Vec<Result<Prepared, CarryError>> {
        self.inner.prepare(orders)
    }

    fn carry_out(
        &mut self,
        parts: &mut [Part<'_>],
        progress: &dyn Fn(Progress),
    ) -> Vec<Result<Carried, CarryError>> {
        let file = &self.file;
        let mut telling: Vec<(&ExperimentOrder, Telling<'_>)> = parts
            .iter_mut()
            .map(|part| {
                let inner = &mut *part.recorder;
                (part.order, Telling { inner, file })
            })
            .collect();
        let mut parts: Vec<Part<'_>> = telling
            .iter_mut()
            .map(|(order, recorder)| Part { order, recorder })
            .collect();
        self.inner.carry_out(&mut parts, progress)
    }

    fn check_throughput(&mut self, order: &ThroughputOrder) -> Throughput {
        self.inner.check_throughput(order)
    }

    fn trace_route(&mut self, order: &TracerouteOrder) -> Traceroute {
        self.inner.trace_route(order)
    }

    fn ping_between(
        &mut self,
        order: &PingOrder,
        keep: &mut KeepPings<'_>,
    ) -> Result<(), StoreError> {
        self.inner.ping_between(order, keep)
    }
}

#[derive(Debug)]
struct Telling<'a> {
    inner: &'a mut dyn Recorder,
    file: &'a File,
}

impl Telling<'_> {
    /// `places` are flows and messages.
    fn tell(&mut self, places: impl Iterator<Item = String>) {
        let experiment = self.inner.experiment();
        let mut lines = String::new();
        for place in places {
            lines.push_str(&format!("{experiment} {place}\n"));
        }
        // Whoever reads the file loses a line; the store has the message all the same.
        let _ = self.file.write_all(lines.as_bytes());
    }
}

impl Recorder for Telling<'_> {
    fn experiment(&self) -> ExperimentId {
        self.inner.experiment()
    }

    fn messages(&mut self, messages: &[Message]) -> Result<(), StoreError> {
        self.inner.messages(messages)?;
        let places = messages.iter();
        self.tell(places.map(|message| format!("{} {}", message.flow.0, message.seq)));
        Ok(())
    }

    fn fleet(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        self.inner.fleet(messages)?;
        self.tell(messages.iter().map(|message| {
            let (lane, port, seq) = (message.lane.0, message.source_port, message.seq);
            format!("{lane}/{port} {seq}")
        }));
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.inner.event(event)
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), StoreError> {
        self.inner.sample(sample)
    }
}
