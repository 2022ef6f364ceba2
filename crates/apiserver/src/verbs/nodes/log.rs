//! The log subresource of Pods.

use http::Response;
use model::error::{Error, FieldError, quote};

use super::{NO_NODE_CONNECTION, container, empty_response, is_placed, object};
use crate::body::Body;
use crate::request::query::Query;
use crate::verbs::Call;

/// Serves an empty log for a Pod without a node.
pub async fn read(call: &Call) -> Result<Response<Body>, Error> {
    let errors = problems(&call.query)?;
    let name = &call.path.name;
    if !errors.is_empty() {
        let (group, kind) = (String::new(), "PodLogOptions".to_owned());
        return Err(Error::Invalid { group, kind, name: name.clone(), errors });
    }
    let pod = object(call, "pods", name).await?;
    container(&pod, call.query.text("container"))?;
    if is_placed(call, &pod).await? {
        return Err(Error::Failed { message: NO_NODE_CONNECTION.to_owned() });
    }
    Ok(empty_response())
}

/// The validation errors of the options, in Kubernetes' order.
fn problems(query: &Query) -> Result<Vec<FieldError>, Error> {
    let [tail, bytes, seconds] = ["tailLines", "limitBytes", "sinceSeconds"].map(|key| number(query, key));
    let (tail, bytes, seconds) = (tail?, bytes?, seconds?);
    check_time(query)?;
    let mut errors = Vec::new();
    if let Some(lines) = tail.filter(|lines| *lines < 0) {
        errors.push(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
    }
    if let Some(bytes) = bytes.filter(|bytes| *bytes < 1) {
        errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
    }
    match seconds {
        Some(_) if query.has("sinceTime") => {
            let message = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("[]", message));
        }
        Some(seconds) if seconds < 1 => {
            errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
        }
        _ => {}
    }
    if query.has("stream") {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    Ok(errors)
}

fn number(query: &Query, key: &str) -> Result<Option<i64>, Error> {
    let Some(text) = query.has(key).then(|| query.text(key)) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if is_number { "value out of range" } else { "invalid syntax" };
        Error::BadRequest { message: format!("strconv.ParseInt: parsing {}: {problem}", quote(text)) }
    })
}

fn check_time(query: &Query) -> Result<(), Error> {
    let text = query.text("sinceTime");
    if text.is_empty() || text.parse::<jiff::Timestamp>().is_ok() {
        return Ok(());
    }
    let text = quote(text);
    let message =
        format!("parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\"");
    Err(Error::BadRequest { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(query: &str) -> String {
        match problems(&Query::parse(query)) {
            Ok(errors) => errors.iter().map(FieldError::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn options_are_checked() {
        assert_eq!(error_of("follow=maybe&tailLines=0&limitBytes=1&sinceSeconds=1"), "");
        assert_eq!(error_of("sinceTime=2020-01-01T00:00:00Z"), "");
        assert_eq!(error_of("tailLines="), "strconv.ParseInt: parsing \"\": invalid syntax");
        let many = "9".repeat(20);
        assert_eq!(
            error_of(&format!("limitBytes={many}")),
            format!("strconv.ParseInt: parsing \"{many}\": value out of range")
        );
        assert_eq!(error_of("limitBytes=0"), "limitBytes: Invalid value: 0: must be greater than 0");
    }
}
