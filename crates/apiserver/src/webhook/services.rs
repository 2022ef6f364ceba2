//! Resolves Services by their EndpointSlices: there is no cluster DNS, and nothing forwards cluster IPs.

use model::error::quote;
use model::selector::{Requirement, Target, Test};
use model::{ObjectKey, Resource, Selector};
use serde_json::Value;
use store::Store;

use crate::pages::Pages;

/// The number of endpoints of a Service to use.
const ENDPOINTS: usize = 256;

/// The resolver of Services.
#[derive(Clone, Default)]
pub(crate) struct Services(Option<Store>);

impl Services {
    /// Resolves by this store.
    pub fn of(store: &Store) -> Self {
        Self(Some(store.clone()))
    }

    /// Hosts and ports of a Service port.
    ///
    /// # Errors
    /// The message for the client of this server.
    pub async fn find(&self, namespace: &str, name: &str, port: u16) -> Result<Vec<(String, u16)>, String> {
        let missing = || format!("service {} not found", quote(name));
        let store = self.0.as_ref().ok_or_else(missing)?;
        let key = ObjectKey::new(&Resource::new("", "services"), namespace, name);
        let found = store.get(&key, None).await.map_err(|error| error.to_string())?.ok_or_else(missing)?;
        let service: Value = serde_json::from_slice(&found.value).map_err(|error| error.to_string())?;
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return Ok(vec![(spec["externalName"].as_str().unwrap_or_default().to_owned(), port)]);
        }
        let ports = spec["ports"].as_array().into_iter().flatten();
        let Some(served) = ports.into_iter().find(|served| served["port"] == port) else {
            return Err(format!("no service port {port} found for service {}", quote(name)));
        };
        let port_name = served["name"].as_str().unwrap_or_default();
        let found = ready(store, namespace, name, port_name).await.map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err(format!("no endpoints available for service {}", quote(name)));
        }
        Ok(found)
    }
}

/// The ready endpoints of a Service, from as many slices as needed.
async fn ready(
    store: &Store,
    namespace: &str,
    service: &str,
    port_name: &str,
) -> Result<Vec<(String, u16)>, store::Error> {
    let of_service = Requirement {
        target: Target::Label,
        key: "kubernetes.io/service-name".to_owned(),
        test: Test::In(vec![service.to_owned()]),
    };
    let resource = Resource::new("discovery.k8s.io", "endpointslices");
    let selector = Selector { requirements: vec![of_service] };
    let mut pages = Pages::of(store, resource).within(namespace).selected(selector);
    let mut found = Vec::new();
    while found.len() < ENDPOINTS
        && let Some(page) = pages.next().await?
    {
        let slices = page.items.iter().filter_map(|item| serde_json::from_slice(&item.value).ok());
        found.extend(slices.flat_map(|slice: Value| endpoints(&slice, port_name)));
    }
    found.truncate(ENDPOINTS);
    Ok(found)
}

/// The ready endpoints of a slice, with the port number.
fn endpoints(slice: &Value, port_name: &str) -> Vec<(String, u16)> {
    let named = |port: &&Value| port["name"].as_str().unwrap_or_default() == port_name;
    let port = slice["ports"].as_array().and_then(|ports| ports.iter().find(named));
    let port = port.and_then(|port| u16::try_from(port["port"].as_u64()?).ok());
    let Some(port) = port else { return Vec::new() };
    let all = slice["endpoints"].as_array().into_iter().flatten();
    let ready = all.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    ready.filter_map(|endpoint| Some((endpoint["addresses"].get(0)?.as_str()?.to_owned(), port))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn endpoints_that_are_ready_are_taken() {
        let slice = json!({
            "ports": [{"name": "other", "port": 1}, {"name": "https", "port": 8443}],
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.2", "10.0.0.3"]},
                {"addresses": ["10.0.0.4"], "conditions": {"ready": true}},
            ],
        });
        let expected = ["10.0.0.2", "10.0.0.4"].map(|address| (address.to_owned(), 8443));
        assert_eq!(endpoints(&slice, "https"), expected);
        assert_eq!(endpoints(&slice, "none"), []);
        assert_eq!(endpoints(&json!({"ports": [{"port": 1}], "endpoints": []}), ""), []);
    }
}
