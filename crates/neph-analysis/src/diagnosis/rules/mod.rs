//! The rules: one file each, one line in [`RULES`] each.

mod bufferbloat;
mod clock_step;
mod connection_setup;
mod ecmp;
mod head_of_line;
mod icmp;
mod idle_restart;
mod path_mtu;
mod proxy;
mod random_loss;
mod serialisation;
mod slow_server;
mod stalled_client;
mod stalled_peer;
mod starved_client;

use super::Rule;

/// Every rule, in the order of a message's way.
pub const RULES: &[Rule] = &[
    stalled_client::RULE,
    starved_client::RULE,
    connection_setup::RULE,
    head_of_line::RULE,
    idle_restart::RULE,
    serialisation::RULE,
    bufferbloat::RULE,
    path_mtu::RULE,
    ecmp::RULE,
    random_loss::RULE,
    stalled_peer::RULE,
    icmp::RULE,
    proxy::RULE,
    slow_server::RULE,
    clock_step::RULE,
];
