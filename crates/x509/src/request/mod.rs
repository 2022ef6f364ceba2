//! Certificate signing requests (PKCS #10).

use thiserror::Error;
use x509_parser::{
    asn1_rs::Class,
    certification_request::X509CertificationRequest,
    cri_attributes::ParsedCriAttribute,
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer,
    x509::{AttributeTypeAndValue, X509Name},
};

use crate::{
    der::{self, tag},
    pem::{self, NotSingle},
};

const LABEL: &str = "CERTIFICATE REQUEST";

/// A completely decoded certificate signing request; its subject is unambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    der: Vec<u8>,
    subject: Vec<u8>,
    public_key: Vec<u8>,
    alternative_names: Option<Vec<u8>>,
    common_name: String,
    organizations: Vec<String>,
}

/// The reason why a certificate signing request is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// There is no PEM block of this type. The words are Kubernetes'.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotPem,
    /// There is more than one block, so that readers could disagree which one is meant.
    #[error(
        "must be exactly one PEM block of type CERTIFICATE REQUEST, with nothing but white space around it"
    )]
    Surrounded,
    /// The bytes are no certificate signing request. The words are Kubernetes'.
    #[error("asn1: structure error: tags don't match")]
    NotDer,
    /// Readers disagree about the characters of other string types.
    #[error("the subject may have values of type UTF8String, PrintableString and IA5String only")]
    SubjectString,
    /// Signers copy no other types of alternative names.
    #[error("the subject alternative names may be DNS names, e-mail addresses, URIs and IP addresses only")]
    AlternativeNames,
    /// The sender does not hold the private key.
    #[error("the signature does not match the public key")]
    Signature,
}

impl CertificateRequest {
    /// Decodes a text that is exactly one PEM block.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn from_pem(text: &[u8]) -> Result<Self, RequestError> {
        let der = pem::single(text, LABEL).map_err(|problem| match problem {
            NotSingle::Missing => RequestError::NotPem,
            NotSingle::Surrounded => RequestError::Surrounded,
        })?;
        Self::from_der(&der)
    }

    /// Decodes a DER certificate signing request.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn from_der(der: &[u8]) -> Result<Self, RequestError> {
        let Ok(([], request)) = X509CertificationRequest::from_der(der) else {
            return Err(RequestError::NotDer);
        };
        let info = &request.certification_request_info;
        if !der::is_signed(der) || canonical(&info.subject) != info.subject.as_raw() {
            return Err(RequestError::NotDer);
        }
        for value in info.subject.iter_attributes() {
            text_of(value)?;
        }
        let common_name = info.subject.iter_common_name().last().map(text_of).transpose()?;
        let organizations = info.subject.iter_organization().map(|value| text_of(value).map(str::to_owned));
        Ok(Self {
            der: der.to_vec(),
            subject: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            alternative_names: alternative_names(&request)?,
            common_name: common_name.unwrap_or_default().to_owned(),
            organizations: organizations.collect::<Result<_, _>>()?,
        })
    }

    /// The DER bytes of the request.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The requested subject, as a DER `Name`.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// The public key, as a DER `SubjectPublicKeyInfo`.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// The requested subject alternative names, as DER `GeneralNames`.
    #[must_use]
    pub fn alternative_names(&self) -> Option<&[u8]> {
        self.alternative_names.as_deref()
    }

    /// The last CN of the subject, which Kubernetes takes as the user name; empty if there is none.
    #[must_use]
    pub fn common_name(&self) -> &str {
        &self.common_name
    }

    /// All organizations of the subject in order: the user's groups.
    #[must_use]
    pub fn organizations(&self) -> &[String] {
        &self.organizations
    }

    /// Checks that the sender holds the private key.
    ///
    /// # Errors
    /// [`RequestError::Signature`], also where the algorithm is not supported.
    pub fn check_signature(&self) -> Result<(), RequestError> {
        let (_, request) = X509CertificationRequest::from_der(&self.der).map_err(|_| RequestError::NotDer)?;
        request.verify_signature().map_err(|_| RequestError::Signature)
    }
}

/// Re-encodes a name in DER, so that every reader decodes the same name.
fn canonical(name: &X509Name<'_>) -> Vec<u8> {
    let attribute = |value: &AttributeTypeAndValue<'_>| {
        let own_tag = u8::try_from(value.attr_value().tag().0).unwrap_or_default();
        let oid = der::value(tag::OID, value.attr_type().as_bytes());
        der::sequence(&[&oid, &der::value(own_tag, value.as_slice())])
    };
    let sets =
        name.iter_rdn().map(|set| der::value(tag::SET, &set.iter().flat_map(attribute).collect::<Vec<u8>>()));
    der::value(tag::SEQUENCE, &sets.flatten().collect::<Vec<u8>>())
}

/// The text of a subject value, if it has one of the three string types that all readers decode alike.
fn text_of<'a>(value: &'a AttributeTypeAndValue<'_>) -> Result<&'a str, RequestError> {
    let any = value.attr_value();
    let is_plain = any.class() == Class::Universal && !any.header.is_constructed();
    let text = std::str::from_utf8(any.data).ok().filter(|_| is_plain).ok_or(RequestError::SubjectString)?;
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte);
    let fits = match u8::try_from(any.tag().0).unwrap_or_default() {
        tag::UTF8_STRING => true,
        tag::PRINTABLE_STRING => text.bytes().all(is_printable),
        tag::IA5_STRING => text.is_ascii(),
        _ => false,
    };
    if fits { Ok(text) } else { Err(RequestError::SubjectString) }
}

fn alternative_names(request: &X509CertificationRequest<'_>) -> Result<Option<Vec<u8>>, RequestError> {
    let mut found = None;
    for attribute in request.certification_request_info.iter_attributes() {
        let ParsedCriAttribute::ExtensionRequest(requested) = attribute.parsed_attribute() else { continue };
        for extension in &requested.extensions {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
                continue;
            };
            let is_common = |name: &GeneralName<'_>| {
                matches!(
                    name,
                    GeneralName::DNSName(_)
                        | GeneralName::RFC822Name(_)
                        | GeneralName::URI(_)
                        | GeneralName::IPAddress(_)
                )
            };
            if found.is_some() || !names.general_names.iter().all(is_common) {
                return Err(RequestError::AlternativeNames);
            }
            found = Some(extension.value.to_vec());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
