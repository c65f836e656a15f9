//! `delegate mcp`: the dialect as an MCP server on standard input and output.
//!
//! [`wire`] listens to the transport and keeps the book of [`calls`]; the service loop of `rmcp` does the protocol; this
//! module answers its two questions (which tools, and do this call) and sees to the end: when the input closes or a
//! signal comes, every call is stopped, its process tree ended and its result written, before the program goes.

use std::borrow::Cow;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, ServiceExt as _, transport};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::config::{clip, nearest};
use crate::dialect::delegator::progress::{Activity, HEARTBEAT, Pace, Progress};
use crate::dialect::delegator::result::CallResult;
use crate::dialect::delegator::{Delegator, tool};
use crate::signals::Signals;

pub mod calls;
pub mod wire;

use calls::Calls;
use wire::Wire;

/// The private capability, under `capabilities.experimental`.
pub const PARENT_CAPABILITY: &str = "pi/parent";
/// How long a call waits for cancellations that came in with it. They are there already or they are later ones.
const CAUGHT_UP: Duration = Duration::from_millis(50);
/// How long the end of a session waits for what runs: its own cleanup is bounded, and shorter.
const RUNS_END: Duration = Duration::from_secs(8);
/// How long it waits after that for the results to be written.
const WORDS_END: Duration = Duration::from_secs(1);

/// Serves until the input closes or a signal comes.
///
/// Returns 0 after a closed input. After a signal it does not return: the process dies of it.
pub async fn serve(delegator: Arc<Delegator>, mut signals: Signals) -> ExitCode {
    let calls = Calls::default();
    let (input, output) = transport::stdio_pipes();
    let inner = transport::async_rw::AsyncRwTransport::new_server(input, output);
    let wire = Wire::new(
        inner,
        calls.clone(),
        Arc::clone(&delegator.session),
        delegator.answers(),
    );
    let server = Server {
        delegator,
        calls: calls.clone(),
    };
    let serving = async {
        match server.serve(wire).await {
            Ok(running) => {
                // The loop's own failures are logged by it; either way the session is over.
                let _ = running.waiting().await;
            }
            Err(error) => tracing::info!("the session ended before it was opened: {error}"),
        }
    };
    // Not dropped after a signal: the service has to go on, and write the results of the calls that stop now.
    let mut serving = pin!(serving);
    let signal = tokio::select! {
        () = &mut serving => None,
        signal = signals.next() => Some(signal),
    };
    calls.close();
    if timeout(RUNS_END, calls.runs_over()).await.is_err() {
        tracing::error!("runs did not end within {RUNS_END:?}");
    }
    // A client that reads no more does not keep the server.
    if timeout(WORDS_END, calls.idle()).await.is_err() {
        tracing::warn!("some results could not be written");
    }
    match signal {
        None => ExitCode::SUCCESS,
        Some(signal) => signals.die_of(signal),
    }
}

/// What `rmcp` asks.
#[derive(Clone)]
struct Server {
    delegator: Arc<Delegator>,
    calls: Calls,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let parent = json!({"version": 1, "notifications": wire::PARENT_EVENTS});
        let experimental = [(
            PARENT_CAPABILITY.to_owned(),
            parent.as_object().cloned().unwrap_or_default(),
        )];
        let capabilities = ServerCapabilities::builder()
            .enable_experimental_with(experimental.into_iter().collect())
            .enable_tools()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("delegate", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method lands here when its parameters could not be understood.
        if request.method == "tools/call" {
            let message = "the parameters are not those of tools/call: name is a string, arguments is an object";
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("there is no method `{}`", clip(&request.method));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != tool::NAME {
            let hint = nearest(&request.name, [tool::NAME])
                .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            let message = format!("there is no tool `{}`{hint}", clip(&request.name));
            return Err(ErrorData::invalid_params(message, None));
        }
        // What came in with the request has been read before anything is started.
        let _ = timeout(CAUGHT_UP, self.calls.caught_up(&context.id)).await;
        let stop = self.calls.stop_of(&context.id);
        let arguments = request.arguments.unwrap_or_default();
        let profile = arguments
            .get("profile")
            .and_then(|name| name.as_str())
            .unwrap_or_default()
            .to_owned();
        let (activities, seen) = mpsc::channel(64);
        let _running = self.calls.run();
        let run = self.delegator.call(&arguments, stop, activities);
        let result = match context.meta.get_progress_token() {
            None => {
                drop(seen);
                run.await
            }
            Some(token) => {
                let report = report(context.peer.clone(), token, Progress::new(&profile), seen);
                let (result, ()) = tokio::join!(run, report);
                result
            }
        };
        Ok(answer(&result, self.delegator.output_cap()).into())
    }
}

impl Server {
    /// The one tool, or none inside a child.
    fn tools(&self) -> Vec<Tool> {
        if self.delegator.session.nested {
            return Vec::new();
        }
        let found = tool::tool(self.delegator.session.config.as_ref());
        let annotations = ToolAnnotations::with_title(found.title)
            .read_only(found.read_only)
            .destructive(!found.read_only)
            .idempotent(false)
            .open_world(true);
        let tool = Tool::new(
            Cow::Borrowed(tool::NAME),
            found.description,
            Arc::new(found.input),
        )
        .with_title(found.title)
        .with_raw_output_schema(Arc::new(found.output))
        .with_annotations(annotations);
        vec![tool]
    }
}

/// A result in MCP's form.
fn answer(result: &CallResult, cap: usize) -> CallToolResult {
    let blocks = result
        .text(cap)
        .into_iter()
        .map(ContentBlock::text)
        .collect();
    let mut answer = if result.ok {
        CallToolResult::success(blocks)
    } else {
        CallToolResult::error(blocks)
    };
    answer.structured_content = serde_json::to_value(result).ok();
    answer
}

/// Sends progress until the call is over (its sender is dropped). The last line is written before this returns, so
/// none can come after the result.
async fn report(
    peer: Peer<RoleServer>,
    token: ProgressToken,
    mut progress: Progress,
    mut seen: mpsc::Receiver<Activity>,
) {
    let start = Instant::now();
    let mut pace = Pace::default();
    let mut sent = 0.0;
    let mut due = false;
    let mut last = start;
    loop {
        let now = start.elapsed();
        if due && pace.allows(now) {
            sent += 1.0;
            due = false;
            last = Instant::now();
            let note = ProgressNotificationParam::new(token.clone(), sent)
                .with_message(progress.line(now));
            if peer.notify_progress(note).await.is_err() {
                // Nobody listens; the run goes on without.
                while seen.recv().await.is_some() {}
                return;
            }
        }
        let wake = if due {
            pace.next(start.elapsed())
        } else {
            HEARTBEAT.saturating_sub(last.elapsed())
        };
        tokio::select! {
            activity = seen.recv() => match activity {
                None => return,
                Some(activity) => {
                    progress.see(&activity);
                    due = true;
                }
            },
            () = sleep(wake) => due = true,
        }
    }
}
