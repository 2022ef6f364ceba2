//! TLS to PostgreSQL: the demands of each `sslmode`, with a CA of the test.

use std::fs;

use pgtest::PgServer;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use store::{Postgres, PostgresOptions};
use tempfile::TempDir;

use crate::kit::*;

/// A CA, and the server's certificate that it signed.
struct Certificates {
    authority: String,
    certificate: String,
    key: String,
}

fn certificates(common_name: &str, host: &str) -> Certificates {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let authority = x509::pem::encode(x509::pem::CERTIFICATE, params.self_signed(&key).unwrap().der());
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    let certificate =
        x509::pem::encode(x509::pem::CERTIFICATE, params.signed_by(&key, &issuer).unwrap().der());
    Certificates { authority, certificate, key: x509::pem::encode("PRIVATE KEY", key.serialized_der()) }
}

/// A server with TLS.
async fn encrypting(certificates: &Certificates) -> PgServer {
    let server = PgServer::start().unwrap();
    let admin = Admin::connect(&server.url()).await;
    // The server writes the files itself: it has to own them, and the key has to be private.
    for (file, pem) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)] {
        let lines = format!("string_to_table('{}', E'\\n')", pem.trim_end());
        admin.execute(&format!("COPY (SELECT {lines}) TO PROGRAM 'umask 077; cat > {file}'")).await;
    }
    admin.execute("ALTER SYSTEM SET ssl = on").await;
    admin.execute("SELECT pg_reload_conf()").await;
    let url = server.url();
    let encrypts = async || {
        let admin = Admin::connect(&url).await;
        admin.number("SELECT count(*) FROM pg_settings WHERE name = 'ssl' AND setting = 'on'").await == 1
    };
    until(encrypts).await;
    server
}

/// A file with a CA, for the parameter `sslrootcert`.
fn root(folder: &TempDir, name: &str, pem: &str) -> String {
    let file = folder.path().join(name);
    fs::write(&file, pem).unwrap();
    format!("sslrootcert={}", file.display())
}

#[test]
fn a_server_is_verified_as_far_as_the_address_asks_for_it() {
    run(async {
        let ours = certificates("ours", "127.0.0.1");
        let server = encrypting(&ours).await;
        let folder = tempfile::tempdir().unwrap();
        let trusted = root(&folder, "ours.pem", &ours.authority);
        let foreign = root(&folder, "theirs.pem", &certificates("theirs", "127.0.0.1").authority);
        let url = server.url();
        let elsewhere = url.replace("127.0.0.1", "localhost");

        for (url, parameters) in [
            (&url, "sslmode=require"),
            (&url, &format!("sslmode=require&{trusted}")),
            (&url, &format!("sslmode=verify-full&{trusted}")),
            (&elsewhere, &format!("sslmode=verify-ca&{trusted}")),
        ] {
            let options = PostgresOptions::default();
            let opened = Postgres::open(&format!("{url}?{parameters}"), &options).await;
            assert!(opened.is_ok(), "{parameters}: {:?}", opened.err());
        }

        for mode in ["require", "verify-ca", "verify-full"] {
            let reason = refused(&format!("{url}?sslmode={mode}&{foreign}")).await;
            assert!(reason.contains("is not signed by an authority of sslrootcert"), "{mode}: {reason}");
            assert!(reason.contains("name the file of the one that signed it"), "{mode}: {reason}");
        }
        let reason = refused(&format!("{elsewhere}?sslmode=verify-full&{trusted}")).await;
        assert!(reason.contains("is for another host"), "{reason}");
    });
}

#[test]
fn every_session_is_encrypted_where_the_server_can() {
    run(async {
        let server = encrypting(&certificates("ours", "127.0.0.1")).await;
        let admin = Admin::connect(&server.url()).await;
        for (parameters, encrypted) in [("", true), ("?sslmode=require", true), ("?sslmode=disable", false)] {
            let url = server.create_database().unwrap();
            let store = store(&format!("{url}{parameters}"), |_| {}).await;
            store.write(vec![create("a", "1")]).await.unwrap();
            assert_eq!(store.list(&all()).await.unwrap().items.len(), 1);
            let sessions = |which: &str| {
                let database = url.rsplit('/').next().unwrap();
                format!(
                    "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                     WHERE datname = '{database}' AND application_name LIKE 'orlop %' AND {which}"
                )
            };
            let (those, others) = if encrypted { ("ssl", "NOT ssl") } else { ("NOT ssl", "ssl") };
            assert!(admin.number(&sessions(those)).await > 0, "{parameters}");
            assert_eq!(admin.number(&sessions(others)).await, 0, "{parameters}");
        }
    });
}

#[test]
fn a_server_that_cannot_encrypt_is_refused_where_the_address_insists() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let reason = refused(&format!("{url}?sslmode=require")).await;
        assert!(reason.contains("does not encrypt, and the address asks for it"), "{reason}");
        store(&format!("{url}?sslmode=prefer"), |_| {}).await;
    });
}
