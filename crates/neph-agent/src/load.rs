//! A load as an order of its own: generated in this process until its time is over or it is stopped.
//!
//! Owns the path from an order to the engine of neph-load that carries it out. Its users are executors,
//! `neph execute` and `neph stress`.

use std::net::SocketAddr;
use std::thread;

use neph_load::{
    Bulk, Carried, CpuLoad, CpuThreadResult, LoadError, StartCounter, StreamLoad, Streamed,
    Subject, Turns, converse_all,
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
    Tcp { load: Subject, bulk: Bulk },
    Udp(StreamLoad),
}

/// What a load did, and its target.
#[derive(Debug)]
pub enum GeneratedLoad {
    /// The CPU was loaded.
    Cpu(CpuResult),
    /// TCP was sent.
    Tcp(TcpResult),
    /// UDP was sent.
    Udp(UdpResult),
}

/// What a load of the CPU did.
#[derive(Debug)]
pub struct CpuResult {
    /// The share that was asked of each thread.
    pub share: CpuShare,
    /// What each did.
    pub threads: Vec<CpuThreadResult>,
}

/// What TCP traffic did.
#[derive(Debug)]
pub struct TcpResult {
    /// The reflector.
    pub address: SocketAddr,
    /// What all connections could send together at most.
    pub rate: Option<BitRate>,
    /// What each carried, or why it was refused.
    pub connections: Vec<Result<Carried, String>>,
}

/// What a stream did.
#[derive(Debug)]
pub struct UdpResult {
    /// The requested rate.
    pub rate: BitRate,
    /// What was sent and came back.
    pub counters: Streamed,
    /// Why it is not the stream that was requested.
    pub fault: Option<String>,
}

impl GeneratedLoad {
    /// Why traffic is not what was requested; nothing of the CPU, whose share may be missed.
    fn fault(self) -> Option<String> {
        match self {
            Self::Cpu(_) => None,
            Self::Tcp(result) => result
                .connections
                .into_iter()
                .find_map(|connection| connection.map_or_else(Some, |carried| carried.broken)),
            Self::Udp(result) => result.fault,
        }
    }
}

