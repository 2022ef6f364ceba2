//! `AdmissionConfiguration`: the file in which an operator configures admission plugins.

use model::Object;
use model::error::{FieldError, quote};
use model::json::parse_yaml;
use model::object;
use serde_json::Value;

use super::kubeconfig::Users;
use crate::pod_security::{self, ConfigurationError};

const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
const POD_SECURITY_GROUP: &str = "pod-security.admission.config.k8s.io/";
const POD_SECURITY_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// The configuration of the admission plugins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionConfiguration {
    /// The configuration of `PodSecurity`.
    pub pod_security: pod_security::Configuration,
    /// The credentials for calls of mutating webhooks.
    pub mutating_webhook_users: Users,
    /// The credentials for calls of validating webhooks.
    pub validating_webhook_users: Users,
    /// Settings without effect, one sentence each.
    pub warnings: Vec<String>,
}

/// Loads the configuration file of one plugin by its path.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

impl AdmissionConfiguration {
    /// Parses the file; `is_on` tells which plugins are enabled, and only those are configured.
    ///
    /// # Errors
    /// The reason why the server refuses to start, in kube-apiserver's words where it refuses, too. Settings that only
    /// this server does not support are refused as well.
    pub fn read(file: &[u8], is_on: &dyn Fn(&str) -> bool, load: Load<'_>) -> Result<Self, String> {
        let failed = |problem: String| format!("failed to read plugin config: {problem}");
        let whole = document(file).map_err(failed)?;
        let is_known =
            |version: &str, kind: &str| VERSIONS.contains(&version) && kind == "AdmissionConfiguration";
        named(&whole, is_known).map_err(failed)?;
        only(&whole, "", &["apiVersion", "kind", "plugins"]).map_err(failed)?;
        let mut configuration = Self::default();
        let plugins = whole.get("plugins").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, plugin) in plugins.iter().filter_map(Value::as_object).enumerate() {
            only(plugin, &format!("plugins[{index}]."), &["name", "path", "configuration"])
                .map_err(failed)?;
            let text = |field: &str| object::text(plugin, &[field]);
            let name = text("name");
            if !is_on(name) {
                let warning = format!(
                    "admission plugin {} is not enabled; its configuration has no effect",
                    quote(name)
                );
                configuration.warnings.push(warning);
                continue;
            }
            let own = match plugin.get("configuration").and_then(Value::as_object) {
                Some(own) => own.clone(),
                None if text("path").is_empty() => continue,
                None => load(text("path"))
                    .and_then(|file| document(&file))
                    .map_err(|problem| cannot(name, &problem))?,
            };
            configuration.plugin(name, &own, load)?;
        }
        Ok(configuration)
    }

    fn plugin(&mut self, name: &str, own: &Object, load: Load<'_>) -> Result<(), String> {
        let failed = |problem: String| cannot(name, &problem);
        match name {
            "PodSecurity" => {
                let is_known = |version: &str, kind: &str| {
                    let version = version.strip_prefix(POD_SECURITY_GROUP).unwrap_or_default();
                    POD_SECURITY_VERSIONS.contains(&version) && kind == "PodSecurityConfiguration"
                };
                named(own, is_known).map_err(failed)?;
                self.pod_security = pod_security::Configuration::read(own).map_err(pod_security_problem)?;
            }
            "MutatingAdmissionWebhook" => {
                self.mutating_webhook_users = webhook_users(own, load).map_err(failed)?;
            }
            "ValidatingAdmissionWebhook" => {
                self.validating_webhook_users = webhook_users(own, load).map_err(failed)?;
            }
            "ResourceQuota" => quota(own).map_err(failed)?,
            _ => return Err(failed("it takes no configuration".to_owned())),
        }
        Ok(())
    }
}

/// The error of a plugin that cannot be initialized.
fn cannot(name: &str, problem: &str) -> String {
    format!("couldn't init admission plugin {}: {problem}", quote(name))
}

