//! Options of connect requests, and their admission.

use model::error::Error;
use serde_json::{Value, json};

use super::check_ports;
use crate::admission::AdmissionAttributes;
use crate::registry::{Object, ResourceType, Served};
use crate::verbs::Call;

const STREAMS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

/// The options, after admission.
pub async fn options(call: &Call) -> Result<Object, Error> {
    let (kind, mut options) = read(call)?;
    let shown = Served::without_path(ResourceType::new("", "v1", kind, &call.path.resource));
    AdmissionAttributes::connect(call).shown_as(&shown).admit_whole(&mut options).await?;
    Ok(options)
}

/// The options of the query, and their kind.
fn read(call: &Call) -> Result<(&'static str, Object), Error> {
    let mut options = Object::new();
    let query = &call.query;
    let kind = match (call.path.subresource.as_str(), call.path.resource.as_str()) {
        ("portforward", _) => {
            check_ports(call)?;
            let ports: Vec<u16> = query.all("ports").filter_map(|port| port.parse().ok()).collect();
            set(&mut options, "ports", json!(ports));
            return Ok(("PodPortForwardOptions", options));
        }
        ("proxy", resource) => {
            set(&mut options, "path", call.path.beyond.as_str().into());
            return Ok((proxy(resource), options));
        }
        ("exec", _) => "PodExecOptions",
        _ => "PodAttachOptions",
    };
    for stream in STREAMS {
        set(&mut options, stream, query.flag(stream).into());
    }
    set(&mut options, "container", query.text("container").into());
    if call.path.subresource == "exec" {
        set(&mut options, "command", query.all("command").collect());
    }
    Ok((kind, options))
}

fn proxy(resource: &str) -> &'static str {
    match resource {
        "pods" => "PodProxyOptions",
        "services" => "ServiceProxyOptions",
        _ => "NodeProxyOptions",
    }
}

/// Sets an option unless it is empty.
fn set(options: &mut Object, key: &str, value: Value) {
    let is_empty = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => *other == false,
    };
    if !is_empty {
        options.insert(key.to_owned(), value);
    }
}
