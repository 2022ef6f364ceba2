//! Deletes Jobs that are done when their time is over.

mod decide;

use jiff::Timestamp;
use kube::Client;
use kube::api::PropagationPolicy;

use self::decide::{Job, end};
use super::kinds::JOBS;
use super::views::wait_until;
use crate::manager::Setup;
use crate::{Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    Controller::new("ttl-after-finished-controller", Jobs { client: client.clone() }).watch::<Job, _>(
        &setup.watches,
        Target::all(JOBS),
        |change| (!change.is_gone && end(change.object).is_some()).then(|| change.key.clone()),
    )
}

struct Jobs {
    client: Client,
}

impl Reconcile for Jobs {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let jobs = Objects::new(&self.client, &JOBS.resource(), key.namespace());
        let Some(job) = jobs.get::<Job>(&key.name).await? else { return Ok(Next::Done) };
        let Some(end) = end(&job) else { return Ok(Next::Done) };
        if let Some(wait) = wait_until(end, Timestamp::now()) {
            return Ok(Next::After(wait));
        }
        let mut deletion = job.metadata.deletion();
        deletion.propagation_policy = Some(PropagationPolicy::Foreground);
        jobs.delete(&key.name, &deletion).await?;
        Ok(Next::Done)
    }
}
