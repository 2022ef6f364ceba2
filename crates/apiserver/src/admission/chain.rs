//! The plugins that are on, in their order, and which of them have something to say about a resource.

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use kinds::admission::configuration::AdmissionConfiguration;
use model::Resource;
use model::error::Error;
use store::Store;

use super::follow::Follows;
use super::plugins::Built;
use super::switches::PLUGINS;
use super::{Operation, Phases, Plugin, Request, Switches, Target};
use crate::informer::Informers;
use crate::registry::{Object, Registry, ResourceType, Served};
use crate::webhook::Services;

/// The plugins that are on, in Kubernetes' order, and what they follow.
pub(crate) struct Admission {
    switches: Switches,
    plugins: Vec<Arc<dyn Plugin>>,
    followed: Vec<Arc<dyn Follows>>,
}

/// The plugins that have something to say about one resource type: for the object itself and for each of its parts.
#[derive(Default)]
pub(crate) struct Plan {
    parts: Vec<(String, [Asked; Operation::ALL.len()])>,
}

/// Where nobody has anything to say.
static NOBODY: LazyLock<Asked> = LazyLock::new(Asked::default);

/// Who is asked about one operation.
#[derive(Default)]
pub(crate) struct Asked {
    mutating: Box<[Arc<dyn Plugin>]>,
    validating: Box<[Arc<dyn Plugin>]>,
}

impl Admission {
    /// With what else is to be followed, so that who writes it is answered when this server knows.
    pub fn new(
        switches: Switches,
        configuration: AdmissionConfiguration,
        services: Services,
        others: impl IntoIterator<Item = Arc<dyn Follows>>,
    ) -> Self {
        let mut built = Built::new(configuration, services);
        PLUGINS.iter().filter(|(name, _)| switches.is_on(name)).for_each(|(name, _)| built.add(name));
        built.add_permanent();
        built.followed.extend(others);
        Self { switches, plugins: built.plugins, followed: built.followed }
    }

    /// Whether a plugin is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.switches.is_on(name)
    }

    /// Reads what plugins follow, and gives the tasks that go on with it.
    pub async fn follow(
        &self,
        store: &Store,
        registry: &Registry,
    ) -> Result<Vec<(Resource, BoxFuture<'static, ()>)>, Error> {
        // One after the other: most are empty, and each that reads beside another needs a connection of its own.
        let mut tasks = Vec::new();
        for of in self.served(registry) {
            tasks.push((of.resource().clone(), Arc::clone(of).start(store.clone()).await?));
        }
        Ok(tasks)
    }

    /// Registers the informers of plugins.
    pub fn register(&self, registry: &Registry, informers: &mut Informers) {
        for of in self.served(registry) {
            informers.add(of.resource().clone(), of.position().clone());
        }
    }

    /// The resources that plugins follow.
    pub fn followed<'a>(&'a self, registry: &'a Registry) -> impl Iterator<Item = &'a Resource> {
        self.served(registry).map(|of| of.resource())
    }

    /// The informers that the plugins need, for the resources that the server serves.
    fn served<'a>(&'a self, registry: &'a Registry) -> impl Iterator<Item = &'a Arc<dyn Follows>> + Send {
        let is_served =
            |of: &&Arc<dyn Follows>| registry.types().any(|known| known.resource == *of.resource());
        self.followed.iter().filter(is_served)
    }

    fn plan(&self, resource_type: &ResourceType) -> Plan {
        let parts = resource_type.subresources.iter().map(|part| part.name.as_str());
        let part = |subresource: &str| {
            let asked = Operation::ALL.map(|operation| {
                let target = Target { resource_type, subresource, operation };
                let who = |wanted: fn(Phases) -> bool| {
                    let wants = |plugin: &&Arc<dyn Plugin>| {
                        let is_meant = operation != Operation::Connect || plugin.connects();
                        is_meant && wanted(plugin.handles(target))
                    };
                    self.plugins.iter().filter(wants).cloned().collect()
                };
                Asked { mutating: who(|phases| phases.mutates), validating: who(|phases| phases.validates) }
            });
            (subresource.to_owned(), asked)
        };
        Plan { parts: std::iter::once("").chain(parts).map(part).collect() }
    }

    /// Who is asked about this; decided when the first request comes.
    pub fn asked<'a>(&self, of: &'a Served, subresource: &str, operation: Operation) -> &'a Asked {
        let plan = of.admission.get_or_init(|| self.plan(of));
        let part = plan.parts.iter().find(|(name, _)| name == subresource);
        part.map_or(&NOBODY, |(_, asked)| &asked[operation as usize])
    }
}

impl Asked {
    /// Nobody.
    pub fn nobody() -> &'static Self {
        &NOBODY
    }

    /// Whether nobody has anything to say.
    pub fn is_nobody(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// The first phase. Where a webhook has changed the object, those before it are asked once more.
    pub async fn admit(&self, request: &Request<'_>, mut object: Option<&mut Object>) -> Result<(), Error> {
        for _ in 0..2 {
            for plugin in &self.mutating {
                plugin.admit(request, object.as_deref_mut()).decided().await?;
            }
            if !request.begin_again() {
                break;
            }
        }
        Ok(())
    }

    /// The second phase.
    pub async fn validate(&self, request: &Request<'_>, object: Option<&Object>) -> Result<(), Error> {
        for plugin in &self.validating {
            plugin.validate(request, object).decided().await?;
        }
        Ok(())
    }
}
