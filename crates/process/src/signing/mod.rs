//! Keys that sign and verify tokens: RSA with SHA-256, ECDSA with P-256 and P-384.

mod der;
#[cfg(test)]
mod tests;

use std::{fmt, fs, io, path::Path};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, KeyPair as _, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm},
};
use rustls::pki_types::PrivateKeyDer;
use thiserror::Error;
use x509::pem;
use x509_parser::parse_x509_certificate;

use crate::{
    files::{self, Access},
    keys,
};

/// An unusable key. The message never contains key material.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unusable(String);

fn unusable(reason: impl Into<String>) -> Unusable {
    Unusable(reason.into())
}

/// A signature algorithm; displays as its JWA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA, PKCS #1 v1.5, SHA-256.
    Rs256,
    /// ECDSA, P-256, SHA-256.
    Es256,
    /// ECDSA, P-384, SHA-384.
    Es384,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        })
    }
}

/// A key that signs.
pub struct SigningKey {
    pair: Pair,
    public: PublicKey,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
}

/// A key that checks signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    /// An `RSAPublicKey`, or a point of the curve.
    bytes: Vec<u8>,
}

/// The numbers of a public key, as a JSON Web Key has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyNumbers {
    /// An RSA key.
    Rsa {
        /// The modulus, without leading zeros.
        n: Vec<u8>,
        /// The exponent, without leading zeros.
        e: Vec<u8>,
    },
    /// A point on an elliptic curve.
    Point {
        /// The name of the curve.
        curve: &'static str,
        /// The x coordinate.
        x: Vec<u8>,
        /// The y coordinate.
        y: Vec<u8>,
    },
}

impl SigningKey {
    /// Parses the private key of a PEM file: PKCS #8, PKCS #1 (RSA) or SEC 1 (ECDSA).
    ///
    /// # Errors
    /// When there is no private key, or one of an unsupported type.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Unusable> {
        let key = keys::private_key(pem).ok_or_else(|| unusable("it holds no private key"))?;
        let rsa = |pair: RsaKeyPair| {
            let bytes = pair.public_key().as_ref().to_vec();
            Self { pair: Pair::Rsa(Box::new(pair)), public: PublicKey { algorithm: Algorithm::Rs256, bytes } }
        };
        match &key {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()).map(rsa).ok(),
            PrivateKeyDer::Sec1(key) => {
                let wrapped = [Algorithm::Es256, Algorithm::Es384].map(|algorithm| {
                    let pkcs8 = der::pkcs8(curve_identifier(algorithm), key.secret_sec1_der());
                    Self::of_curve(algorithm, &pkcs8)
                });
                wrapped.into_iter().find_map(|key| key)
            }
            PrivateKeyDer::Pkcs8(key) => {
                let key = key.secret_pkcs8_der();
                let curves = || {
                    [Algorithm::Es256, Algorithm::Es384].into_iter().find_map(|of| Self::of_curve(of, key))
                };
                RsaKeyPair::from_pkcs8(key).map(rsa).ok().or_else(curves)
            }
            _ => None,
        }
        .ok_or_else(|| unusable("it is neither RSA of at least 2048 bits nor of the curves P-256 and P-384"))
    }

    fn of_curve(algorithm: Algorithm, pkcs8: &[u8]) -> Option<Self> {
        let signing = match algorithm {
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
            _ => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        };
        let pair = EcdsaKeyPair::from_pkcs8(signing, pkcs8, &SystemRandom::new()).ok()?;
        let bytes = pair.public_key().as_ref().to_vec();
        Some(Self { pair: Pair::Ec(Box::new(pair)), public: PublicKey { algorithm, bytes } })
    }

    /// Generates a P-256 key, as PEM.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn generate() -> Result<String, Unusable> {
        let key = rcgen::KeyPair::generate().map_err(|error| unusable(error.to_string()))?;
        Ok(keys::encode(key.serialized_der()))
    }

    /// Loads the key from a file, which is created if it is missing.
    ///
    /// # Errors
    /// When the file can be neither read nor created, or holds no usable key.
    pub fn ensure(path: &Path) -> io::Result<Self> {
        let pem = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let pem = Self::generate().map_err(io::Error::other)?.into_bytes();
                files::write_durably(path, &pem, Access::Private)?;
                pem
            }
            read => read?,
        };
        Self::from_pem(&pem).map_err(io::Error::other)
    }

    /// The key that verifies its signatures.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a message. An ECDSA signature is two numbers of fixed length, as in JWTs.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Unusable> {
        let random = SystemRandom::new();
        let failed = |_| unusable("nothing can be signed with it");
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
                Ok(signature)
            }
            Pair::Ec(pair) => Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec()),
        }
    }

    /// A signed JWT with these claims (JSON) and this key's id.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn token(&self, claims: &[u8]) -> Result<String, Unusable> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (algorithm, id) = (self.public.algorithm(), encode(&self.public.fingerprint()));
        let header = format!(r#"{{"alg":"{algorithm}","kid":"{id}"}}"#);
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims));
        let signature = self.sign(signed.as_bytes())?;
        Ok(format!("{signed}.{}", encode(&signature)))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

