//! clamd's `INSTREAM`: the bytes go over in pieces, and one line comes back.

use std::io;

use portcullis_inspect::Scanner;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// Bytes of one piece.
const PIECE_BYTES: usize = 64 * 1024;
/// An answer is one short line.
const REPLY_BYTES_MAX: u64 = 4096;

/// The finding of `scanner` in `content`; an error if it gives no verdict.
pub(super) async fn scan(scanner: &Scanner, content: &[u8]) -> io::Result<Option<String>> {
    match scanner {
        Scanner::Unix(path) => exchange(UnixStream::connect(path).await?, content).await,
        Scanner::Tcp(address) => exchange(TcpStream::connect(address).await?, content).await,
    }
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    content: &[u8],
) -> io::Result<Option<String>> {
    stream.write_all(b"zINSTREAM\0").await?;
    for piece in content.chunks(PIECE_BYTES) {
        stream.write_all(&(piece.len() as u32).to_be_bytes()).await?;
        stream.write_all(piece).await?;
    }
    stream.write_all(&[0; 4]).await?;
    stream.flush().await?;
    let mut reply = Vec::new();
    // clamd closes the connection after its answer.
    stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply).await?;
    verdict(&String::from_utf8_lossy(&reply))
}

/// Reads `stream: OK` and `stream: NAME FOUND`. Anything else, such as a size limit of clamd's own, is no
/// verdict.
fn verdict(reply: &str) -> io::Result<Option<String>> {
    let line = reply.split(['\0', '\n']).next().unwrap_or_default();
    let said = line.strip_prefix("stream: ").unwrap_or_default();
    match said.strip_suffix(" FOUND") {
        Some(name) => Ok(Some(name.to_owned())),
        None if said == "OK" => Ok(None),
        None => Err(io::Error::other(format!("clamd says {line:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn verdicts() {
        assert_eq!(verdict("stream: OK\0").unwrap(), None);
        assert_eq!(verdict("stream: Eicar-Signature FOUND\0").unwrap().unwrap(), "Eicar-Signature");
        assert_eq!(verdict("stream: Two Words FOUND\n").unwrap().unwrap(), "Two Words");
        for reply in ["", "OK", "stream: ", "INSTREAM size limit exceeded. ERROR\0", "stream: x ERROR\0"] {
            assert!(verdict(reply).is_err(), "{reply}");
        }
    }
}
