//! Deletes signing requests that are of no use any more.

mod decide;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::Client;

use self::decide::{SigningRequest, end};
use super::kinds::SIGNING_REQUESTS;
use super::views::wait_until;
use crate::manager::Setup;
use crate::{Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    Controller::new("certificatesigningrequest-cleaner-controller", Cleaner { client: client.clone() })
        .watch::<SigningRequest, _>(&setup.watches, Target::all(SIGNING_REQUESTS), |change| {
        (!change.is_gone).then(|| change.key.clone())
    })
}

struct Cleaner {
    client: Client,
}

impl Reconcile for Cleaner {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let requests = Objects::new(&self.client, &SIGNING_REQUESTS.resource(), None);
        let Some(request) = requests.get::<SigningRequest>(&key.name).await? else { return Ok(Next::Done) };
        let Some(end) = end(&request, expiry(&request)) else { return Ok(Next::Done) };
        if let Some(wait) = wait_until(end, Timestamp::now()) {
            return Ok(Next::After(wait));
        }
        requests.delete(&key.name, &request.metadata.deletion()).await?;
        Ok(Next::Done)
    }
}

/// The end of the certificate that a request got.
fn expiry(request: &SigningRequest) -> Option<Timestamp> {
    let pem = STANDARD.decode(&request.status.certificate).ok()?;
    let end = process::pki::end_of(std::str::from_utf8(&pem).ok()?)?;
    Timestamp::from_second(end).ok()
}
