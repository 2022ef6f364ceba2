//! CertificateSigningRequests.

use serde_json::json;

use super::*;

const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QmVEQlpNQk1\
     HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCSnhUQ0d0RE9rb2psdUNHMm1nbjVEcDltb2NVMXM0SjFNNUdYSXF0OT\
     l6elN5V3FxZm00K1h3WnJIN2ZIdTdVCmRiOVF2RW1CcXE1MXFvSXV0UUhXOHNXZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCR\
     kFpRUFpR2xmUGJIamxQRWYKbi82T1ZBdU9idld6OW4wSTFDeGN4cGJzem96dGdXQUNJQnRKcTRvTHZQR0NoaXpIRXFqZXls\
     b3VZRFhyZDFGSApLelNuc2E3eFBrZU0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
const CERTIFICATE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJiVENDQVJPZ0F3SUJBZ0lVZWtvczJxcUhGRmdId2tTTUUycnNnaXF\
     hNWRJd0NnWUlLb1pJemowRUF3SXcKRERFS01BZ0dBMVVFQXd3QmVEQWVGdzB5TmpFeE1UWXdNek0yTlRKYUZ3MHpOakV4TV\
     RNd016TTJOVEphTUF3eApDakFJQmdOVkJBTU1BWGd3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVNjVXdoc\
     lF6cEtJNWJnCmh0cG9KK1E2ZlpxSEZOYk9DZFRPUmx5S3JmZmM4MHNscXFuNXVQbDhHYXgrM3g3dTFIVy9VTHhKZ2FxdWRh\
     cUMKTHJVQjF2TEZvMU13VVRBZEJnTlZIUTRFRmdRVUFPY29SRHl5azhhaVdqYzJXS21FSk8rUXZRQXdId1lEVlIwagpCQmd\
     3Rm9BVUFPY29SRHl5azhhaVdqYzJXS21FSk8rUXZRQXdEd1lEVlIwVEFRSC9CQVV3QXdFQi96QUtCZ2dxCmhrak9QUVFEQW\
     dOSUFEQkZBaUJsZ21ldlNlOGdvNWxRM1JJdkQydTkrYURhS3dHOEIzajhpY0xBQy9jMmNRSWgKQU8yenZUT0VhRnpVNTRuY\
     TlQU0tCYjY2TmZFdUNVVFdMV1hCTDFMK0Q1VzUKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";

/// A request with these fields added to its spec.
fn request(fields: Value) -> Value {
    let mut spec = json!({"request": REQUEST, "signerName": "example.com/x", "usages": ["client auth"]});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({ "spec": spec })
}

/// A stored request with these fields added to its spec.
fn stored(fields: Value) -> Value {
    let mut object = request(fields);
    object["spec"]["username"] = "admin".into();
    object["spec"]["uid"] = "admin".into();
    object["spec"]["groups"] = json!(["system:masters", "system:authenticated"]);
    object
}

/// A request with a status.
fn with_status(status: Value) -> Value {
    let mut object = request(json!({}));
    object["status"] = status;
    object
}

#[test]
fn the_server_sets_the_requesting_user() {
    made(
        "CertificateSigningRequest",
        vec![
            (
                request(json!({})),
                json!({
                    "metadata": {},
                    "spec": {
                        "request": REQUEST,
                        "signerName": "example.com/x", "usages": ["client auth"], "username": "admin",
                        "uid": "admin", "groups": ["system:masters", "system:authenticated"],
                    },
                    "status": {},
                }),
            ),
            (
                request(json!({
                    "expirationSeconds": 600, "username": "me", "groups": ["g"], "uid": "u",
                    "extra": {"a": ["b"]},
                })),
                json!({
                    "metadata": {},
                    "spec": {
                        "request": REQUEST,
                        "signerName": "example.com/x", "expirationSeconds": 600, "usages": ["client auth"],
                        "username": "admin", "uid": "admin",
                        "groups": ["system:masters", "system:authenticated"],
                    },
                    "status": {},
                }),
            ),
        ],
    );
}

