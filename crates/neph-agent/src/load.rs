//! A load as an order of its own: generated in this process until its time is over or it is stopped.
//!
//! Owns the path from an order to the engine of neph-load that carries it out. Its users are executors,
//! `neph execute` and `neph stress`.

use std::net::SocketAddr;
use std::thread;

use neph_load::{
    Beginning, Bulk, Carried, CpuLoad, CpuThreadResult, LoadError, StreamLoad, Streamed, Subject,
    Turns, converse_all,
};
use neph_model::{
    BitRate, ByteSize, CpuShare, CpuThreads, LoadOrder, LoadWork, OrderFailed, Permit,
    REFLECT_PORT, Span, Stop, Target, TurnSizes,
};
use neph_probe::{Resolve, Resolving, TargetError};

use crate::failure::failed;
use crate::order_context::OrderContext;

/// A load that can be made: its reflector was found, its threads can be on their CPUs.
#[derive(Debug)]
pub struct ReadyLoad {
    engine: Engine,
    remark: Option<String>,
}

#[derive(Debug)]
enum Engine {
    Cpu { share: CpuShare, load: CpuLoad },
    Flow { subject: Subject, bulk: Bulk },
    Stream(StreamLoad),
}

/// What a load did, and its target.
#[derive(Debug)]
pub enum LoadDone {
    /// The CPU was loaded.
    Cpu(CpuDone),
    /// TCP was sent.
    Flow(FlowDone),
    /// UDP was sent.
    Stream(StreamDone),
}

/// What a load of the CPU did.
#[derive(Debug)]
pub struct CpuDone {
    /// The share that was asked of each thread.
    pub share: CpuShare,
    /// What each did.
    pub threads: Vec<CpuThreadResult>,
}

/// What TCP traffic did.
#[derive(Debug)]
pub struct FlowDone {
    /// The reflector.
    pub address: SocketAddr,
    /// What all connections could send together at most.
    pub rate: Option<BitRate>,
    /// What each carried, or why it was refused.
    pub connections: Vec<Result<Carried, String>>,
}

/// What a stream did.
#[derive(Debug)]
pub struct StreamDone {
    /// The requested rate.
    pub rate: BitRate,
    /// What was sent and came back.
    pub streamed: Streamed,
    /// Why it is not the stream that was requested.
    pub fault: Option<String>,
}

impl LoadDone {
    /// Why traffic is not what was requested; nothing of the CPU, whose share may be missed.
    fn fault(self) -> Option<String> {
        match self {
            Self::Cpu(_) => None,
            Self::Flow(done) => done
                .connections
                .into_iter()
                .find_map(|connection| connection.map_or_else(Some, |carried| carried.broken)),
            Self::Stream(done) => done.fault,
        }
    }
}

/// Why a load is not made.
#[derive(Debug, thiserror::Error)]
pub enum LoadRefused {
    /// Its reflector cannot be found.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It asks for more than there can be.
    #[error("a load has {most} {what} at most")]
    TooMuch {
        /// Of what, in words.
        what: &'static str,
        /// The most.
        most: String,
    },
    /// It cannot be begun.
    #[error(transparent)]
    Engine(#[from] LoadError),
}

impl ReadyLoad {
    /// Finds the reflector that a load goes to, and tries the CPUs that it names.
    ///
    /// # Errors
    /// There is none, or no thread can be there.
    pub fn of(order: &LoadOrder, permit: &Permit) -> Result<Self, LoadRefused> {
        let mut remark = None;
        let engine = match &order.work {
            LoadWork::Cpu { share, threads } => {
                let load = CpuLoad {
                    share: share.in_percent() / 100.0,
                    cpus: cpus(threads)?,
                    duration: order.duration,
                };
                load.try_pins()?;
                Engine::Cpu {
                    share: *share,
                    load,
                }
            }
            LoadWork::Flow {
                to,
                rate,
                connections,
                request_reply_sizes: turns,
            } => {
                let flows = connections.get();
                check_max(
                    flows.into(),
                    LoadWork::MAX_CONNECTIONS.into(),
                    "connections",
                )?;
                let bulk = Bulk { rate: *rate, flows };
                let address = resolve_reflector(to, permit, &mut remark)?;
                Engine::Flow {
                    subject: subject(bulk, *turns, address, order.duration)?.within(permit.clone()),
                    bulk,
                }
            }
            LoadWork::Stream { to, rate } => Engine::Stream(StreamLoad {
                address: resolve_reflector(to, permit, &mut remark)?,
                rate: *rate,
                duration: order.duration,
                permit: permit.clone(),
            }),
        };
        Ok(Self { engine, remark })
    }

