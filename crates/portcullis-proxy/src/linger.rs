//! Closing so that a client that still sends can read our last answer: closing a socket with unread bytes
//! resets it, and the answer would be lost.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::timer::Timer;

/// The limits of reading after the last answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linger {
    pub(crate) time_max: Duration,
    pub(crate) bytes_max: u64,
}

/// Room offered to a read; what comes is dropped.
const READ_BYTES: usize = 64 * 1024;

/// Ends our side, then reads until the client has ended its own, or as long and as much as `limits` say.
pub(crate) async fn linger<S>(stream: &mut S, timer: &Timer, limits: Linger)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    timer.arm(limits.time_max);
    let drain = async {
        stream.shutdown().await?;
        let mut scratch = Vec::with_capacity(READ_BYTES);
        let mut read = 0;
        while read < limits.bytes_max {
            match stream.read_buf(&mut scratch).await? {
                0 => break,
                count => read += count as u64,
            }
            scratch.clear();
        }
        Ok::<(), io::Error>(())
    };
    let _ = timer.run(drain).await;
}
