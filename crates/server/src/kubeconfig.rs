//! The administrator's kubeconfig.

use std::{io, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use process::{
    files::{self, Access},
    pki::Pki,
};

/// Replaces the file in one step, so that no reader sees a part of it. Each start writes it again.
pub(crate) fn write(path: &Path, address: &str, pki: &Pki) -> io::Result<()> {
    files::replace(path, render(address, pki).as_bytes(), Access::Private)
}

/// The text of a kubeconfig for the server at `address`, HOST:PORT.
pub(crate) fn render(address: &str, pki: &Pki) -> String {
    let ca = BASE64_STANDARD.encode(&pki.ca);
    let certificate = BASE64_STANDARD.encode(&pki.admin.certificate);
    let key = BASE64_STANDARD.encode(&pki.admin.key);
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: orlop
  cluster:
    server: https://{address}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: orlop
  context:
    cluster: orlop
    user: admin
current-context: orlop
"
    )
}
