//! TCP connections whose other side may vanish without a word: a machine that lost its power, a cable that was pulled.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A peer that is gone is found out after about [`IDLE`] + [`RETRIES`] * [`INTERVAL`], as for sessions of PostgreSQL.
const IDLE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(5);
const RETRIES: u32 = 3;

/// Has the kernel end the connection when its other side does not answer, whether or not something is on its way to it.
///
/// # Errors
/// Where the kernel does not know these options.
pub fn detect_loss(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL).with_retries(RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    // Keepalive probes are not sent while data waits to be acknowledged.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(IDLE + RETRIES * INTERVAL))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_lost_peer_is_detected_with_and_without_data_on_the_way() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        detect_loss(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        #[cfg(target_os = "linux")]
        {
            assert_eq!(socket.tcp_keepalive_time().unwrap(), IDLE);
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(25)));
        }
    }
}
