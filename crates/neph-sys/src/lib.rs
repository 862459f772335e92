//! What Nephoscope asks of the kernel: the only crate with `unsafe`.
//!
//! Owns system calls and their errors: clocks, sockets with timestamps, TCP state, packet rings,
//! network namespaces, scheduling, power management, giving up privileges, and reports to a service
//! manager. Knows no Nephoscope type and decides nothing.

pub mod awake;
pub mod bpf;
pub mod bulk;
pub mod clock;
pub mod deadline;
pub mod destination;
pub mod epoll;
pub mod fifo;
pub mod files;
pub mod icmp_error;
pub mod links;
pub mod memory;
pub mod netns;
pub mod notify;
pub mod offload;
pub mod place;
pub mod port_filter;
pub mod ppoll;
pub mod process;
pub mod program;
pub mod pulse;
pub mod queue;
pub mod random;
pub mod restrict;
pub mod ring;
pub mod sched;
pub mod stamp;
pub mod standard;
pub mod steer;
pub mod tcp;
pub mod tun;
