//! The content of the Secret with a webhook server's certificates, and the decision when to replace a part of it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use process::pki::{self, Identity};
use thiserror::Error;

/// The fields of the Secret. `ca.crt` has all trusted CAs, the newest first; `ca.key` is the key of the newest.
const CA_BUNDLE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The lifetimes of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    ca: Duration,
    serving: Duration,
    propagation: Duration,
}

/// Lifetimes with which the API server would at times trust no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a CA must live at least four times as long as a serving certificate, and that three times as long as the propagation takes"
)]
pub struct InvalidLifetimes;

impl Default for Lifetimes {
    /// A CA of five years, serving certificates of 90 days, and ten minutes for a new CA to reach all API servers.
    fn default() -> Self {
        Self { ca: 5 * 365 * DAY, serving: 90 * DAY, propagation: Duration::from_secs(600) }
    }
}

impl Lifetimes {
    /// `ca` and `serving` are the lifetimes of certificates; `propagation` is the time between a new CA and the first certificate of it, in
    /// which the CA bundle reaches all API servers. A serving certificate is replaced after two thirds of its lifetime, a CA when twice that of
    /// a serving certificate is left.
    ///
    /// # Errors
    /// When the times do not leave room for each other.
    pub fn new(ca: Duration, serving: Duration, propagation: Duration) -> Result<Self, InvalidLifetimes> {
        let is_valid = !serving.is_zero() && ca >= 4 * serving && serving >= 3 * propagation;
        is_valid.then_some(Self { ca, serving, propagation }).ok_or(InvalidLifetimes)
    }
}

/// The certificates of a webhook server.
#[derive(Clone, Debug)]
pub(super) struct Material {
    /// All trusted CAs, the newest first, each as PEM. Never empty.
    cas: Vec<String>,
    ca_key: String,
    pub(super) serving: Identity,
}

/// The reason why a Secret has no certificates of this server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It has none at all, or none that can be read.
    Unusable,
    /// It has a certificate without the key of a CA: another program made it.
    Foreign,
}

/// The decision about the certificates.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Serve the certificate, and look again at this time.
    Serve { until: SystemTime },
    /// Create a CA, and a serving certificate of it if `issues`.
    AddCa { issues: bool },
    /// Issue a serving certificate by the newest CA.
    Issue,
    /// Create the Secret again with the certificates that it had.
    Restore,
}

impl Material {
    /// Reads the data of a Secret, whose values are in base64.
    pub(super) fn of_secret(data: &BTreeMap<String, String>) -> Result<Self, Missing> {
        let text = |field: &str| {
            let bytes = data.get(field).and_then(|value| STANDARD.decode(value).ok());
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.is_empty())
        };
        let serving = match (text(CERTIFICATE), text(KEY)) {
            (Some(certificate), Some(key)) => Identity { certificate, key },
            _ => return Err(Missing::Unusable),
        };
        let ca_key = text(CA_KEY).ok_or(Missing::Foreign)?;
        let cas = pki::split_bundle(&text(CA_BUNDLE).unwrap_or_default());
        if cas.is_empty() { Err(Missing::Unusable) } else { Ok(Self { cas, ca_key, serving }) }
    }

    /// The data of a Secret.
    pub(super) fn to_secret(&self) -> BTreeMap<&'static str, String> {
        let bundle = self.bundle();
        let fields = [
            (CA_BUNDLE, &bundle),
            (CA_KEY, &self.ca_key),
            (CERTIFICATE, &self.serving.certificate),
            (KEY, &self.serving.key),
        ];
        fields.map(|(field, text)| (field, STANDARD.encode(text))).into()
    }

    /// All trusted CAs, as PEM.
    pub(super) fn bundle(&self) -> String {
        self.cas.concat()
    }

    /// Decides what is due for a server of these names.
    pub(super) fn decide(
        this: Option<&Self>,
        names: &[String],
        lifetimes: &Lifetimes,
        now: SystemTime,
    ) -> Step {
        let Some(Self { cas, serving, .. }) = this else { return Step::AddCa { issues: true } };
        let newest = &cas[0];
        let renewal = expiry(&serving.certificate) - lifetimes.serving / 3;
        let is_trusted = cas.iter().any(|ca| pki::is_serving_for(serving, ca, names));
        let is_valid = is_trusted && now < renewal;
        let succession = expiry(newest) - 2 * lifetimes.serving;
        if now >= succession {
            return Step::AddCa { issues: !is_valid };
        }
        let is_of_newest = pki::is_serving_for(serving, newest, names);
        let propagated = pki::created_at(newest).unwrap_or(now) + lifetimes.propagation;
        if !is_valid || !is_of_newest && now >= propagated {
            return Step::Issue;
        }
        let due = renewal.min(succession);
        Step::Serve { until: if is_of_newest { due } else { due.min(propagated) } }
    }

    /// The certificates after a step. None for a step that changes nothing.
    pub(super) fn after(
        this: Option<&Self>,
        step: &Step,
        names: &[String],
        lifetimes: &Lifetimes,
        now: SystemTime,
    ) -> Result<Option<Self>, String> {
        let name = names.first().map_or("webhook", String::as_str);
        let issue = |ca: &Identity| {
            pki::issue(ca, name, names, now, lifetimes.serving).map_err(|error| error.to_string())
        };
        match (step, this) {
            (Step::Serve { .. }, _) => Ok(None),
            (Step::Restore, present) => Ok(present.cloned()),
            (Step::Issue, Some(present)) => {
                let ca = Identity { certificate: present.cas[0].clone(), key: present.ca_key.clone() };
                let cas = unexpired(&present.cas, now);
                Ok(Some(Self { cas, ca_key: present.ca_key.clone(), serving: issue(&ca)? }))
            }
            (Step::AddCa { issues }, present) => {
                let ca = pki::component_ca(&format!("{name}-ca"), now, lifetimes.ca)
                    .map_err(|error| error.to_string())?;
                let mut cas = vec![ca.certificate.clone()];
                cas.extend(unexpired(present.map_or(&[], |present| &present.cas), now));
                let serving = match present {
                    Some(present) if !issues => present.serving.clone(),
                    _ => issue(&ca)?,
                };
                Ok(Some(Self { cas, ca_key: ca.key, serving }))
            }
            (Step::Issue, None) => Err("there is no CA that could issue a certificate".to_owned()),
        }
    }
}

