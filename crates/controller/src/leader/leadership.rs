//! The state of a candidate, for health checks and metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use process::Shutdown;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tasks::TaskFailure;

use super::{Epoch, Lease, Term, lead};

/// The state of one candidate for a lease. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Leadership(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_candidate: bool,
    epoch: Option<Epoch>,
}

impl Leadership {
    /// As [`lead`], and keeps this state meanwhile.
    ///
    /// # Errors
    /// As [`lead`].
    pub async fn lead<W: Future<Output = ()>>(
        &self,
        lease: Lease,
        shutdown: Shutdown,
        work: impl Fn(Term) -> W,
    ) -> Result<(), TaskFailure> {
        self.state().is_candidate = true;
        let _candidate = End(self, |state| *state = State::default());
        lead(lease, shutdown, |term| {
            self.state().epoch = Some(term.epoch);
            // Ends with the work, also if that is dropped.
            let end = End(self, |state| state.epoch = None);
            let work = work(term);
            async move {
                work.await;
                drop(end);
            }
        })
        .await
    }

    /// The epoch of the present leadership; none while another process leads.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.state().epoch
    }

    /// Whether this process leads, or waits for the lease: a health check.
    ///
    /// # Errors
    /// This process is no candidate (any more).
    pub fn check(&self) -> Result<(), String> {
        if self.state().is_candidate {
            Ok(())
        } else {
            Err("the process is no candidate for the lease".to_owned())
        }
    }

    /// Registers the metric `leader_election_master_status` of Kubernetes: 1 while this process leads, else 0.
    pub fn register(&self, name: impl Into<String>, registry: &mut Registry) {
        registry.register_collector(Box::new(Status { name: name.into(), leadership: self.clone() }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Status {
    name: String,
    leadership: Leadership,
}

impl Collector for Status {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        const HELP: &str =
            "Whether the process is the leader of the lease: 0 indicates a backup, 1 the leader";
        let mut metric =
            encoder.encode_descriptor("leader_election_master_status", HELP, None, MetricType::Gauge)?;
        let value = u64::from(self.leadership.epoch().is_some());
        metric.encode_family(&[("name", &*self.name)])?.encode_gauge(&value)
    }
}

/// Ends a part of the state when it is dropped.
struct End<'a>(&'a Leadership, fn(&mut State));

impl Drop for End<'_> {
    fn drop(&mut self) {
        (self.1)(&mut self.0.state());
    }
}