fn pod_security_problem(problem: ConfigurationError) -> String {
    let begin = "failed to initialize admission plugin \"PodSecurity\": PodSecurity";
    match problem {
        ConfigurationError::UnknownField(field) => cannot("PodSecurity", &unknown(&field)),
        ConfigurationError::Defaults(wrong) => {
            format!("{begin} configuration error: {}", joined_errors(&wrong))
        }
        ConfigurationError::Exemptions(errors) => {
            let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
            format!("{begin} invalid: {}", joined_errors(&errors))
        }
    }
}

fn joined_errors(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn unknown(field: &str) -> String {
    format!("strict decoding error: unknown field {}", quote(field))
}

fn document(file: &[u8]) -> Result<Object, String> {
    let parsed = parse_yaml(file).map_err(|error| error.to_string())?;
    if let Some(twice) = parsed.duplicates.first() {
        return Err(format!("strict decoding error: key {} already set in map", quote(twice)));
    }
    match parsed.value {
        Value::Object(object) => Ok(object),
        other => Err(format!("couldn't get version/kind; json parse error: {other} is no object")),
    }
}

/// Checks that apiVersion and kind of a document are known.
fn named(document: &Object, is_known: impl Fn(&str, &str) -> bool) -> Result<(), String> {
    let text = |field: &str| object::text(document, &[field]);
    let missing =
        |field: &str| format!("Object '{field}' is missing in '{}'", Value::Object(document.clone()));
    match (text("apiVersion"), text("kind")) {
        (_, "") => Err(missing("Kind")),
        ("", _) => Err(missing("apiVersion")),
        (version, kind) if is_known(version, kind) => Ok(()),
        (version, kind) => Err(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(kind),
            quote(version)
        )),
    }
}

fn only(object: &Object, path: &str, fields: &[&str]) -> Result<(), String> {
    match object.keys().find(|field| !fields.contains(&field.as_str())) {
        Some(field) => Err(unknown(&format!("{path}{field}"))),
        None => Ok(()),
    }
}

/// The users of the kubeconfig that a `WebhookAdmissionConfiguration` names.
fn webhook_users(own: &Object, load: Load<'_>) -> Result<Users, String> {
    named(own, |version, kind| {
        version.starts_with("apiserver.config.k8s.io/") && kind == "WebhookAdmissionConfiguration"
    })?;
    only(own, "", &["apiVersion", "kind", "kubeConfigFile"])?;
    match own.get("kubeConfigFile").and_then(Value::as_str).unwrap_or_default() {
        "" => Ok(Users::default()),
        file if !file.starts_with('/') => {
            Err(format!("kubeConfigFile: Invalid value: {}: must be an absolute file path", quote(file)))
        }
        file => Users::read(file, load),
    }
}

