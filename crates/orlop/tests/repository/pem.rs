//! PEM has one reader: the crate `x509`. Two readers that disagree would sign a request that was never
//! approved.

use crate::sources::{report, rust_files};

/// The readers of libraries that are linked anyway.
const READERS: [&str; 4] = ["parse_x509_pem", "x509_parser::pem", "pki_types::pem", "PemObject"];

#[test]
fn only_the_crate_x509_reads_pem() {
    let mut offences = Vec::new();
    for source in rust_files() {
        let is_home =
            ["crates/x509", "crates/orlop/tests/repository"].iter().any(|home| source.path.starts_with(home));
        if is_home {
            continue;
        }
        for reader in READERS.iter().filter(|reader| source.text.contains(**reader)) {
            offences.push(format!("{} uses {reader}", source.path.display()));
        }
    }
    report("PEM is read by x509::pem alone", &offences);
}
