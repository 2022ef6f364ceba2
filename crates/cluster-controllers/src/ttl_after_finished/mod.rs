//! The ttl-after-finished controller: deletes finished Jobs after their TTL.

mod decide;

use controller::{
    Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use kube::api::PropagationPolicy;

use self::decide::{Job, end};
use crate::Setup;
use crate::kinds::JOBS;
use crate::views::ExpiryStep;

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = setup.client.clone();
    Controller::new("ttl-after-finished-controller", Jobs { client }).watch::<Job, _>(
        &setup.informers,
        ListWatch::all(JOBS),
        |delta| (!delta.is_deleted && end(delta.object).is_some()).then(|| delta.key.clone()),
    )
}

struct Jobs {
    client: Client,
}

impl Jobs {
    fn objects(&self, key: &ObjectKey) -> Objects {
        Objects::new(&self.client, &JOBS.resource(), key.namespace())
    }
}

impl Reconciler for Jobs {
    type Key = ObjectKey;
    type Observed = Job;
    type Step = ExpiryStep;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Job>> {
        self.objects(key).get(&key.name).await
    }

    fn decide(job: &Job, now: Timestamp) -> ExpiryStep {
        ExpiryStep::at(end(job), now)
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        job: Job,
        step: ExpiryStep,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        match step {
            ExpiryStep::Keep => {}
            ExpiryStep::Wait(wait) => return Ok(Outcome::RequeueAfter(wait)),
            ExpiryStep::Delete => {
                let mut deletion = job.metadata.deletion();
                deletion.propagation_policy = Some(PropagationPolicy::Foreground);
                self.objects(key).delete(&key.name, &deletion).await?;
            }
        }
        Ok(Outcome::Done)
    }
}
