//! The wire between client and server: MCP's own transport, with an ear on it.
//!
//! Three things have to happen in the order of the wire, and before the service loop hands messages to tasks of their
//! own: calls are noted, cancellations reach them, and the parent's notifications take effect. Cancellations go no
//! further than here: the service loop would drop the response of a cancelled request, and a cancelled call has a
//! result like every other.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, CustomNotification, JsonRpcMessage, JsonRpcNotification,
    JsonRpcRequest,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::calls::Calls;
use crate::session::Session;

/// A message on its way out.
type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// The parent's notifications, without their common beginning.
pub const PARENT_EVENTS: [&str; 3] = ["started", "interrupted", "settled"];
/// The beginning of their methods.
const PARENT_PREFIX: &str = "notifications/pi/parent/";

/// A transport with an ear on it.
pub struct Wire<T> {
    inner: T,
    calls: Calls,
    session: Arc<Session>,
    opened: bool,
    /// How often a call's response is sent: once, unless a mutant says otherwise.
    answers: usize,
}

impl<T> Wire<T> {
    /// Listens to `inner`.
    pub fn new(inner: T, calls: Calls, session: Arc<Session>, answers: usize) -> Self {
        Self {
            inner,
            calls,
            session,
            opened: false,
            answers,
        }
    }

    /// Takes in what a message means; says whether the service loop is to see it.
    fn hear(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        match message {
            JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) => {
                self.opened = true;
                if matches!(request, ClientRequest::CallToolRequest(_)) {
                    self.calls.begin(id);
                }
                true
            }
            JsonRpcMessage::Notification(JsonRpcNotification { notification, .. }) => {
                match notification {
                    ClientNotification::CancelledNotification(cancelled) => {
                        if let Some(id) = &cancelled.params.request_id {
                            self.calls.cancel(id);
                        }
                        false
                    }
                    ClientNotification::CustomNotification(custom)
                        if custom.method.starts_with(PARENT_PREFIX) =>
                    {
                        self.parent(custom);
                        false
                    }
                    // Before a session is opened a stray notification would be taken for a broken handshake.
                    _ => self.opened,
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.opened,
        }
    }

    fn parent(&self, notification: &CustomNotification) {
        let params = notification.params.as_ref();
        match notification.method.strip_prefix(PARENT_PREFIX) {
            Some("started") => {
                let model = params
                    .and_then(|params| params.get("model"))
                    .and_then(|model| model.as_str());
                if let Err(error) = self.session.set_parent_model(model.map(str::to_owned)) {
                    tracing::warn!("the parent's model is ignored: {error}");
                }
            }
            Some("interrupted") => self.calls.interrupt(),
            Some("settled") => {}
            _ => tracing::warn!("unknown notification {:?}", notification.method),
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let calls = self.calls.clone();
        let again = if answered.is_some() { self.answers } else { 1 };
        let mut copies: Vec<Sending<T::Error>> = Vec::new();
        for _ in 1..again {
            copies.push(Box::pin(self.inner.send(item.clone())));
        }
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            for copy in copies {
                copy.await?;
            }
            // Only now is the call over: whoever waits for that may end the process.
            if let Some(id) = answered {
                calls.finish(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = {
                let calls = &self.calls;
                let mut receiving = pin!(self.inner.receive());
                poll_fn(|context| {
                    let polled = receiving.as_mut().poll(context);
                    if matches!(polled, Poll::Pending) {
                        calls.nothing_to_read();
                    }
                    polled
                })
                .await
            };
            match message {
                None => {
                    self.calls.close();
                    return None;
                }
                Some(message) => {
                    if self.hear(&message) {
                        return Some(message);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
