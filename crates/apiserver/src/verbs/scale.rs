//! The scale subresource: reads and sets the replicas of an object.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kinds::apply::ScaleManagers;
use kinds::{scale_of, set_scale, validate_scale};
use model::Revision;
use model::error::{Error, quote};
use serde_json::{Value, json};

use super::apply::{APPLY_PATCH, Configuration};
use super::body;
use super::managed_fields::FieldManager;
use super::metadata;
use super::options::WriteOptions;
use super::patch::Patch;
use super::subresource_admission::SubresourceObject;
use super::update::{check_place, check_uid};
use super::write::{self, Mutated, Mutation};
use super::{Call, store_error};
use crate::body::Body;
use crate::built_in;
use crate::registry::custom::{self, ScalePaths};
use crate::registry::{Object, Served};
use crate::render;
use crate::request::negotiate::content_type;
use crate::request::verb::Verb;

/// A call for the object, and the same call for its Scale, which bodies and responses have.
struct Scale {
    object: Call,
    shown: Call,
}

pub async fn scale(call: Call, verb: Verb) -> Result<Response<Body>, Error> {
    let scale = Scale {
        shown: call.about(Arc::new(Served::without_path(built_in::without_path("autoscaling", "Scale")))),
        object: call,
    };
    match verb {
        Verb::Get => scale.get().await,
        Verb::Update => scale.update().await,
        _ => scale.patch().await,
    }
}

impl Scale {
    async fn get(&self) -> Result<Response<Body>, Error> {
        let key = self.object.key();
        let found = self.object.api.store.get(&key, None).await.map_err(store_error)?;
        let found = found.ok_or_else(|| self.object.resource_type.not_found(&key.name))?;
        self.render(&self.object.resource_type.read(&found).await?)
    }

    async fn update(&self) -> Result<Response<Body>, Error> {
        let options = WriteOptions::from_query(&self.shown.query, "UpdateOptions")?;
        let mut object = body::decode(&self.shown, options.field_validation)?;
        check_place(&self.shown, &mut object)?;
        self.change(Wanted::Scale(Mutated { object, tracked: None }), options).await
    }

    async fn patch(&self) -> Result<Response<Body>, Error> {
        let is_apply = content_type(&self.shown.headers) == APPLY_PATCH;
        let options = WriteOptions::of_patch(&self.shown.query, is_apply)?;
        let wanted: Box<dyn Mutation + Send> = if is_apply {
            Box::new(Configuration::read(&self.shown, options)?)
        } else {
            Box::new(Patch::read(&self.shown, options)?)
        };
        self.change(Wanted::Patch(wanted), options).await
    }

    async fn change(&self, wanted: Wanted, options: WriteOptions) -> Result<Response<Body>, Error> {
        let change = SetScale { shown: &self.shown, wanted };
        let value = write::update_object(&self.object, &change, options).await?;
        let object = serde_json::from_slice(&value)
            .map_err(|_| Error::Internal { message: "cannot parse a stored object".to_owned() })?;
        self.render(&object)
    }

    fn render(&self, object: &Object) -> Result<Response<Body>, Error> {
        if let Some(paths) = paths(&self.object) {
            custom::scale::has_replicas(paths, object).map_err(|message| Error::Internal { message })?;
        }
        let scale = shown(&self.object, object)?;
        let bytes: Bytes = serde_json::to_vec(&scale).expect("a JSON value always encodes").into();
        render::object(&self.shown, StatusCode::OK, &bytes)
    }
}

/// The scale paths of a CRD.
fn paths(call: &Call) -> Option<&ScalePaths> {
    call.resource_type.custom.as_ref()?.version().scale.as_ref()
}

/// The Scale of an object.
fn shown(call: &Call, object: &Object) -> Result<Object, Error> {
    match paths(call) {
        Some(paths) => custom::scale::scale_of(paths, object).map_err(|message| Error::Internal { message }),
        None => Ok(scale_of(object)),
    }
}

/// The placeholder for missing replicas in a patch.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// Whether the replicas of a custom object are unset.
fn has_no_replicas(scale: &Object) -> bool {
    scale.get("spec").and_then(|spec| spec.get("replicas")).and_then(Value::as_i64) == Some(NO_REPLICAS)
}

/// The path of the replicas in each version.
fn replicas<'a>(call: &'a Call, api_version: &'a str) -> Vec<(&'a str, Option<Vec<&'a str>>)> {
    let Some(custom) = &call.resource_type.custom else {
        return vec![(api_version, Some(vec!["spec", "replicas"]))];
    };
    let path = |paths: &'a ScalePaths| paths.replicas.split('.').collect();
    let versions = custom.versions.all.iter();
    versions.map(|version| (version.api_version.as_str(), version.scale.as_ref().map(path))).collect()
}

enum Wanted {
    Scale(Mutated),
    Patch(Box<dyn Mutation + Send>),
}

struct SetScale<'a> {
    shown: &'a Call,
    wanted: Wanted,
}

impl SubresourceObject for SetScale<'_> {
    fn resource_type(&self) -> &Served {
        &self.shown.resource_type
    }

    fn of(&self, call: &Call, object: &Object) -> Result<Object, Error> {
        shown(call, object)
    }

    fn put(&self, call: &Call, object: &mut Object, scale: &Object) {
        match paths(call) {
            Some(paths) => custom::scale::set_scale(paths, object, scale),
            None => set_scale(object, scale),
        }
    }
}

impl Mutation for SetScale<'_> {
    fn subresource(&self) -> Option<&dyn SubresourceObject> {
        Some(self)
    }

    fn apply(&self, call: &Call, old: &Object, revision: Revision) -> Result<Mutated, Error> {
        let api_version = call.resource_type.api_version();
        let managers = ScaleManagers { api_version: &api_version, replicas: replicas(call, &api_version) };
        let known = metadata::metadata(old).and_then(|metadata| metadata.get("managedFields"));
        let mut live = shown(call, old)?;
        if paths(call).is_some_and(|paths| custom::scale::has_replicas(paths, old).is_err()) {
            live.insert("spec".to_owned(), json!({"replicas": NO_REPLICAS}));
        }
        let of_scale = managers.of_scale(known);
        metadata::metadata_mut(&mut live).extend(of_scale.map(|list| ("managedFields".to_owned(), list)));
        let mut scale = match &self.wanted {
            Wanted::Scale(scale) => {
                check_uid(call, &scale.object, old)?;
                scale.clone()
            }
            Wanted::Patch(patch) => patch.apply(self.shown, &live, revision)?,
        };
        let tracked = scale.tracked.take().unwrap_or_else(|| {
            let writing = FieldManager::new(self.shown, metadata::time(write::now()));
            writing.track(Some(&live), &mut scale.object)
        });
        let of_scale = tracked.json.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let tracked = Some(managers.of_object(known, of_scale.as_ref()));
        if let Some(paths) = paths(call).filter(|_| has_no_replicas(&scale.object)) {
            let field = format!(".{}", paths.replicas);
            return Err(Error::BadRequest {
                message: format!("the spec replicas field {} cannot be empty", quote(&field)),
            });
        }
        // The CRD validates the replicas of custom objects.
        let errors = if paths(call).is_some() { Vec::new() } else { validate_scale(&scale.object) };
        if !errors.is_empty() {
            return Err(self.shown.resource_type.invalid(&call.path.name, errors));
        }
        let mut object = old.clone();
        self.put(call, &mut object, &scale.object);
        Ok(Mutated { object, tracked })
    }
}