#[test]
fn the_spec_of_a_request_is_validated() {
    refused(
        "CertificateSigningRequest",
        vec![
            (
                json!({}),
                texts([
                    "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
                    "spec.usages: Required value",
                    "spec.signerName: Required value",
                ]),
            ),
            (
                request(json!({"request": "eA=="})),
                texts(["spec.request: Invalid value: \"eA==\": PEM block type must be CERTIFICATE REQUEST"]),
            ),
            (
                request(json!({"request": "LS0tLS1CRUdJTiBGT08tLS0tLQpBQUFBCi0tLS0tRU5EIEZPTy0tLS0tCg=="})),
                texts(["spec.request: Invalid value: \
                 \"LS0tLS1CRUdJTiBGT08tLS0tLQpBQUFBCi0tLS0tRU5EIEZPTy0tLS0tCg==\": PEM block type must be \
                 CERTIFICATE REQUEST"]),
            ),
            (request(json!({"usages": []})), texts(["spec.usages: Required value"])),
            (
                request(json!({"usages": ["foo", "client auth", "client auth"]})),
                texts([
                    "spec.usages[0]: Unsupported value: \"foo\": supported values: \"any\", \"cert sign\", \
                 \"client auth\", \"code signing\", \"content commitment\", \"crl sign\", \"data \
                 encipherment\", \"decipher only\", \"digital signature\", \"email protection\", \"encipher \
                 only\", \"ipsec end system\", \"ipsec tunnel\", \"ipsec user\", \"key agreement\", \"key \
                 encipherment\", \"microsoft sgc\", \"netscape sgc\", \"ocsp signing\", \"s/mime\", \
                 \"server auth\", \"signing\", \"timestamping\"",
                    "spec.usages[2]: Duplicate value: \"client auth\"",
                ]),
            ),
            (request(json!({"signerName": ""})), texts(["spec.signerName: Required value"])),
            (
                request(json!({"signerName": "a"})),
                texts([
                    "spec.signerName: Invalid value: \"a\": must be a fully qualified domain and path of the \
                 form 'example.com/signer-name'",
                ]),
            ),
            (
                request(json!({"signerName": "kubernetes.io/legacy-unknown"})),
                texts([
                    "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName \
                 is not allowed via this API version",
                ]),
            ),
            (
                request(json!({"signerName": "a/b"})),
                texts([
                    "spec.signerName: Invalid value: \"a\": should be a domain with at least two segments \
                 separated by dots",
                ]),
            ),
            (
                request(json!({"signerName": "A b.c/D_"})),
                texts([
                    "spec.signerName: Invalid value: \"A b.c\": validating label \"A b\": a lowercase RFC 1123 \
                 label must consist of lower case alphanumeric characters or '-', and must start and end \
                 with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation \
                 is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                    "spec.signerName: Invalid value: \"D_\": validating label \"D_\": a lowercase RFC 1123 \
                 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ]),
            ),
            (
                request(json!({"signerName": "a.b/c/d"})),
                texts([
                    "spec.signerName: Invalid value: \"a.b/c/d\": must be a fully qualified domain and path of \
                 the form 'example.com/signer-name'",
                ]),
            ),
            (
                request(json!({"expirationSeconds": 599})),
                texts([
                    "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 \
                 seconds (10 minutes)",
                ]),
            ),
        ],
    );
}

#[test]
fn an_approval_writes_conditions_only() {
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "approval",
            stored(json!({})),
            with_status(json!({
                "conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}],
                "certificate": CERTIFICATE,
            }))
        ),
        Ok(json!({
            "metadata": {},
            "spec": {
                "request": REQUEST,
                "signerName": "example.com/x", "usages": ["client auth"], "username": "admin",
                "uid": "admin", "groups": ["system:masters", "system:authenticated"],
            },
            "status": {
                "conditions": [
                    {
                        "type": "Approved", "status": "True", "reason": "r", "message": "m",
                        "lastUpdateTime": "2026-11-16T03:36:55Z",
                        "lastTransitionTime": "2026-11-16T03:36:55Z",
                    },
                ],
            },
        }))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "approval",
            stored(json!({})),
            with_status(
                json!({"conditions": [{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]})
            )
        ),
        Err(texts([
            "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually \
             exclusive",
        ]))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "approval",
            stored(json!({})),
            with_status(json!({
                "conditions": [
                    {"type": "", "status": "x"}, {"type": "Failed", "status": "False"},
                    {"type": "Foo", "status": ""}, {"type": "Foo", "status": "Unknown"},
                ],
            }))
        ),
        Err(texts([
            "status.conditions[0].type: Required value",
            "status.conditions[0].status: Unsupported value: \"x\": supported values: \"False\", \"True\", \
             \"Unknown\"",
            "status.conditions[1].status: Unsupported value: \"False\": supported values: \"True\"",
            "status.conditions[2].status: Required value",
            "status.conditions[3].type: Duplicate value: \"Foo\"",
        ]))
    );
}

