//! The certificatesigningrequest-cleaner controller: deletes CertificateSigningRequests that have expired.

mod decide;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controller::{
    Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;

use self::decide::{SigningRequest, end};
use crate::Setup;
use crate::kinds::SIGNING_REQUESTS;
use crate::views::ExpiryStep;

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = setup.client.clone();
    Controller::new("certificatesigningrequest-cleaner-controller", Cleaner { client })
        .watch::<SigningRequest, _>(&setup.informers, ListWatch::all(SIGNING_REQUESTS), |delta| {
            (!delta.is_deleted).then(|| delta.key.clone())
        })
}

struct Cleaner {
    client: Client,
}

impl Cleaner {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &SIGNING_REQUESTS.resource(), None)
    }
}

/// A request, and the end of its certificate's validity.
struct Observed {
    request: SigningRequest,
    expires: Option<Timestamp>,
}

impl Reconciler for Cleaner {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = ExpiryStep;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let request = self.objects().get::<SigningRequest>(&key.name).await?;
        Ok(request.map(|request| Observed { expires: expiry(&request), request }))
    }

    fn decide(Observed { request, expires }: &Observed, now: Timestamp) -> ExpiryStep {
        ExpiryStep::at(end(request, *expires), now)
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        Observed { request, .. }: Observed,
        step: ExpiryStep,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        match step {
            ExpiryStep::Keep => {}
            ExpiryStep::Wait(wait) => return Ok(Outcome::RequeueAfter(wait)),
            ExpiryStep::Delete => drop(self.objects().delete(&key.name, &request.metadata.deletion()).await?),
        }
        Ok(Outcome::Done)
    }
}

/// The end of the issued certificate's validity.
fn expiry(request: &SigningRequest) -> Option<Timestamp> {
    let pem = STANDARD.decode(&request.status.certificate).ok()?;
    let end = process::pki::expires_at(std::str::from_utf8(&pem).ok()?)?;
    Timestamp::from_second(end).ok()
}
