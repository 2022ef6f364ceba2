//! Invalid service account tokens: expired, of other keys, legacy tokens.

use std::sync::Arc;

use apiserver::auth::ServiceAccounts;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use process::reload::Updater;
use process::signing::SigningKey;
use serde_json::{Value, json};

use crate::client::Client;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ISSUER: &str = "https://kubernetes.default.svc";

/// A server, its key, and the uid of its service account `robot`.
struct Issuer {
    admin: Client,
    key: SigningKey,
    uid: String,
}

impl Issuer {
    async fn new() -> Self {
        let pem = SigningKey::generate().unwrap();
        let key = || SigningKey::from_pem(pem.as_bytes()).unwrap();
        let admin =
            Client::with(|builder| builder.service_accounts(ServiceAccounts::new(Arc::new(key())))).await;
        let account = admin.create(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await;
        let uid = account["metadata"]["uid"].as_str().unwrap().to_owned();
        Self { admin, key: key(), uid }
    }

    fn claims(&self) -> Value {
        let now = Timestamp::now().as_second();
        json!({
            "aud": [ISSUER], "iss": ISSUER, "exp": now + 600, "iat": now, "nbf": now,
            "sub": "system:serviceaccount:default:robot",
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": self.uid}},
        })
    }

    /// The claims of a legacy token in the Secret `kept`.
    fn claims_of_secret(&self) -> Value {
        json!({
            "iss": "kubernetes/serviceaccount",
            "kubernetes.io/serviceaccount/namespace": "default",
            "kubernetes.io/serviceaccount/secret.name": "kept",
            "kubernetes.io/serviceaccount/service-account.name": "robot",
            "kubernetes.io/serviceaccount/service-account.uid": self.uid,
            "sub": "system:serviceaccount:default:robot",
        })
    }

    /// Puts a token into the Secret `kept`.
    async fn keep(&self, token: &str) {
        let secret = json!({
            "metadata": {"name": "kept", "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token",
            "data": {"token": STANDARD.encode(token)},
        });
        self.admin.create(SECRETS, &secret).await;
    }

    /// The status of a TokenReview.
    async fn said_of(&self, token: &str) -> Value {
        let review = json!({"spec": {"token": token}});
        let answer = self.admin.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
        answer["status"].clone()
    }
}

#[tokio::test]
async fn a_token_is_refused_once_its_key_is_removed() {
    let pem = SigningKey::generate().unwrap();
    let key = || SigningKey::from_pem(pem.as_bytes()).unwrap();
    let (signing, current) = Updater::new(key());
    let (verifying, keys) = Updater::new(vec![key().public().clone()]);
    let accounts = ServiceAccounts { keys: Some(keys), ..ServiceAccounts::new(current) };
    let admin = Client::with(|builder| builder.service_accounts(accounts)).await;
    let account = admin.create(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await;
    let uid = account["metadata"]["uid"].as_str().unwrap().to_owned();
    let issuer = Issuer { admin, key: key(), uid };
    let request = json!({"spec": {"expirationSeconds": 600}});
    let issued = || async {
        let made = issuer.admin.create(&format!("{ACCOUNTS}/robot/token"), &request).await;
        made["status"]["token"].as_str().unwrap().to_owned()
    };
    let is_good = |token: String| {
        let issuer = &issuer;
        async move { issuer.said_of(&token).await["authenticated"] == true }
    };
    let old = issued().await;
    assert!(is_good(old.clone()).await);
    // A new key signs while both verify, then the old one is removed.
    let next = SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap();
    let public = next.public().clone();
    verifying.set(vec![key().public().clone(), public.clone()]);
    signing.set(next);
    let new = issued().await;
    assert!(is_good(old.clone()).await && is_good(new.clone()).await);
    verifying.set(vec![public]);
    assert!(!is_good(old).await && is_good(new).await);
}

/// The status of a TokenReview of an invalid token.
fn error(text: &str) -> Value {
    json!({"user": {}, "error": format!("[invalid bearer token, {text}]")})
}

fn signed(key: &SigningKey, algorithm: &str, claims: &Value) -> String {
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", encode(json!({"alg": algorithm}).to_string()), encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()).unwrap());
    format!("{message}.{signature}")
}

#[tokio::test]
async fn a_token_is_good_in_its_time_and_with_its_key_only() {
    let issuer = Issuer::new().await;
    let good = issuer.claims();
    let with = |path: &str, value: Value| {
        let mut claims = good.clone();
        *claims.pointer_mut(path).unwrap() = value;
        claims
    };
    let now = Timestamp::now().as_second();
    let other = SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap();
    let of = |claims: &Value| signed(&issuer.key, "ES256", claims);
    let said = |error: &str| json!({"user": {}, "error": format!("[invalid bearer token, {error}]")});
    let forged = "go-jose/go-jose: error in cryptographic primitive";
    for (token, expected) in [
        (of(&with("/exp", json!(now - 61))), said("service account token has expired")),
        (of(&with("/nbf", json!(now + 120))), said("service account token is not valid yet")),
        (of(&with("/iat", json!(now + 120))), said("service account token is issued in the future")),
        (signed(&other, "ES256", &good), said(forged)),
        (signed(&issuer.key, "none", &good), said(forged)),
        (signed(&issuer.key, "RS256", &good), said(forged)),
        (
            of(&with("/iss", json!("https://other.example"))),
            json!({"user": {}, "error": "invalid bearer token"}),
        ),
        (
            of(&with("/kubernetes.io/serviceaccount/name", json!("nobody"))),
            said("serviceaccounts \"nobody\" not found"),
        ),
    ] {
        assert_eq!(issuer.said_of(&token).await, expected);
    }
    let token = of(&good);
    for _ in 0..2 {
        let user = issuer.said_of(&token).await["user"].clone();
        assert_eq!(user["username"], "system:serviceaccount:default:robot");
        assert_eq!(user["uid"], issuer.uid.as_str());
    }
    // A cached signature does not keep the token valid.
    issuer.admin.delete(&format!("{ACCOUNTS}/robot")).await;
    assert_eq!(issuer.said_of(&token).await, said("serviceaccounts \"robot\" not found"));
}

#[tokio::test]
async fn a_token_in_a_secret_is_good_as_long_as_it_is_there() {
    let issuer = Issuer::new().await;
    let claims = issuer.claims_of_secret();
    let token = signed(&issuer.key, "ES256", &claims);
    assert_eq!(issuer.said_of(&token).await, error("Token has been invalidated"));
    issuer.keep(&token).await;
    let status = issuer.said_of(&token).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!([ISSUER])));
    let other = json!({"data": {"token": STANDARD.encode("another")}});
    issuer.admin.merge(&format!("{SECRETS}/kept"), &other).await;
    assert_eq!(issuer.said_of(&token).await, error("Token does not match server's copy"));
    let mut nobody = claims.clone();
    nobody["sub"] = json!("system:serviceaccount:default:other");
    assert_eq!(issuer.said_of(&signed(&issuer.key, "ES256", &nobody)).await, error("sub claim is invalid"));
}

#[tokio::test]
async fn legacy_token_use_is_recorded_and_invalidated_tokens_are_refused() {
    const INVALID: &str = "kubernetes.io/legacy-token-invalid-since";
    let issuer = Issuer::new().await;
    let token = signed(&issuer.key, "ES256", &issuer.claims_of_secret());
    issuer.keep(&token).await;
    let mut secrets = issuer.admin.watch(&format!("{SECRETS}?watch=true")).await;
    secrets.expect(&[("ADDED", "kept")]).await;
    let path = format!("{SECRETS}/kept");

    let review = async || {
        let review = json!({"spec": {"token": token}});
        issuer.admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await
    };
    let by_hand = review().await;
    assert_eq!(
        (by_hand.json()["status"]["authenticated"].clone(), by_hand.warnings()),
        (json!(true), vec![])
    );
    let noted = secrets.next().await.unwrap()["object"]["metadata"]["labels"].clone();
    let day = noted["kubernetes.io/legacy-token-last-used"].as_str().unwrap();
    assert!(day.parse::<jiff::civil::Date>().is_ok(), "{noted}");

    issuer.admin.merge(&format!("{ACCOUNTS}/robot"), &json!({"secrets": [{"name": "kept"}]})).await;
    let warning = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
        auto-generated secret-based tokens.";
    assert_eq!(review().await.warnings(), [format!("299 - \"{warning}\"")]);

    issuer.admin.merge(&path, &json!({"metadata": {"labels": {INVALID: "2026-01-01"}}})).await;
    let refusal = format!(
        "the token in secret default/kept for service account default/robot has been marked invalid. Use tokens from the \
         TokenRequest API or manually created secret-based tokens, or remove the '{INVALID}' label from the secret to \
         temporarily allow use of this token"
    );
    assert_eq!(issuer.said_of(&token).await, error(&refusal));
}

#[tokio::test]
async fn the_legacy_token_tracking_configmap_is_maintained() {
    const MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
    let client = Client::new().await;
    let path = format!("{MAPS}/kube-apiserver-legacy-service-account-token-tracking");
    let since = client.get(&path).await.json()["data"]["since"].clone();
    assert!(since.as_str().unwrap().parse::<jiff::civil::Date>().is_ok(), "{since}");
    client.merge(&path, &json!({"data": {"since": "2020-01-01"}})).await;
    let mut maps = client.watch(&format!("{MAPS}?watch=true&resourceVersion=0")).await;
    assert_eq!(maps.next().await.unwrap()["object"]["data"]["since"], "2020-01-01");
    client.merge(&path, &json!({"data": {"since": "soon"}})).await;
    assert_eq!(maps.next().await.unwrap()["object"]["data"]["since"], "soon");
    let mended = maps.next().await.unwrap()["object"]["data"]["since"].clone();
    assert!(mended.as_str().unwrap().parse::<jiff::civil::Date>().is_ok(), "{mended}");
}

#[tokio::test]
async fn tokens_can_be_checked_with_the_published_keys() {
    let issuer = Issuer::new().await;
    let token = issuer.admin.create(&format!("{ACCOUNTS}/robot/token"), &json!({})).await;
    let token = token["status"]["token"].as_str().unwrap().to_owned();
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let keys = issuer.admin.get("/openid/v1/jwks").await.json();
    assert_eq!(keys["keys"][0]["kid"], header["kid"]);
    assert_eq!((&keys["keys"][0]["alg"], &header["alg"]), (&json!("ES256"), &json!("ES256")));
    let about = issuer.admin.get("/.well-known/openid-configuration").await.json();
    assert_eq!(about["issuer"], ISSUER);
}