#[test]
fn a_status_writes_the_certificate() {
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(json!({"conditions": [{"type": "Approved", "status": "True"}]}))
        ),
        Err(texts(["status.conditions: Forbidden: updates may not add a condition of type \"Approved\"",]))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(json!({
                "certificate": CERTIFICATE,
            }))
        ),
        Ok(json!({
            "metadata": {},
            "spec": {
                "request": REQUEST,
                "signerName": "example.com/x", "usages": ["client auth"], "username": "admin",
                "uid": "admin", "groups": ["system:masters", "system:authenticated"],
            },
            "status": {
                "certificate": CERTIFICATE,
            },
        }))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(json!({"certificate": "eA=="}))
        ),
        Err(texts(["status.certificate: Invalid value: \"<certificate data>\": must contain at least one \
             CERTIFICATE PEM block",]))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(
                json!({"certificate": "LS0tLS1CRUdJTiBGT08tLS0tLQpBQUFBCi0tLS0tRU5EIEZPTy0tLS0tCg=="})
            )
        ),
        Err(texts([
            "status.certificate: Invalid value: \"<certificate data>\": only CERTIFICATE PEM blocks are \
             allowed, found \"FOO\"",
        ]))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(json!({
                "certificate": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
            }))
        ),
        Err(texts([
            "status.certificate: Invalid value: \"<certificate data>\": x509: malformed certificate",
        ]))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(json!({
                "certificate": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmE6IGIKCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
            }))
        ),
        Err(texts([
            "status.certificate: Invalid value: \"<certificate data>\": no PEM block headers are permitted",
        ]))
    );
    assert_eq!(
        write_subresource(
            "CertificateSigningRequest",
            "status",
            stored(json!({})),
            with_status(json!({"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]}))
        ),
        Ok(json!({
            "metadata": {},
            "spec": {
                "request": REQUEST,
                "signerName": "example.com/x", "usages": ["client auth"], "username": "admin",
                "uid": "admin", "groups": ["system:masters", "system:authenticated"],
            },
            "status": {
                "conditions": [
                    {
                        "type": "Failed", "status": "True", "reason": "r",
                        "lastUpdateTime": "2026-11-16T03:36:55Z",
                        "lastTransitionTime": "2026-11-16T03:36:55Z",
                    },
                ],
            },
        }))
    );
}

#[test]
fn a_plain_update_changes_neither_spec_nor_status() {
    assert_eq!(
        update(
            "CertificateSigningRequest",
            stored(json!({})),
            json!({
                "spec": {"signerName": "example.com/y"},
                "status": {
                    "certificate": CERTIFICATE,
                },
            })
        ),
        Ok(json!({
            "metadata": {},
            "spec": {
                "request": REQUEST,
                "signerName": "example.com/x", "usages": ["client auth"], "username": "admin",
                "uid": "admin", "groups": ["system:masters", "system:authenticated"],
            },
            "status": {},
        }))
    );
}