/// Refuses `limitedResources`, which this server does not support.
fn quota(own: &Object) -> Result<(), String> {
    named(own, |version, kind| {
        (version.starts_with("apiserver.config.k8s.io/") && kind == "ResourceQuotaConfiguration")
            || (version.starts_with("resourcequota.admission.k8s.io/") && kind == "Configuration")
    })?;
    only(own, "", &["apiVersion", "kind", "limitedResources"])?;
    let limited = own.get("limitedResources").and_then(Value::as_array);
    match limited.is_none_or(Vec::is_empty) {
        true => Ok(()),
        false => Err("limitedResources is not supported".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_security::{Level, Version};

    fn read(text: &str) -> Result<AdmissionConfiguration, String> {
        let load = |path: &str| match path {
            "own.yaml" => Ok(b"{apiVersion: pod-security.admission.config.k8s.io/v1beta1, kind: \
                               PodSecurityConfiguration, defaults: {warn: baseline}}"
                .to_vec()),
            _ => Err(format!("{path} is not there")),
        };
        AdmissionConfiguration::read(text.as_bytes(), &|name| name != "EventRateLimit", &load)
    }

    fn with(plugin: &str) -> Result<AdmissionConfiguration, String> {
        read(&format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{plugin}]"
        ))
    }

    fn pod_security(more: &str) -> Result<AdmissionConfiguration, String> {
        let head = "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration";
        with(&format!("{{name: PodSecurity, configuration: {{{head}, {more}}}}}"))
    }

    #[test]
    fn pod_security_is_configured() {
        let read = pod_security(
            "defaults: {enforce: baseline, enforce-version: v1.30}, exemptions: {usernames: [root], namespaces: [a]}",
        );
        let configuration = read.unwrap().pod_security;
        assert_eq!(configuration.defaults.enforce.level, Level::Baseline);
        assert_eq!(configuration.defaults.enforce.version, Version::Minor(30));
        assert_eq!(configuration.defaults.warn.level, Level::Privileged);
        assert!(
            configuration.exemptions.users.contains("root")
                && configuration.exemptions.namespaces.contains("a")
        );
        let own = with("{name: PodSecurity, path: own.yaml}").unwrap();
        assert_eq!(own.pod_security.defaults.warn.level, Level::Baseline);
    }

    #[test]
    fn invalid_configuration_is_refused_with_the_messages_of_kubernetes() {
        let begin = "failed to initialize admission plugin \"PodSecurity\": PodSecurity";
        for (given, expected) in [
            (
                pod_security("defaults: {enforce: high, warn-version: v2}"),
                format!(
                    "{begin} configuration error: [enforce: must be one of privileged, baseline, restricted, \
                     warn-version: must be \"latest\" or \"v1.x\"]"
                ),
            ),
            (
                pod_security("exemptions: {usernames: [\"\"], runtimeClasses: [x, x]}"),
                format!(
                    "{begin} invalid: [exemptions.runtimeClasses[1]: Duplicate value: \"x\", exemptions.usernames[0]: \
                     Invalid value: \"\": username must not be empty]"
                ),
            ),
            (
                pod_security("default: {}"),
                "couldn't init admission plugin \"PodSecurity\": strict decoding error: unknown field \"default\""
                    .to_owned(),
            ),
            (
                with("{name: PodSecurity, configuration: {apiVersion: v1, kind: X}}"),
                "couldn't init admission plugin \"PodSecurity\": no kind \"X\" is registered for version \"v1\" in \
                 scheme \"pkg/runtime/scheme.go:111\""
                    .to_owned(),
            ),
            (
                read("{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugin: []}"),
                "failed to read plugin config: strict decoding error: unknown field \"plugin\"".to_owned(),
            ),
            (
                with("{name: ValidatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: \
                      WebhookAdmissionConfiguration, kubeConfigFile: rel.yaml}}"),
                "couldn't init admission plugin \"ValidatingAdmissionWebhook\": kubeConfigFile: Invalid value: \
                 \"rel.yaml\": must be an absolute file path"
                    .to_owned(),
            ),
        ] {
            assert_eq!(given.unwrap_err(), expected);
        }
    }

    #[test]
    fn unsupported_settings_are_refused() {
        let off = with("{name: EventRateLimit, configuration: {}}").unwrap();
        assert_eq!(
            off.warnings,
            ["admission plugin \"EventRateLimit\" is not enabled; its configuration has no effect"]
        );
        assert!(
            with("{name: Priority, configuration: {}}").unwrap_err().ends_with("it takes no configuration")
        );
        let quota = "apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration";
        assert!(with(&format!("{{name: ResourceQuota, configuration: {{{quota}}}}}")).is_ok());
        let limited =
            format!("{{name: ResourceQuota, configuration: {{{quota}, limitedResources: [{{}}]}}}}");
        assert!(with(&limited).is_err());
        assert!(
            with("{name: PodSecurity, path: none.yaml}").unwrap_err().ends_with("none.yaml is not there")
        );
    }
}
