//! HTTP/1.1 as far as a model client speaks it: a request with a body, a response that is whole or in chunks.
//!
//! Not a library's server: what a script plays here are facts about bytes and the socket. A reset behind the third
//! byte, silence, an end in the middle of a body, each written at its time and not when a buffer is full. A server
//! library stands between the script and the socket exactly there. What it would bring beside that (pipelining,
//! upgrades, many clients' habits) no client of a loopback model needs.

use std::io;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request head.
const HEAD_CAP: usize = 64 * 1024;
/// Longest request body. A conversation with a task of megabytes fits many times.
const BODY_CAP: usize = 64 * 1024 * 1024;

/// One client's connection.
pub(super) struct Connection {
    stream: TcpStream,
    /// Read and not yet taken.
    buffer: Vec<u8>,
}

/// A request as it came.
pub(super) struct Incoming {
    pub method: String,
    /// Without its query.
    pub path: String,
    pub body: Vec<u8>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        // A piece is sent when its step is played.
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            buffer: Vec::new(),
        })
    }

    /// The next request; none when the client has closed the connection between two.
    pub async fn request(&mut self) -> io::Result<Option<Incoming>> {
        let Some(head_length) = self.head_length().await? else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_length]).into_owned();
        self.buffer.drain(..head_length);
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let mut length = 0;
        let mut chunked = false;
        let mut expects_continue = false;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(|_| bad("content-length"))?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "expect" => expects_continue = value.eq_ignore_ascii_case("100-continue"),
                _ => {}
            }
        }
        if expects_continue {
            self.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
        }
        let body = if chunked {
            self.chunks().await?
        } else {
            self.take(length).await?
        };
        let path = target.split('?').next().unwrap_or_default();
        Ok(Some(Incoming {
            method: method.to_owned(),
            path: path.to_owned(),
            body,
        }))
    }

    async fn head_length(&mut self) -> io::Result<Option<usize>> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                return Ok(Some(at + 4));
            }
            if self.buffer.len() > HEAD_CAP {
                return Err(bad("head: too long"));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(bad("head: cut"))
                };
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_CAP {
            return Err(bad("body: too long"));
        }
        while self.buffer.len() < length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(bad("body: cut"));
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line_end = loop {
                if let Some(at) = find(&self.buffer, b"\r\n") {
                    break at;
                }
                if self.buffer.len() > HEAD_CAP
                    || self.stream.read_buf(&mut self.buffer).await? == 0
                {
                    return Err(bad("chunk: no size"));
                }
            };
            let line = String::from_utf8_lossy(&self.buffer[..line_end]).into_owned();
            self.buffer.drain(..line_end + 2);
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| bad("chunk: no size"))?;
            if size > BODY_CAP || body.len() + size > BODY_CAP {
                return Err(bad("body: too long"));
            }
            body.extend(self.take(size).await?);
            // The line end behind the chunk; behind the last one too, since no client of ours sends trailers.
            self.take(2).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// A response whose body is known.
    pub async fn respond(
        &mut self,
        status: u16,
        headers: &Map<String, Value>,
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = start_of_head(status, headers);
        if !headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("content-type"))
        {
            head += "Content-Type: application/json\r\n";
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        self.stream
            .write_all(&[head.as_bytes(), body].concat())
            .await
    }

    /// Begins a stream of server-sent events.
    pub async fn begin_stream(&mut self, headers: &Map<String, Value>) -> io::Result<()> {
        let head = start_of_head(200, headers)
            + "Content-Type: text/event-stream\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await
    }

    /// Sends a part of the stream. Nothing for an empty one, which would end it.
    pub async fn part(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.stream.write_all(chunk.as_bytes()).await
    }

    /// Ends the stream in good order. The connection can be used again.
    pub async fn end_stream(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n").await
    }

    /// Ends the connection by a reset: the client gets an error, not an end.
    pub fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    /// Comes back when the client has gone. What it sends meanwhile is kept for the next request.
    pub async fn gone(&mut self) {
        while self.buffer.len() <= BODY_CAP {
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Waits, or finds out that the client has gone: false.
    pub async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(time) => true,
            () = self.gone() => false,
        }
    }
}

fn start_of_head(status: u16, headers: &Map<String, Value>) -> String {
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\n",
        if status == 200 { "OK" } else { "Scripted" }
    );
    for (name, value) in headers {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        head += &format!("{name}: {text}\r\n");
    }
    head
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not a request that a model client sends: {what}"),
    )
}