fn curve_identifier(algorithm: Algorithm) -> &'static [u8] {
    if algorithm == Algorithm::Es384 { der::P384 } else { der::P256 }
}

impl PublicKey {
    /// All public keys of a PEM file: public keys, those of certificates, and those of private keys.
    ///
    /// # Errors
    /// When there is none, or an unusable one.
    pub fn all_from_pem(text: &[u8]) -> Result<Vec<Self>, Unusable> {
        let mut keys = Vec::new();
        for block in pem::blocks(text) {
            let pem::Block { label, contents, .. } = block.map_err(|_| unusable("it is no PEM file"))?;
            keys.extend(match label {
                "PUBLIC KEY" => Some(Self::from_spki(&contents)?),
                "CERTIFICATE" => {
                    let parsed = parse_x509_certificate(&contents);
                    let (_, certificate) = parsed.map_err(|_| unusable("it holds no certificate"))?;
                    Some(Self::from_spki(certificate.public_key().raw)?)
                }
                "RSA PUBLIC KEY" => Some(Self { algorithm: Algorithm::Rs256, bytes: contents }),
                _ => None,
            });
        }
        if keys.is_empty() {
            keys.push(SigningKey::from_pem(text)?.public);
        }
        Ok(keys)
    }

    fn from_spki(spki: &[u8]) -> Result<Self, Unusable> {
        let (identifier, bytes) = der::read_spki(spki).ok_or_else(|| unusable("it holds no public key"))?;
        let algorithm = match identifier {
            _ if identifier == der::RSA => Algorithm::Rs256,
            _ if identifier == der::P256 => Algorithm::Es256,
            _ if identifier == der::P384 => Algorithm::Es384,
            _ => return Err(unusable("it is neither an RSA key nor an ECDSA key of P-256 or P-384")),
        };
        Ok(Self { algorithm, bytes: bytes.to_vec() })
    }

    /// The algorithm of this key's signatures.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// SHA-256 of the key's `SubjectPublicKeyInfo`.
    pub fn fingerprint(&self) -> Vec<u8> {
        let identifier = match self.algorithm {
            Algorithm::Rs256 => der::RSA,
            algorithm => curve_identifier(algorithm),
        };
        digest::digest(&digest::SHA256, &der::spki(identifier, &self.bytes)).as_ref().to_vec()
    }

    /// Whether the signature of the message is valid.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        };
        UnparsedPublicKey::new(algorithm, &self.bytes).verify(message, signature).is_ok()
    }

    /// The numbers of the key; `None` if it is malformed.
    pub fn numbers(&self) -> Option<KeyNumbers> {
        let curve = match self.algorithm {
            Algorithm::Rs256 => {
                let (n, e) = der::read_rsa(&self.bytes)?;
                return Some(KeyNumbers::Rsa { n, e });
            }
            Algorithm::Es256 => "P-256",
            Algorithm::Es384 => "P-384",
        };
        let point = self.bytes.strip_prefix(&[4])?;
        let (x, y) = point.split_at(point.len() / 2);
        Some(KeyNumbers::Point { curve, x: x.to_vec(), y: y.to_vec() })
    }
}
