//! Keys of every form that people have sign and check.

use super::*;

/// Made by openssl, for nothing but this test.
const RSA: &str = include_str!("testdata/rsa.pem");
const RSA_PUBLIC: &str = include_str!("testdata/rsa.pub.pem");
const SEC1: &str = include_str!("testdata/sec1.pem");
const SEC1_PUBLIC: &str = include_str!("testdata/sec1.pub.pem");

#[test]
fn what_a_key_signs_its_public_half_checks() {
    let made = SigningKey::generate().unwrap();
    let keys = [(RSA, Algorithm::Rs256), (SEC1, Algorithm::Es384), (made.as_str(), Algorithm::Es256)];
    for (pem, algorithm) in keys {
        let key = SigningKey::from_pem(pem.as_bytes()).unwrap();
        let signature = key.sign(b"message").unwrap();
        assert_eq!(key.public().algorithm(), algorithm);
        assert!(key.public().verify(b"message", &signature));
        assert!(!key.public().verify(b"another", &signature));
        assert!(!key.public().verify(b"message", &signature[1..]));
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }
}

#[test]
fn public_keys_are_read_from_public_and_private_files() {
    for (private, public) in [(RSA, RSA_PUBLIC), (SEC1, SEC1_PUBLIC)] {
        let of_private = PublicKey::all_from_pem(private.as_bytes()).unwrap();
        let of_public = PublicKey::all_from_pem(public.as_bytes()).unwrap();
        assert_eq!(of_private, of_public);
        assert_eq!(of_public[0].fingerprint().len(), 32);
    }
    let both = [RSA_PUBLIC, SEC1_PUBLIC].concat();
    assert_eq!(PublicKey::all_from_pem(both.as_bytes()).unwrap().len(), 2);
}

#[test]
fn the_numbers_of_a_key_are_those_that_others_publish() {
    let rsa = &PublicKey::all_from_pem(RSA_PUBLIC.as_bytes()).unwrap()[0];
    let Some(Numbers::Rsa { n, e }) = rsa.numbers() else { panic!() };
    assert_eq!((n.len(), e), (256, vec![1, 0, 1]));
    let point = &PublicKey::all_from_pem(SEC1_PUBLIC.as_bytes()).unwrap()[0];
    let Some(Numbers::Point { curve, x, y }) = point.numbers() else { panic!() };
    assert_eq!((curve, x.len(), y.len()), ("P-384", 48, 48));
}

#[test]
fn what_is_no_key_is_refused() {
    for text in ["", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "nonsense"] {
        assert!(SigningKey::from_pem(text.as_bytes()).is_err(), "{text}");
        assert!(PublicKey::all_from_pem(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_key_file_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sa.key");
    let made = SigningKey::ensure(&path).unwrap();
    assert_eq!(SigningKey::ensure(&path).unwrap().public(), made.public());
}

#[test]
fn a_token_names_its_key_and_is_signed_by_it() {
    let key = SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap();
    let token = key.token(br#"{"sub":"me"}"#).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let id = URL_SAFE_NO_PAD.encode(key.public().fingerprint());
    assert_eq!(decode(parts[0]), format!(r#"{{"alg":"ES256","kid":"{id}"}}"#).into_bytes());
    assert_eq!(decode(parts[1]), br#"{"sub":"me"}"#);
    let signed = format!("{}.{}", parts[0], parts[1]);
    assert!(key.public().verify(signed.as_bytes(), &decode(parts[2])));
}
