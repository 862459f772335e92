//! Probes against a reflector over loopback: every kind measures, and the ledgers add up.

mod loopback;
