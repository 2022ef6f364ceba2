//! The listen address of a server, `HOST:PORT`.

use std::{env, fmt, fs, io, net::IpAddr, str::FromStr};

use thiserror::Error;
use tokio::net::TcpListener;

/// `HOST:PORT`. Port 0 selects a free port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

/// A text that is not `HOST:PORT`.
#[derive(Debug, Error)]
#[error("invalid listen address `{0}`: give HOST:PORT, such as 127.0.0.1:6443 or [::1]:0")]
pub struct BadAddress(String);

/// The listen address cannot be bound.
#[derive(Debug, Error)]
pub enum Error {
    /// Another process listens on this address.
    #[error(
        "{0} is in use by another process: stop that one, or choose another address (port 0 takes a free one)"
    )]
    InUse(ListenAddress),
    /// Any other error of the operating system.
    #[error("cannot listen on {address}: {reason}; choose another address")]
    Refused {
        /// The requested address.
        address: ListenAddress,
        /// The operating system's error.
        #[source]
        reason: io::Error,
    },
}

/// The host name of this machine; empty if unknown.
#[must_use]
pub fn host_name() -> String {
    let read = |path: &str| fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    name.or_else(|| env::var("HOSTNAME").ok()).unwrap_or_default()
}

impl ListenAddress {
    /// The host name or IP address, without the brackets of IPv6.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Binds the listening socket.
    ///
    /// # Errors
    /// When the address is in use, unknown or not permitted.
    pub async fn bind(&self) -> Result<TcpListener, Error> {
        TcpListener::bind((self.host.as_str(), self.port)).await.map_err(|reason| match reason.kind() {
            io::ErrorKind::AddrInUse => Error::InUse(self.clone()),
            _ => Error::Refused { address: self.clone(), reason },
        })
    }

    /// The `HOST:PORT` that clients on this machine connect to, given the bound port.
    #[must_use]
    pub fn for_clients(&self, port: u16) -> String {
        let host = match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) if address.is_unspecified() => "127.0.0.1".to_owned(),
            Ok(IpAddr::V6(address)) if address.is_unspecified() => "::1".to_owned(),
            _ => self.host.clone(),
        };
        Self { host, port }.to_string()
    }
}

impl FromStr for ListenAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().map_err(|_| bad())?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_right = match bracketed {
            Some(address) => matches!(address.parse(), Ok(IpAddr::V6(_))),
            None => !host.is_empty() && !host.contains([':', '[', ']', '/', ' ']),
        };
        if !is_right {
            return Err(bad());
        }
        Ok(Self { host: bracketed.unwrap_or(host).to_owned(), port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_as_people_write_them() {
        for text in ["127.0.0.1:6443", "[::1]:0", "localhost:80", "api.example.org:443"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        for text in ["6443", ":6443", "::1:6443", "[::1]", "[host]:1", "host:70000", "https://host:1", ""] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn clients_connect_to_an_address_that_means_this_machine() {
        let shown = |text: &str| text.parse::<ListenAddress>().unwrap().for_clients(7);
        assert_eq!(shown("0.0.0.0:0"), "127.0.0.1:7");
        assert_eq!(shown("[::]:0"), "[::1]:7");
        assert_eq!(shown("localhost:0"), "localhost:7");
    }

    #[tokio::test]
    async fn a_busy_port_is_said_to_be_busy() {
        let first = "127.0.0.1:0".parse::<ListenAddress>().unwrap().bind().await.unwrap();
        let address: ListenAddress = first.local_addr().unwrap().to_string().parse().unwrap();
        let error = address.bind().await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("{address} is in use by another process")), "{error}");
    }
}
