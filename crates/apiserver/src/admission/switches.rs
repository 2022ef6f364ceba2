//! The switches of admission plugins: Kubernetes' names, order and defaults, and the operator's choice.

use model::error::quote;
use std::collections::BTreeSet;
use std::fmt;

/// Every plugin of Kubernetes 1.35, in order of execution, and whether it is enabled by default.
pub const PLUGINS: [(&str, bool); 37] = [
    ("AlwaysAdmit", false),
    ("NamespaceAutoProvision", false),
    ("NamespaceLifecycle", true),
    ("NamespaceExists", false),
    ("LimitPodHardAntiAffinityTopology", false),
    ("LimitRanger", true),
    ("ServiceAccount", true),
    ("NodeRestriction", false),
    ("TaintNodesByCondition", true),
    ("AlwaysPullImages", false),
    ("ImagePolicyWebhook", false),
    ("PodSecurity", true),
    ("PodNodeSelector", false),
    ("Priority", true),
    ("DefaultTolerationSeconds", true),
    ("PodTolerationRestriction", false),
    ("EventRateLimit", false),
    ("ExtendedResourceToleration", false),
    ("DefaultStorageClass", true),
    ("StorageObjectInUseProtection", true),
    ("OwnerReferencesPermissionEnforcement", false),
    ("PersistentVolumeClaimResize", true),
    ("RuntimeClass", true),
    ("CertificateApproval", true),
    ("CertificateSigning", true),
    ("ClusterTrustBundleAttest", true),
    ("CertificateSubjectRestriction", true),
    ("DefaultIngressClass", true),
    ("DenyServiceExternalIPs", false),
    ("PodTopologyLabels", true),
    ("NodeDeclaredFeatureValidator", true),
    ("MutatingAdmissionPolicy", true),
    ("MutatingAdmissionWebhook", true),
    ("ValidatingAdmissionPolicy", true),
    ("ValidatingAdmissionWebhook", true),
    ("ResourceQuota", true),
    ("AlwaysDeny", false),
];

/// Plugins that need a configuration which this server does not read: refused instead of ignored.
const UNAVAILABLE: [&str; 2] = ["EventRateLimit", "ImagePolicyWebhook"];

/// Plugins that need controllers.
const NEED_CONTROLLERS: [&str; 2] = ["ServiceAccount", "StorageObjectInUseProtection"];

/// The enabled plugins. The default is that of Kubernetes without two plugins that need controllers: `ServiceAccount` refuses
/// Pods until the controller has created the account of the namespace, and `StorageObjectInUseProtection` adds a finalizer
/// that only a controller removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    on: BTreeSet<&'static str>,
}

impl Default for Switches {
    fn default() -> Self {
        let mut switches = Self::kubernetes();
        switches.on.retain(|name| !NEED_CONTROLLERS.contains(name));
        switches
    }
}

impl Switches {
    /// The defaults of kube-apiserver.
    pub fn kubernetes() -> Self {
        Self { on: PLUGINS.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect() }
    }

    /// Applies `--enable-admission-plugins` and `--disable-admission-plugins`.
    ///
    /// # Errors
    /// Unknown names, and names in both lists.
    pub fn with(mut self, enable: &[String], disable: &[String]) -> Result<Self, UnknownPlugins> {
        let mut errors = Vec::new();
        let known = |name: &str| PLUGINS.iter().map(|(known, _)| *known).find(|known| *known == name);
        let mut read = |names: &[String], flag: &str| -> BTreeSet<&'static str> {
            let unknown = names.iter().filter(|name| known(name).is_none());
            errors.extend(unknown.map(|name| format!("{flag} plugin {} is unknown", quote(name))));
            names.iter().filter_map(|name| known(name)).collect()
        };
        let (on, off) =
            (read(enable, "enable-admission-plugins"), read(disable, "disable-admission-plugins"));
        let missing = on.iter().filter(|name| UNAVAILABLE.contains(name));
        errors.extend(missing.map(|name| {
            format!("enable-admission-plugins plugin {} is not available in Orlop", quote(name))
        }));
        let both: Vec<&str> = on.intersection(&off).copied().collect();
        if !both.is_empty() {
            let both = both.join(" ");
            errors.push(format!(
                "[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"
            ));
        }
        if !errors.is_empty() {
            return Err(UnknownPlugins(errors));
        }
        self.on.retain(|name| !off.contains(name));
        self.on.extend(on);
        Ok(self)
    }

    /// No plugin.
    pub fn none() -> Self {
        Self { on: BTreeSet::new() }
    }

    /// Whether a plugin is enabled.
    pub fn is_on(&self, name: &str) -> bool {
        self.on.contains(name)
    }
}

/// Plugin names that are refused, with the messages of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlugins(pub Vec<String>);

impl fmt::Display for UnknownPlugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}

impl std::error::Error for UnknownPlugins {}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn plugins_are_switched_by_name() {
        let switches = Switches::kubernetes();
        assert!(switches.is_on("ServiceAccount") && !Switches::default().is_on("ServiceAccount"));
        let switched = switches.with(&names(&["AlwaysPullImages"]), &names(&["ResourceQuota"])).unwrap();
        assert!(switched.is_on("AlwaysPullImages") && !switched.is_on("ResourceQuota"));
    }

    #[test]
    fn unknown_names_are_refused_in_kubernetes_words() {
        let refused = |enable: &[&str], disable: &[&str]| {
            Switches::default().with(&names(enable), &names(disable)).unwrap_err().to_string()
        };
        let missing = "enable-admission-plugins plugin \"EventRateLimit\" is not available in Orlop";
        assert_eq!(refused(&["EventRateLimit"], &[]), missing);
        assert_eq!(refused(&["Nope"], &[]), "enable-admission-plugins plugin \"Nope\" is unknown");
        assert_eq!(
            refused(&["Priority"], &["Priority", "No"]),
            "[disable-admission-plugins plugin \"No\" is unknown, \
             [Priority] in enable-admission-plugins and disable-admission-plugins overlapped]"
        );
    }
}