/// Why a load is not made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareLoadError {
    /// Its reflector cannot be found.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It asks for more than there can be.
    #[error("a load has {maximum} {quantity} at most")]
    LimitExceeded {
        /// Of what, in words.
        quantity: &'static str,
        /// The maximum.
        maximum: String,
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
    pub fn prepare(order: &LoadOrder, permit: &Permit) -> Result<Self, PrepareLoadError> {
        let mut remark = None;
        let engine = match &order.work {
            LoadWork::Cpu { share, threads } => {
                let load = CpuLoad {
                    share: share.in_percent() / 100.0,
                    cpus: pinned_cpus(threads)?,
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
                request_reply_sizes,
            } => {
                let connection_count = connections.get();
                let maximum = LoadWork::MAX_CONNECTIONS.into();
                check_max(connection_count.into(), maximum, "connections")?;
                let bulk = Bulk {
                    rate: *rate,
                    flows: connection_count,
                };
                let address = resolve_reflector(to, permit, &mut remark)?;
                let load = connection_load(bulk, *request_reply_sizes, address, order.duration)?;
                Engine::Tcp {
                    load: load.within(permit.clone()),
                    bulk,
                }
            }
            LoadWork::Stream { to, rate } => Engine::Udp(StreamLoad {
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
            Engine::Tcp { load, .. } => Some(load.address),
            Engine::Udp(load) => Some(load.address),
        }
    }

    /// How many threads load the CPU; 0 of traffic.
    pub fn thread_count(&self) -> usize {
        match &self.engine {
            Engine::Cpu { load, .. } => load.cpus.len(),
            Engine::Tcp { .. } | Engine::Udp(_) => 0,
        }
    }

    /// Generates it until its time is over or `stop` is set. Calls `on_started` once all of it works.
    ///
    /// # Errors
    /// It cannot be begun, or broke off.
    pub fn run(
        &self,
        on_started: &(dyn Fn() + Sync),
        stop: &Stop,
    ) -> Result<GeneratedLoad, LoadError> {
        Ok(match &self.engine {
            Engine::Cpu { share, load } => GeneratedLoad::Cpu(CpuResult {
                share: *share,
                threads: load.run(&StartCounter::of(load.cpus.len(), on_started), stop)?,
            }),
            Engine::Tcp { load, bulk } => {
                let connection_count = usize::from(bulk.flows);
                GeneratedLoad::Tcp(TcpResult {
                    address: load.address,
                    rate: bulk.rate,
                    connections: converse_all(
                        load,
                        connection_count,
                        &StartCounter::of(connection_count, on_started),
                        stop,
                    ),
                })
            }
            Engine::Udp(load) => {
                let counters = load.run(&StartCounter::of(1, on_started), stop)?;
                GeneratedLoad::Udp(UdpResult {
                    rate: load.rate,
                    fault: counters.fault(load.rate, load.address),
                    counters,
                })
            }
        })
    }
}

/// Generates the load as an executor does. It is over when this returns.
pub(crate) fn generate(order: &LoadOrder, context: &OrderContext) -> Result<(), OrderFailed> {
    let operation = || match &order.work {
        LoadWork::Cpu { .. } => "load the CPU".to_owned(),
        LoadWork::Flow { to, .. } => format!("send to {to} over TCP"),
        LoadWork::Stream { to, .. } => format!("stream to {to}"),
    };
    let ready = ReadyLoad::prepare(order, context.permit())
        .map_err(|reason| failed(operation(), reason))?;
    let result = ready.run(&|| {}, context.stop());
    let generated = result.map_err(|reason| failed(operation(), reason))?;
    let fault = generated.fault().filter(|_| !context.stop().is_set());
    fault.map_or(Ok(()), |reason| Err(failed(operation(), reason)))
}

fn pinned_cpus(threads: &CpuThreads) -> Result<Vec<Option<usize>>, PrepareLoadError> {
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
fn connection_load(
    bulk: Bulk,
    request_reply_sizes: Option<TurnSizes>,
    address: SocketAddr,
    duration: Span,
) -> Result<Subject, PrepareLoadError> {
    let Some(TurnSizes { request, reply }) = request_reply_sizes else {
        return Ok(bulk.subject(address, duration));
    };
    let sizes = (checked_size(request)?, checked_size(reply)?);
    Ok(Turns { sizes, bulk }.subject(address, duration))
}

/// A size that no reflector refuses.
fn checked_size(size: ByteSize) -> Result<usize, PrepareLoadError> {
    let (size, maximum) = (size.bytes(), TurnSizes::LARGEST.bytes());
    check_max(size, maximum, "bytes in a request or reply")?;
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

fn check_max(requested: u64, maximum: u64, quantity: &'static str) -> Result<(), PrepareLoadError> {
    if requested > maximum {
        let maximum = maximum.to_string();
        return Err(PrepareLoadError::LimitExceeded { quantity, maximum });
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

    fn generate_load(load: LoadSpec) -> Result<(), OrderFailed> {
        let (sender, _updates) = sync_channel(8);
        generate(&order(load.into()), &OrderContext::new(Ticket(0), sender))
    }

    #[test]
    fn each_kind_of_load_is_generated() {
        let reflector = reflector();
        let to = reflector.address().to_string();
        let rate = BitRate(1_000_000);
        let share = CpuShare::percent(10.0).expect("a share");
        let flow = LoadSpec::Flow {
            to: to.clone(),
            rate: Some(rate),
        };
        for load in [LoadSpec::Cpu(share), flow, LoadSpec::Stream { to, rate }] {
            generate_load(load.clone()).unwrap_or_else(|reason| panic!("{load:?}: {reason}"));
        }
    }

    #[test]
    fn each_connection_carries_request_and_reply() {
        let reflector = reflector();
        let size = ByteSize(1000);
        let work = LoadWork::Flow {
            to: reflector.address().to_string(),
            rate: None,
            connections: NonZeroU16::new(2).expect("two"),
            request_reply_sizes: Some(TurnSizes {
                request: size,
                reply: size,
            }),
        };
        let ready = ReadyLoad::prepare(&order(work), &Permit::ANYTHING);
        let ready = ready.expect("a reflector");
        assert_eq!(ready.address(), Some(reflector.address()));
        let Ok(GeneratedLoad::Tcp(result)) = ready.run(&|| {}, &Stop::new()) else {
            panic!("a flow")
        };
        assert_eq!(result.connections.len(), 2);
        for connection in result.connections {
            let carried = connection.expect("carried");
            let expected = carried.answered * size.bytes();
            assert_eq!(carried.received, expected, "{carried:?}");
        }
    }

    #[test]
    fn a_load_to_a_closed_port_fails_with_the_address() {
        let to = "127.0.0.1:1".to_owned();
        let load = LoadSpec::Flow { to, rate: None };
        let reason = generate_load(load).expect_err("no server is there");
        assert!(
            reason.to_string().starts_with("send to 127.0.0.1:1"),
            "{reason}"
        );
    }

    #[test]
    fn loads_above_the_limits_are_refused() {
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
            let refused = ReadyLoad::prepare(&order(work.clone()), &Permit::ANYTHING);
            assert!(
                matches!(refused, Err(PrepareLoadError::LimitExceeded { .. })),
                "{work:?}"
            );
        }
    }
}
