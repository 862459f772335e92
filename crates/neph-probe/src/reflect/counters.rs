//! What a reflector counts: what it did, and each reason for which it refused.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counted {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// Something a reflector counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Counted { $(#[doc = $doc] $variant,)* }

        impl Counted {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in output.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

counted! {
    Connections "connections" "Connections accepted and served.",
    Datagrams "datagrams" "Datagrams read: each is answered, refused or not sent.",
    Replies "replies" "Messages answered, of connections and datagrams.",
    AnsweredDatagrams "answered_datagrams" "STAMP requests answered.",
    Bulk "bulk_transfers" "Bulk transfers served.",
    RefusedConnections "refused_connections" "Connections accepted and closed at once: too many, or no memory for one more.",
    RefusedDatagrams "refused_datagrams" "Datagrams not answered; the reason is counted, too.",
    Replaced "replaced_connections" "Connections ended for a peer that had fewer: all were taken.",
    RefusedProtocol "refused_protocol" "First bytes that no protocol begins with.",
    RefusedTls "refused_tls" "TLS that failed, or that is not offered.",
    RefusedHandshake "refused_handshake" "Connections that did not open their protocol in time.",
    RefusedMalformed "refused_malformed" "Messages that break their protocol.",
    RefusedReplySize "refused_reply_size" "Requests for a reply larger than the cap, or no size at all.",
    RefusedRequestSize "refused_request_size" "Requests larger than the cap.",
    RefusedRate "refused_rate" "Messages beyond the peer's rate.",
    RefusedMemory "refused_memory" "Messages for which there was no memory: too much is not whole or unread, of this peer or of all.",
    RefusedBusy "refused_busy" "Bulk transfers that waited too long for their turn, or longer than the cap.",
    BulkStalled "bulk_stalled" "Bulk transfers ended because they were silent or too slow while others waited.",
    BulkShared "bulk_shared" "Bulk transfers ended after their share of 10 s because others waited.",
    RefusedKey "refused_key" "STAMP packets whose authentication failed.",
    RefusedAnswers "refused_answers" "STAMP packets that are answers themselves.",
    RefusedPorts "refused_ports" "STAMP packets from server ports such as 53, or from the reflector's port.",
    RefusedRepeats "refused_repeats" "STAMP requests of a session that sends the same again and again.",
    UnsentDatagrams "unsent_datagrams" "Replies to datagrams that the kernel did not send.",
    FailedAccepts "failed_accepts" "Times that the kernel gave no connection: most likely the limit on open files is reached.",
    DroppedByKernel "dropped_by_kernel" "Datagrams that the kernel dropped because they were not read in time.",
    Idle "idle" "Connections closed because they sent nothing.",
    SlowWriters "slow_writers" "Connections closed because a request did not become whole, or too slowly.",
    SlowReaders "slow_readers" "Connections closed because they did not read their replies, or too slowly.",
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; Counted::ALL.len()]);

impl Counters {
    pub(super) fn count(&self, counted: Counted) {
        self.0[counted as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts several at once.
    pub(super) fn add(&self, counted: Counted, more: u64) {
        self.0[counted as usize].fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn of(&self, counted: Counted) -> u64 {
        self.0[counted as usize].load(Ordering::Relaxed)
    }

    pub(super) fn all_counts(&self) -> Vec<(Counted, u64)> {
        let count = |counted: &Counted| (*counted, self.of(*counted));
        Counted::ALL.iter().map(count).collect()
    }
}
