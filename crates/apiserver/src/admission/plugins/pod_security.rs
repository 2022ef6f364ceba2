//! `PodSecurity`: enforces the Pod Security Standards by the labels of the namespace.

use std::sync::Arc;

use kinds::pod_security::{Configuration, Judged, NamespaceVerdict, PodRequest, Standard, Subject, Verdict};
use model::error::Error;
use model::object::{present, text};
use model::{ObjectKey, Resource};

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::pages::Pages;
use crate::registry::Object;
use crate::verbs::store_error;

const LABELS: &str = "pod-security.kubernetes.io/";

pub(super) struct PodSecurity {
    configuration: Configuration,
    /// The Pod Security labels of namespaces that have any.
    labels: Arc<InformerCache<Object>>,
}

impl PodSecurity {
    pub fn new(configuration: Configuration) -> Self {
        let read = |_: &ObjectKey, namespace: Object| {
            let labels = present(&namespace, &["metadata", "labels"])?.as_object()?;
            let counting = labels.iter().filter(|(name, _)| name.starts_with(LABELS));
            let counting: Object = counting.map(|(name, value)| (name.clone(), value.clone())).collect();
            (!counting.is_empty()).then_some(counting)
        };
        Self { configuration, labels: InformerCache::new(Resource::new("", "namespaces"), read) }
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.labels.clone()
    }

    fn namespace<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        namespace: &'a Object,
    ) -> PluginResult<'a> {
        match self.configuration.judge_namespace(namespace, request.old) {
            NamespaceVerdict::Fine => PluginResult::OK,
            NamespaceVerdict::Invalid(errors) => {
                let name = request.name_in_messages(Some(namespace)).to_owned();
                let (group, kind) = (String::new(), "Namespace".to_owned());
                PluginResult::Done(Err(Error::Invalid { group, kind, name, errors }))
            }
            NamespaceVerdict::Ignored(warning) => {
                request.warn(&warning);
                PluginResult::OK
            }
            NamespaceVerdict::CheckPods(standard) => {
                PluginResult::later(self.warn_of_pods(request, standard))
            }
        }
    }

    /// Warns about existing Pods that violate the new standard of a namespace.
    async fn warn_of_pods(&self, request: &AdmissionAttributes<'_>, standard: Standard) -> Result<(), Error> {
        let pods = Resource::new("", "pods");
        let mut pages = Pages::of(&request.call.api.store, pods).within(request.name);
        let mut existing = self.configuration.existing_pods();
        while let Some(page) = pages.next().await.map_err(store_error)? {
            let pods = page.items.iter().filter_map(|item| serde_json::from_slice(&item.value).ok());
            pods.for_each(|pod| existing.add(pod));
        }
        for warning in existing.warnings(request.name, standard) {
            request.warn(&warning);
        }
        Ok(())
    }

    fn judge(&self, request: &AdmissionAttributes<'_>, subject: Subject, object: &Object) -> Verdict {
        let namespace = request.namespace();
        if let Judged::Decided(verdict) =
            self.configuration.judge_caller(&request.call.caller.name, namespace)
        {
            return verdict;
        }
        let known = self.labels.of("");
        let labels = known.as_ref().and_then(|known| known.get(namespace)).map(|labels| &**labels);
        match subject {
            Subject::Template(way) => self.configuration.judge_template(labels, way, object),
            _ => self.configuration.judge_pod(labels, &PodRequest { object, old: request.old }),
        }
    }
}

impl Plugin for PodSecurity {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let of = target.resource_type;
        let is_judged = Subject::of(&of.group, &of.plural, target.subresource).is_some();
        Phases::validating(is_judged && target.operation != Operation::Delete)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let of = &request.call.resource_type;
        let subject = Subject::of(&of.group, &of.plural, request.subresource());
        let (Some(object), Some(subject)) = (object, subject) else { return PluginResult::OK };
        if subject == Subject::Namespace {
            return self.namespace(request, object);
        }
        let verdict = self.judge(request, subject, object);
        verdict.warnings.iter().for_each(|warning| request.warn(warning));
        for (key, value) in verdict.annotations.into_iter().filter(|_| request.is_logged()) {
            request.annotate(&format!("{LABELS}{key}"), || value);
        }
        match verdict.refusal {
            Some(refusal) => PluginResult::Done(Err(Error::Forbidden {
                group: of.group.clone(),
                resource: of.plural.clone(),
                name: text(object, &["metadata", "name"]).to_owned(),
                message: refusal,
            })),
            None => PluginResult::OK,
        }
    }
}
