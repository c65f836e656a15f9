//! How a call is told to stop: once, for one reason, and the first reason holds.

use tokio::sync::watch;

pub use crate::pi::Why;

/// The end that tells.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<Option<Why>>);

/// The end that is told.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Option<Why>>);

/// A pair of ends.
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(None);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Tells. A later reason does not replace an earlier one.
    pub fn stop(&self, why: Why) {
        self.0.send_if_modified(|state| {
            let first = state.is_none();
            state.get_or_insert(why);
            first
        });
    }
}

impl Stop {
    /// Whether it was told already, and why.
    pub fn told(&self) -> Option<Why> {
        *self.0.borrow()
    }

    /// Waits until it is told. If the other end goes away untold, it is the session that has gone.
    pub async fn wait(&mut self) -> Why {
        match self.0.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(Why::Shutdown),
            Err(_) => Why::Shutdown,
        }
    }
}

impl crate::pi::Stop for Stop {
    async fn stopped(&mut self) -> Why {
        self.wait().await
    }
}
