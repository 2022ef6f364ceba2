//! TCP keepalive: detects peers that vanished without closing the connection.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A lost peer is detected after about [`IDLE`] + [`RETRIES`] * [`INTERVAL`], as for PostgreSQL sessions.
const IDLE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(5);
const RETRIES: u32 = 3;

/// Makes the kernel end the connection when the peer does not answer, whether data is in flight or not.
///
/// # Errors
/// When the kernel does not support these options.
pub fn detect_loss(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL).with_retries(RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    // No keepalive probes are sent while data is unacknowledged.
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