    /// A sentence about the reflector's addresses that do not answer.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// Where its traffic goes; none of the CPU.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.engine {
            Engine::Cpu { .. } => None,
            Engine::Flow { subject, .. } => Some(subject.address),
            Engine::Stream(load) => Some(load.address),
        }
    }

    /// How many threads load the CPU; 0 of traffic.
    pub fn threads(&self) -> usize {
        match &self.engine {
            Engine::Cpu { load, .. } => load.cpus.len(),
            Engine::Flow { .. } | Engine::Stream(_) => 0,
        }
    }

    /// Makes it until its time is over or `stop` is set; `works` is called once, when all of it works.
    ///
    /// # Errors
    /// It cannot be begun, or broke off.
    pub fn run(&self, works: &(dyn Fn() + Sync), stop: &Stop) -> Result<LoadDone, LoadError> {
        Ok(match &self.engine {
            Engine::Cpu { share, load } => LoadDone::Cpu(CpuDone {
                share: *share,
                threads: load.run(&Beginning::of(load.cpus.len(), works), stop)?,
            }),
            Engine::Flow { subject, bulk } => {
                let flow_count = usize::from(bulk.flows);
                LoadDone::Flow(FlowDone {
                    address: subject.address,
                    rate: bulk.rate,
                    connections: converse_all(
                        subject,
                        flow_count,
                        &Beginning::of(flow_count, works),
                        stop,
                    ),
                })
            }
            Engine::Stream(load) => {
                let streamed = load.run(&Beginning::of(1, works), stop)?;
                LoadDone::Stream(StreamDone {
                    rate: load.rate,
                    fault: streamed.fault(load.rate, load.address),
                    streamed,
                })
            }
        })
    }
}

/// Makes the load as an executor does. It is over when this returns.
pub(crate) fn make(order: &LoadOrder, context: &OrderContext) -> Result<(), OrderFailed> {
    let operation = || match &order.work {
        LoadWork::Cpu { .. } => "load the CPU".to_owned(),
        LoadWork::Flow { to, .. } => format!("send to {to} over TCP"),
        LoadWork::Stream { to, .. } => format!("stream to {to}"),
    };
    let ready =
        ReadyLoad::of(order, context.permit()).map_err(|reason| failed(operation(), reason))?;
    let done = ready.run(&|| {}, context.stop());
    let done = done.map_err(|reason| failed(operation(), reason))?;
    let fault = done.fault().filter(|_| !context.stop().is_set());
    fault.map_or(Ok(()), |reason| Err(failed(operation(), reason)))
}

fn cpus(threads: &CpuThreads) -> Result<Vec<Option<usize>>, LoadRefused> {
    let cores = match threads {
        CpuThreads::EachCore => {
            let core_count = thread::available_parallelism().map_or(1, usize::from);
            return Ok(vec![None; core_count]);
        }
        CpuThreads::Anywhere(count) => vec![None; count.get().into()],
        CpuThreads::Pinned(cpus) => {
            let cpu = |cpu: &u32| usize::try_from(*cpu).ok();
            cpus.iter().map(cpu).collect()
        }
    };
    check_max(cores.len() as u64, CpuThreads::MAXIMUM.into(), "threads")?;
    Ok(cores)
}

/// What each connection carries.
fn subject(
    bulk: Bulk,
    turns: Option<TurnSizes>,
    address: SocketAddr,
    duration: Span,
) -> Result<Subject, LoadRefused> {
    let Some(TurnSizes { request, reply }) = turns else {
        return Ok(bulk.subject(address, duration));
    };
    let sizes = (checked_size(request)?, checked_size(reply)?);
    Ok(Turns { sizes, bulk }.subject(address, duration))
}