fn unexpired(cas: &[String], now: SystemTime) -> Vec<String> {
    cas.iter().filter(|ca| expiry(ca) > now).cloned().collect()
}

/// The end of a certificate; long ago for one that cannot be read.
fn expiry(pem: &str) -> SystemTime {
    let seconds = pki::expires_at(pem).and_then(|end| u64::try_from(end).ok()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIMES: Lifetimes = Lifetimes {
        ca: Duration::from_secs(100 * 86400),
        serving: Duration::from_secs(9 * 86400),
        propagation: DAY,
    };

    fn start() -> SystemTime {
        SystemTime::UNIX_EPOCH + 20_000 * DAY
    }

    fn names() -> Vec<String> {
        vec!["hook.space.svc".to_owned()]
    }

    fn step(material: Option<&Material>, now: SystemTime) -> (Step, Option<Material>) {
        let step = Material::decide(material, &names(), &LIFETIMES, now);
        let after = Material::after(material, &step, &names(), &LIFETIMES, now).unwrap();
        (step, after)
    }

    #[test]
    fn certificates_are_replaced_before_they_expire_and_the_bundle_trusts_old_and_new_meanwhile() {
        let (first, material) = step(None, start());
        assert_eq!(first, Step::AddCa { issues: true });
        let mut material = material.unwrap();
        let (mut now, mut steps, first_ca) = (start(), Vec::new(), material.cas[0].clone());
        while now < start() + 130 * DAY {
            match step(Some(&material), now) {
                (Step::Serve { until }, None) => {
                    assert!(until > now, "it does not come at once");
                    now = until;
                }
                (step, after) => {
                    steps.push((now.duration_since(start()).unwrap().as_secs() / 86400, step));
                    let before = std::mem::replace(&mut material, after.unwrap());
                    // The certificate that is served, and the one before it, are trusted by the bundle of now.
                    for serving in [&before.serving, &material.serving] {
                        let trusted = |ca: &String| pki::is_serving_for(serving, ca, &names());
                        assert!(material.cas.iter().any(trusted), "at {now:?}");
                    }
                    assert!(expiry(&material.serving.certificate) > now);
                }
            }
        }
        let issues = |day: u64| (day, Step::Issue);
        assert_eq!(steps[..3], [issues(6), issues(12), issues(18)]);
        let succession = steps.iter().position(|(_, step)| *step == Step::AddCa { issues: false }).unwrap();
        assert_eq!(steps[succession].0, 82);
        assert_eq!(
            steps[succession + 1],
            issues(83),
            "a certificate of the new CA comes after the propagation"
        );
        assert!(!material.cas.contains(&first_ca), "the first CA left the bundle after its end");
    }

    #[test]
    fn a_certificate_that_cannot_be_served_is_replaced_at_once() {
        let (_, material) = step(None, start());
        let material = material.unwrap();
        let others = ["else.space.svc".to_owned()];
        assert_eq!(Material::decide(Some(&material), &others, &LIFETIMES, start()), Step::Issue);
        let broken = Material {
            serving: Identity { certificate: String::new(), key: String::new() },
            ..material.clone()
        };
        assert_eq!(step(Some(&broken), start()).0, Step::Issue);
        assert_eq!(step(Some(&material), start() + 99 * DAY).0, Step::AddCa { issues: true });
        assert_eq!(step(Some(&material), start() + 200 * DAY).1.unwrap().cas.len(), 1, "expired CAs go");
    }

    #[test]
    fn a_secret_is_read_as_it_was_written_and_those_of_others_are_told_apart() {
        let (_, material) = step(None, start());
        let material = material.unwrap();
        let mut data: BTreeMap<String, String> =
            material.to_secret().into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
        let read = Material::of_secret(&data).unwrap();
        assert_eq!((read.bundle(), read.serving.key), (material.bundle(), material.serving.key));
        data.insert(CA_BUNDLE.to_owned(), "no base64".to_owned());
        assert_eq!(Material::of_secret(&data).err(), Some(Missing::Unusable));
        data.remove(CA_KEY);
        assert_eq!(Material::of_secret(&data).err(), Some(Missing::Foreign));
        assert_eq!(Material::of_secret(&BTreeMap::new()).err(), Some(Missing::Unusable));
    }

    #[test]
    fn lifetimes_leave_room_for_each_other() {
        let new = |ca: u32, serving: u32, propagation: u32| {
            Lifetimes::new(ca * DAY, serving * DAY, propagation * DAY)
        };
        assert!(new(40, 10, 3).is_ok());
        for (ca, serving, propagation) in [(39, 10, 3), (40, 10, 4), (40, 0, 0)] {
            assert_eq!(new(ca, serving, propagation), Err(InvalidLifetimes));
        }
    }
}
