//! How an agent identifies itself on a new connection.

use neph_model::{Executor, Labels};

use super::Worker;
use crate::remote::{FromAgent, Hello, PROTOCOL};

impl<E: Executor> Worker<E> {
    /// The same, with these labels of its site.
    #[must_use]
    pub fn with_labels(self, labels: Labels) -> Self {
        Self { labels, ..self }
    }

    /// The first message on a connection.
    pub fn hello(&self) -> FromAgent {
        FromAgent::Hello(Hello {
            protocol: PROTOCOL,
            version: self.version.clone(),
            holds: self.order_store.holds(),
            results: self.order_store.result_count(),
            policy: self.admission.policy().summary(),
            labels: self.labels.clone(),
        })
    }
}