/// A size that no reflector refuses.
fn checked_size(size: ByteSize) -> Result<usize, LoadRefused> {
    let (size, maximum) = (size.bytes(), TurnSizes::LARGEST.bytes());
    check_max(size, maximum, "bytes in a request or reply")?;
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

fn check_max(requested: u64, most: u64, unit: &'static str) -> Result<(), LoadRefused> {
    if requested > most {
        let most = most.to_string();
        return Err(LoadRefused::TooMuch { what: unit, most });
    }
    Ok(())
}

/// Where `host[:port]` is; the reflector's port unless one is named.
fn resolve_reflector(
    to: &str,
    permit: &Permit,
    remark: &mut Option<String>,
) -> Result<SocketAddr, TargetError> {
    let target = Target::with_port("tcp", to, REFLECT_PORT)?;
    let resolved = target.find(&Resolving {
        permit: permit.clone(),
        ..Resolving::here(None)
    })?;
    *remark = resolved.remark(&target);
    Ok(resolved.address)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;
    use std::sync::mpsc::sync_channel;

    use neph_model::{LoadSpec, Ticket};

    use super::*;
    use crate::executor::tests::reflector;

    fn order(work: LoadWork) -> LoadOrder {
        let duration = Span::from_millis(100);
        LoadOrder { work, duration }
    }

    fn made(load: LoadSpec) -> Result<(), OrderFailed> {
        let (sender, _updates) = sync_channel(8);
        make(&order(load.into()), &OrderContext::new(Ticket(0), sender))
    }

    #[test]
    fn each_kind_of_load_is_made() {
        let ours = reflector();
        let to = ours.address().to_string();
        let rate = BitRate(1_000_000);
        let share = CpuShare::percent(10.0).expect("a share");
        let flow = LoadSpec::Flow {
            to: to.clone(),
            rate: Some(rate),
        };
        for load in [LoadSpec::Cpu(share), flow, LoadSpec::Stream { to, rate }] {
            made(load.clone()).unwrap_or_else(|reason| panic!("{load:?}: {reason}"));
        }
    }

    #[test]
    fn requests_go_in_turn_on_each_connection() {
        let ours = reflector();
        let size = ByteSize(1000);
        let work = LoadWork::Flow {
            to: ours.address().to_string(),
            rate: None,
            connections: NonZeroU16::new(2).expect("two"),
            request_reply_sizes: Some(TurnSizes {
                request: size,
                reply: size,
            }),
        };
        let ready = ReadyLoad::of(&order(work), &Permit::ANYTHING);
        let ready = ready.expect("a reflector");
        assert_eq!(ready.address(), Some(ours.address()));
        let Ok(LoadDone::Flow(done)) = ready.run(&|| {}, &Stop::new()) else {
            panic!("a flow")
        };
        assert_eq!(done.connections.len(), 2);
        for flow in done.connections {
            let flow = flow.expect("carried");
            assert_eq!(flow.received, flow.answered * size.bytes(), "{flow:?}");
        }
    }

    #[test]
    fn a_load_to_a_closed_port_fails_with_the_address() {
        let to = "127.0.0.1:1".to_owned();
        let reason = made(LoadSpec::Flow { to, rate: None }).expect_err("no server is there");
        assert!(
            reason.to_string().starts_with("send to 127.0.0.1:1"),
            "{reason}"
        );
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        let flow = |connections: u16, reply: u64| LoadWork::Flow {
            to: "127.0.0.1:1".to_owned(),
            rate: None,
            connections: NonZeroU16::new(connections).expect("some"),
            request_reply_sizes: Some(TurnSizes {
                request: ByteSize(64),
                reply: ByteSize(reply),
            }),
        };
        let cpu = |threads| LoadWork::Cpu {
            share: CpuShare::percent(1.0).expect("a share"),
            threads,
        };
        for work in [
            flow(257, 64),
            flow(1, (16 << 20) + 1),
            cpu(CpuThreads::Anywhere(NonZeroU16::MAX)),
            cpu(CpuThreads::Pinned(vec![0; 1025])),
        ] {
            let refused = ReadyLoad::of(&order(work.clone()), &Permit::ANYTHING);
            assert!(
                matches!(refused, Err(LoadRefused::TooMuch { .. })),
                "{work:?}"
            );
        }
    }
}
