//! The reconciler: observe, decide, execute.

use jiff::Timestamp;

use crate::{Context, Key, Outcome, Result};

/// Brings the state of an API closer to the desired one, in three steps: [`observe`](Reconciler::observe) reads, [`decide`](Reconciler::decide)
/// is a pure function of what was read and of the time, [`execute`](Reconciler::execute) writes.
///
/// A key names an object, never an action: it comes at the start, after changes, after failures and by time, and more often than needed. So a
/// step has to be safe to execute twice, and its writes should name the uid or the resource version that the decision was made about.
pub trait Reconciler: Send + Sync + 'static {
    /// The unit of reconciling, mostly [`ObjectKey`](crate::ObjectKey).
    type Key: Key;
    /// Everything that the decision depends on.
    type Observed: Send;
    /// The decision, mostly an enum.
    type Step: Send;

    /// Reads the state that a key stands for, from caches or from the server; `None` if there is nothing to decide about.
    fn observe(
        &self,
        key: &Self::Key,
        context: &Context<Self::Key>,
    ) -> impl Future<Output = Result<Option<Self::Observed>>> + Send;

    /// Decides what has to be done. It has no access to the reconciler, so that it can neither read nor write anything else.
    fn decide(observed: &Self::Observed, now: Timestamp) -> Self::Step;

    /// Does what was decided, and says when to come back.
    fn execute(
        &self,
        key: &Self::Key,
        observed: Self::Observed,
        step: Self::Step,
        context: &Context<Self::Key>,
    ) -> impl Future<Output = Result<Outcome>> + Send;
}

/// A reconciler in one function, for work that cannot be observed as a whole before it is done, such as a pass over all pages of a list. All
/// others are a [`Reconciler`].
pub trait ReconcileKey: Send + Sync + 'static {
    /// The unit of reconciling.
    type Key: Key;

    /// Reads, decides and writes.
    fn reconcile(
        &self,
        key: &Self::Key,
        context: &Context<Self::Key>,
    ) -> impl Future<Output = Result<Outcome>> + Send;
}

impl<R: Reconciler> ReconcileKey for R {
    type Key = R::Key;

    async fn reconcile(&self, key: &R::Key, context: &Context<R::Key>) -> Result<Outcome> {
        let Some(observed) = self.observe(key, context).await? else { return Ok(Outcome::Done) };
        let step = R::decide(&observed, Timestamp::now());
        self.execute(key, observed, step, context).await
    }
}
