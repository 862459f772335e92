//! Probes against a reflector over loopback: every kind measures, the ledgers add up, and what a
//! peer must not ask for is refused without disturbing the others.

mod abuse;
mod dns;
mod fleet;
mod foreign;
mod hostile;
mod loopback;
mod mqtt;
mod route;
mod support;
mod syn;
mod throughput;
mod trace;
mod transfer;
