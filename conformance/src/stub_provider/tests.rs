//! The provider over a real socket, driven by a client that shows the bytes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// More than any machine needs; a wait for a fact ends with the fact.
const PATIENCE: Duration = Duration::from_secs(30);

async fn provider(script: &str) -> StubProvider {
    StubProvider::start(Script::from_json(script).unwrap())
        .await
        .unwrap()
}

async fn send(provider: &StubProvider, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, provider.port()))
        .await
        .unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: stub\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    stream
}

fn asks(text: &str) -> Value {
    json!({"model": "x", "stream": true, "messages": [{"role": "user", "content": text}]})
}

/// Everything that comes until `end` has come, or the connection closes.
async fn read_until(stream: &mut TcpStream, end: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&bytes).contains(end)
            && stream.read_buf(&mut bytes).await? > 0
        {}
        Ok(())
    };
    tokio::time::timeout(PATIENCE, read)
        .await
        .expect("the provider falls silent")
        .map(|()| String::from_utf8_lossy(&bytes).into_owned())
}

async fn chat(provider: &StubProvider, text: &str) -> String {
    let mut stream = send(provider, "/v1/chat/completions", &asks(text)).await;
    read_until(&mut stream, "\r\n0\r\n\r\n").await.unwrap()
}

/// The text that the deltas of a chat stream carry.
fn said(response: &str) -> String {
    let objects = response
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"));
    let parsed =
        objects.filter_map(|rest| serde_json::from_str::<Value>(&format!("{{{rest}")).ok());
    parsed
        .filter_map(|chunk| {
            chunk["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}

#[tokio::test]
async fn a_reply_streams_text_tool_calls_and_usage() {
    let provider = provider(
        r#"[{"text": "two files found", "usage": {"in": 10, "out": 2, "cached": 4}},
            {"tool_calls": [{"name": "read", "arguments": {"path": "a"}}]}]"#,
    )
    .await;
    let first = chat(&provider, "go").await;
    assert_eq!(said(&first), "two files found");
    assert!(
        first.contains(r#""cached_tokens":4"#) && first.contains(r#""finish_reason":"stop""#),
        "{first}"
    );
    assert!(first.contains("data: [DONE]"), "{first}");
    let second = chat(&provider, "go on").await;
    assert!(
        second.contains(r#""name":"read""#) && second.contains(r#""finish_reason":"tool_calls""#),
        "{second}"
    );
    let requests = provider.requests();
    assert_eq!(
        requests
            .iter()
            .map(|r| (r.reply, r.end.clone()))
            .collect::<Vec<_>>(),
        [(Some(0), Some(End::Sent)), (Some(1), Some(End::Sent))]
    );
    assert_eq!(requests[1].last_user, "go on");
}

#[tokio::test]
async fn the_messages_format_and_one_object_are_spoken_too() {
    let provider =
        provider(r#"{"default": {"steps": [{"thinking": "hm"}, {"text": "hi"}]}}"#).await;
    let mut stream = send(&provider, "/v1/messages?beta=true", &asks("x")).await;
    let blocks = read_until(&mut stream, "\r\n0\r\n\r\n").await.unwrap();
    assert!(
        blocks.contains("event: message_start") && blocks.contains("event: message_stop"),
        "{blocks}"
    );
    let mut stream = send(
        &provider,
        "/v1/chat/completions",
        &json!({"messages": [{"role": "user", "content": "x"}]}),
    )
    .await;
    let whole = read_until(&mut stream, "}]}").await.unwrap();
    assert!(
        whole.contains(r#""content":"hi""#) && whole.contains(r#""reasoning_content":"hm""#),
        "{whole}"
    );
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    let provider = provider(r#"{"default": {"text": "again"}}"#).await;
    let mut stream = send(&provider, "/v1/chat/completions", &asks("one")).await;
    read_until(&mut stream, "\r\n0\r\n\r\n").await.unwrap();
    let body = asks("two").to_string();
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    stream.write_all(chunked.as_bytes()).await.unwrap();
    assert_eq!(
        said(&read_until(&mut stream, "\r\n0\r\n\r\n").await.unwrap()),
        "again"
    );
    assert_eq!(provider.requests()[1].last_user, "two");
}

#[tokio::test]
async fn a_status_is_sent_with_its_body_and_headers() {
    let provider = provider(r#"[{"status": 429, "headers": {"Retry-After": 1}, "body": {"error": {"message": "slow"}}}]"#).await;
    let mut stream = send(&provider, "/v1/chat/completions", &asks("x")).await;
    let refused = read_until(&mut stream, "}}").await.unwrap();
    assert!(
        refused.starts_with("HTTP/1.1 429 ") && refused.contains("Retry-After: 1\r\n"),
        "{refused}"
    );
    let mut stream = send(&provider, "/v1/chat/completions", &asks("nobody")).await;
    let refused = read_until(&mut stream, "}}").await.unwrap();
    assert!(
        refused.starts_with("HTTP/1.1 400 ") && refused.contains(r#"\"nobody\""#),
        "{refused}"
    );
    assert_eq!(provider.requests()[1].end, Some(End::NoReply));
}

#[tokio::test]
async fn a_waiting_reply_goes_on_when_it_is_released() {
    let provider =
        provider(r#"[{"steps": [{"text": "before "}, {"wait": "go"}, {"text": "after"}]}]"#).await;
    let mut stream = send(&provider, "/v1/chat/completions", &asks("x")).await;
    let before = read_until(&mut stream, "before ").await.unwrap();
    assert!(!before.contains("after"), "{before}");
    assert_eq!(provider.requests()[0].end, None);
    provider.release("go");
    let after = read_until(&mut stream, "[DONE]").await.unwrap();
    assert_eq!(said(&(before + &after)), "before after");
}

#[tokio::test]
async fn fin_ends_the_stream_without_its_end_and_rst_is_an_error() {
    let provider = provider(
        r#"[{"match": "fin", "steps": [{"text": "part"}, {"cut": "fin"}]},
            {"match": "rst", "steps": [{"text": "part"}, {"wait": "read"}, {"cut": "rst"}]}]"#,
    )
    .await;
    let mut stream = send(&provider, "/v1/chat/completions", &asks("fin")).await;
    let ended = read_until(&mut stream, "never said").await.unwrap();
    assert!(
        ended.contains("part") && ended.ends_with("0\r\n\r\n") && !ended.contains("DONE"),
        "{ended}"
    );

    let mut stream = send(&provider, "/v1/chat/completions", &asks("rst")).await;
    read_until(&mut stream, "part").await.unwrap();
    provider.release("read");
    let reset = read_until(&mut stream, "never said").await.unwrap_err();
    assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
    assert!(
        provider
            .wait_for(PATIENCE, |seen| seen[1].end == Some(End::Cut(Cut::Rst)))
            .await
    );
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_in_a_hang_and_in_a_pause() {
    let provider = provider(
        r#"[{"steps": [{"text": "a"}, {"hang": true}]}, {"delay_ms": 600000, "text": "late"},
            {"steps": [{"text": "b"}, {"wait": "never"}]}]"#,
    )
    .await;
    for number in 0..3 {
        let stream = send(&provider, "/v1/chat/completions", &asks("x")).await;
        assert!(
            provider
                .wait_for(PATIENCE, |seen| seen.len() == number + 1)
                .await
        );
        drop(stream);
        let gone = |seen: &[Request]| seen[number].end == Some(End::ClientGone);
        assert!(provider.wait_for(PATIENCE, gone).await, "request {number}");
    }
}

#[tokio::test]
async fn raw_bytes_errors_and_objects_go_through_as_they_are() {
    let provider = provider(
        r#"[{"steps": [{"raw": "data: {broken\n\n"}, {"sse": {"own": 1}}, {"error": {"code": 500}}, {"finish": "content_filter"}]}]"#,
    )
    .await;
    let text = chat(&provider, "x").await;
    for part in [
        "data: {broken\n\n",
        "data: {\"own\":1}\n\n",
        "data: {\"error\":{\"code\":500}}",
        "content_filter",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn a_new_script_counts_anew_and_dropping_closes_the_port() {
    let provider = provider(r#"[{"text": "one"}]"#).await;
    chat(&provider, "x").await;
    provider.replace(Script::from_json(r#"[{"text": "other"}]"#).unwrap());
    assert_eq!(said(&chat(&provider, "x").await), "other");
    let port = provider.port();
    let models = provider.models_json();
    assert_eq!(
        models["providers"]["stub"]["baseUrl"],
        format!("http://127.0.0.1:{port}/v1")
    );
    let mut held = send(&provider, "/v1/nothing", &json!({})).await;
    read_until(&mut held, "}}").await.unwrap();
    drop(provider);
    assert_eq!(
        read_until(&mut held, "never said")
            .await
            .unwrap_or_default(),
        ""
    );
}
