//! `--runtime-config`: the served APIs are fixed, and other settings give a warning.

use kinds::resources;

/// Keys for several APIs, with the versions that they select.
const MANY: [(&str, &[&str]); 5] = [
    ("api/all", &["v", "beta", "alpha"]),
    ("api/ga", &["v"]),
    ("api/beta", &["beta"]),
    ("api/alpha", &["alpha"]),
    ("api/legacy", &[]),
];

/// Groups of Kubernetes 1.35 that are not served.
const ABSENT_GROUPS: [&str; 3] = ["internal.apiserver.k8s.io", "storagemigration.k8s.io", "extensions"];

/// Warnings about settings without effect, or the error of an invalid key or value.
pub(super) fn warnings(pairs: &[(String, String)]) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    let mut unknown = Vec::new();
    for (key, value) in pairs {
        let wanted = match value.to_ascii_lowercase().as_str() {
            "" | "true" | "t" | "1" => true,
            "false" | "f" | "0" => false,
            _ => {
                return Err(format!(
                    "invalid value of {key}: {value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
                ));
            }
        };
        let reason = if let Some((_, stages)) = MANY.iter().find(|(known, _)| known == key) {
            reason_of_many(stages, wanted)
        } else {
            let mut words = key.split('/');
            let (group, version) = match (words.next(), words.next()) {
                (Some("v1"), None) => ("", "v1"),
                (Some("api"), Some("v1")) => ("", "v1"),
                (Some(group), Some(version)) => (group, version),
                _ => return Err(format!("runtime-config invalid key {key}")),
            };
            if !is_group(group) {
                unknown.push(group);
                continue;
            }
            let is_served = is_served(group, version);
            match (wanted, is_served) {
                (true, false) => Some("this API is not served"),
                (false, true) => Some("this API is always served"),
                _ => None,
            }
        };
        if let Some(reason) = reason {
            warnings.push(format!("--runtime-config={key}={value} has no effect here: {reason}"));
        }
    }
    match unknown.is_empty() {
        true => Ok(warnings),
        false => Err(format!("unknown api groups {}", unknown.join(","))),
    }
}

fn reason_of_many(stages: &[&str], wanted: bool) -> Option<&'static str> {
    match (wanted, stages) {
        (true, stages) if stages.contains(&"beta") || stages.contains(&"alpha") => {
            Some("the APIs of 1.35 that are on by default are served, and no others")
        }
        (false, stages) if stages.contains(&"v") => Some("stable APIs are always served"),
        _ => None,
    }
}

fn is_group(group: &str) -> bool {
    resources::TABLE.iter().any(|version| version.group == group) || ABSENT_GROUPS.contains(&group)
}

fn is_served(group: &str, version: &str) -> bool {
    resources::TABLE.iter().any(|row| row.group == group && row.version == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> Result<Vec<String>, String> {
        warnings(&[(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn what_is_as_asked_for_needs_no_word() {
        for (key, value) in [
            ("apps/v1", "true"),
            ("v1", "true"),
            ("api/ga", "true"),
            ("api/beta", "false"),
            ("batch/v1/jobs", ""),
        ] {
            assert_eq!(set(key, value), Ok(Vec::new()), "{key}={value}");
        }
    }

    #[test]
    fn what_is_not_as_asked_for_is_said() {
        for (key, value) in [
            ("apps/v1", "false"),
            ("api/all", "true"),
            ("resource.k8s.io/v1beta1", "true"),
            ("api/all", "false"),
        ] {
            assert_eq!(set(key, value).unwrap().len(), 1, "{key}={value}");
        }
    }

    #[test]
    fn nonsense_is_refused_in_kubernetes_words() {
        assert_eq!(set("foo/v1", "true").unwrap_err(), "unknown api groups foo");
        assert_eq!(set("api/foo", "true").unwrap_err(), "unknown api groups api");
        assert_eq!(
            set("v1", "maybe").unwrap_err(),
            "invalid value of v1: maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax"
        );
    }
}
