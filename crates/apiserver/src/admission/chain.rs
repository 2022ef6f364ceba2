//! The enabled admission plugins in their order, and the chain of those that handle a resource.

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use kinds::admission::configuration::AdmissionConfiguration;
use model::Resource;
use model::error::Error;
use store::Store;

use super::informers::PluginInformer;
use super::plugins::PluginBuilder;
use super::switches::PLUGINS;
use super::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, Switches};
use crate::informer::Informers;
use crate::registry::{Object, Registry, ResourceType, Served};
use crate::webhook::Services;

/// The enabled plugins, in Kubernetes' order, and their informers.
pub(crate) struct Admission {
    switches: Switches,
    plugins: Vec<Arc<dyn Plugin>>,
    informers: Vec<Arc<dyn PluginInformer>>,
}

/// The plugin chains of one resource type, for the object and each of its subresources.
#[derive(Default)]
pub(crate) struct ResourcePlugins {
    subresources: Vec<(String, [PluginChain; Operation::ALL.len()])>,
}

/// The chain without plugins.
static NO_PLUGINS: LazyLock<PluginChain> = LazyLock::new(PluginChain::default);

/// The plugins that handle one operation.
#[derive(Default)]
pub(crate) struct PluginChain {
    mutating: Box<[Arc<dyn Plugin>]>,
    validating: Box<[Arc<dyn Plugin>]>,
}

impl Admission {
    /// `others` are further informers that a write waits for, such as those of FlowSchemas.
    pub fn new(
        switches: Switches,
        configuration: AdmissionConfiguration,
        services: Services,
        others: impl IntoIterator<Item = Arc<dyn PluginInformer>>,
    ) -> Self {
        let mut built = PluginBuilder::new(configuration, services);
        PLUGINS.iter().filter(|(name, _)| switches.is_on(name)).for_each(|(name, _)| built.add(name));
        built.add_permanent();
        built.informers.extend(others);
        Self { switches, plugins: built.plugins, informers: built.informers }
    }

    /// Whether a plugin is enabled.
    pub fn is_on(&self, name: &str) -> bool {
        self.switches.is_on(name)
    }

    /// Fills the caches of the informers and returns the tasks that keep them current.
    pub async fn start_informers(
        &self,
        store: &Store,
        registry: &Registry,
    ) -> Result<Vec<(Resource, BoxFuture<'static, ()>)>, Error> {
        // One after the other: most are empty, and each concurrent list needs a database connection.
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

    /// The resources with an informer.
    pub fn informed_resources<'a>(&'a self, registry: &'a Registry) -> impl Iterator<Item = &'a Resource> {
        self.served(registry).map(|of| of.resource())
    }

    /// The informers of resources that the server serves.
    fn served<'a>(
        &'a self,
        registry: &'a Registry,
    ) -> impl Iterator<Item = &'a Arc<dyn PluginInformer>> + Send {
        let is_served =
            |of: &&Arc<dyn PluginInformer>| registry.types().any(|known| known.resource == *of.resource());
        self.informers.iter().filter(is_served)
    }

    fn resource_plugins(&self, resource_type: &ResourceType) -> ResourcePlugins {
        let subresources = resource_type.subresources.iter().map(|subresource| subresource.name.as_str());
        let chains = |subresource: &str| {
            let chains = Operation::ALL.map(|operation| {
                let target = AdmissionTarget { resource_type, subresource, operation };
                let select = |wanted: fn(Phases) -> bool| {
                    let wants = |plugin: &&Arc<dyn Plugin>| {
                        let is_meant = operation != Operation::Connect || plugin.connects();
                        is_meant && wanted(plugin.handles(target))
                    };
                    self.plugins.iter().filter(wants).cloned().collect()
                };
                PluginChain {
                    mutating: select(|phases| phases.mutates),
                    validating: select(|phases| phases.validates),
                }
            });
            (subresource.to_owned(), chains)
        };
        ResourcePlugins { subresources: std::iter::once("").chain(subresources).map(chains).collect() }
    }

    /// The chain of an operation, computed at the first request.
    pub fn plugins_for<'a>(
        &self,
        of: &'a Served,
        subresource: &str,
        operation: Operation,
    ) -> &'a PluginChain {
        let plugins = of.admission.get_or_init(|| self.resource_plugins(of));
        let found = plugins.subresources.iter().find(|(name, _)| name == subresource);
        found.map_or(&NO_PLUGINS, |(_, chains)| &chains[operation as usize])
    }
}

impl PluginChain {
    /// The chain without plugins.
    pub fn empty() -> &'static Self {
        &NO_PLUGINS
    }

    /// Whether the chain has no plugins.
    pub fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// Mutating phase. If a webhook changed the object, the plugins run once more.
    pub async fn admit(
        &self,
        request: &AdmissionAttributes<'_>,
        mut object: Option<&mut Object>,
    ) -> Result<(), Error> {
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

    /// Validating phase.
    pub async fn validate(
        &self,
        request: &AdmissionAttributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Error> {
        for plugin in &self.validating {
            plugin.validate(request, object).decided().await?;
        }
        Ok(())
    }
}
