//! Owns what is known of packets that passed a point in several pieces.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// For the number of each whole the spread at each point, in nanoseconds.
pub(super) type Spreads = HashMap<u32, Vec<Option<i64>>, RandomState>;

/// Numbers of the whole that a piece belongs to.
pub(super) type PacketOfPiece = HashMap<u32, u32, RandomState>;
