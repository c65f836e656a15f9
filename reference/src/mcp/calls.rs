//! Which calls are in flight, and which of them were told to stop.
//!
//! Kept where the wire is read, in the order of the wire: a cancellation that stands behind its request always finds
//! it, and one that came before it (or in the same write) is remembered until it comes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::watch;

use crate::dialect::stop::{self, Stop, Stopper, Why};

/// How many ids are remembered of requests that were cancelled before they came, and of those that are over.
const MEMORY: usize = 256;

/// The calls of a session.
#[derive(Debug, Clone)]
pub struct Calls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    book: Mutex<Book>,
    /// How many calls are in flight: read, and their response not yet written.
    live: watch::Sender<usize>,
    /// How many of them have a run.
    runs: watch::Sender<usize>,
    /// Counts the times that the wire had nothing more to read.
    quiet: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Book {
    live: HashMap<RequestId, Live>,
    early: VecDeque<RequestId>,
    over: VecDeque<RequestId>,
    closed: bool,
}

/// A call in flight.
#[derive(Debug)]
struct Live {
    stopper: Stopper,
    stop: Stop,
    /// How often the wire had been read to its end when the request came.
    quiet: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(Shared {
            book: Mutex::default(),
            live: watch::Sender::new(0),
            runs: watch::Sender::new(0),
            quiet: watch::Sender::new(0),
        }))
    }
}

impl Calls {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while the lock is held; a poisoned one still guards a whole book.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was read.
    pub fn begin(&self, id: &RequestId) {
        let mut book = self.book();
        let (stopper, stop) = stop::pair();
        if let Some(at) = book.early.iter().position(|early| early == id) {
            book.early.remove(at);
            stopper.stop(Why::Aborted);
        }
        if book.closed {
            stopper.stop(Why::Shutdown);
        }
        let quiet = *self.0.quiet.borrow();
        book.live.insert(
            id.clone(),
            Live {
                stopper,
                stop,
                quiet,
            },
        );
        self.0.live.send_replace(book.live.len());
    }

    /// The request's end that is told. A request that was never read here is told at once.
    pub fn stop_of(&self, id: &RequestId) -> Stop {
        let book = self.book();
        book.live.get(id).map_or_else(
            || {
                let (stopper, stop) = stop::pair();
                stopper.stop(Why::Shutdown);
                stop
            },
            |live| live.stop.clone(),
        )
    }

    /// Its response goes out.
    pub fn finish(&self, id: &RequestId) {
        let mut book = self.book();
        if book.live.remove(id).is_some() {
            remember(&mut book.over, id);
            self.0.live.send_replace(book.live.len());
        }
    }

    /// A cancellation was read.
    pub fn cancel(&self, id: &RequestId) {
        let mut book = self.book();
        if let Some(live) = book.live.get(id) {
            live.stopper.stop(Why::Aborted);
        } else if !book.over.contains(id) {
            remember(&mut book.early, id);
        }
    }

    /// The parent's run was interrupted: every call in flight stops.
    pub fn interrupt(&self) {
        for live in self.book().live.values() {
            live.stopper.stop(Why::Aborted);
        }
    }

    /// The session ends: every call stops, and so does every one that still comes.
    pub fn close(&self) {
        let mut book = self.book();
        book.closed = true;
        for live in book.live.values() {
            live.stopper.stop(Why::Shutdown);
        }
    }

    /// Counts a run until the returned guard goes.
    pub fn run(&self) -> Run {
        self.0.runs.send_modify(|runs| *runs += 1);
        Run(self.clone())
    }

    /// Waits until nothing runs any more, whether or not the results could be written.
    pub async fn runs_over(&self) {
        let mut runs = self.0.runs.subscribe();
        let _ = runs.wait_for(|runs| *runs == 0).await;
    }

    /// Waits until no call is in flight.
    pub async fn idle(&self) {
        let mut live = self.0.live.subscribe();
        // The sender lives in `self`, so the wait ends with the fact and not with an error.
        let _ = live.wait_for(|live| *live == 0).await;
    }

    /// There is nothing to read at the moment.
    pub fn nothing_to_read(&self) {
        self.0
            .quiet
            .send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Waits until the wire has been read as far as it went when the request `id` stood on it.
    pub async fn caught_up(&self, id: &RequestId) {
        let Some(before) = self.book().live.get(id).map(|live| live.quiet) else {
            return;
        };
        let mut quiet = self.0.quiet.subscribe();
        let _ = quiet.wait_for(|times| *times != before).await;
    }
}

/// A run that goes on.
#[derive(Debug)]
pub struct Run(Calls);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.0.runs.send_modify(|runs| *runs -= 1);
    }
}

fn remember(ids: &mut VecDeque<RequestId>, id: &RequestId) {
    if ids.len() == MEMORY {
        ids.pop_front();
    }
    ids.push_back(id.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    // shows: cancel.already-aborted-no-launch, isolate.abort-spares-sibling
    #[test]
    fn a_cancellation_finds_its_call_whichever_comes_first() {
        let calls = Calls::default();
        calls.cancel(&id(2));
        for call in [1, 2, 3] {
            calls.begin(&id(call));
        }
        calls.cancel(&id(3));
        let told: Vec<_> = [1, 2, 3]
            .map(|call| calls.stop_of(&id(call)).told())
            .to_vec();
        assert_eq!(told, [None, Some(Why::Aborted), Some(Why::Aborted)]);
        // A late one is not kept for a later request of the same id.
        calls.finish(&id(1));
        calls.cancel(&id(1));
        calls.begin(&id(1));
        assert_eq!(calls.stop_of(&id(1)).told(), None);
    }

    #[test]
    fn the_first_reason_holds_and_a_closed_session_takes_no_call() {
        let calls = Calls::default();
        for call in [1, 2] {
            calls.begin(&id(call));
        }
        calls.cancel(&id(1));
        calls.close();
        calls.begin(&id(3));
        let told: Vec<_> = [1, 2, 3]
            .map(|call| calls.stop_of(&id(call)).told())
            .to_vec();
        assert_eq!(
            told,
            [Some(Why::Aborted), Some(Why::Shutdown), Some(Why::Shutdown)]
        );
        assert_eq!(calls.stop_of(&id(9)).told(), Some(Why::Shutdown));
    }

    #[test]
    fn early_cancellations_are_bounded() {
        let calls = Calls::default();
        for call in 0..10_000 {
            calls.cancel(&id(call));
        }
        assert_eq!(calls.book().early.len(), MEMORY);
    }

    #[tokio::test]
    async fn idle_waits_for_the_last_response() {
        let calls = Calls::default();
        calls.idle().await;
        calls.begin(&id(1));
        let waiting = tokio::spawn({
            let calls = calls.clone();
            async move { calls.idle().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        calls.finish(&id(1));
        waiting.await.unwrap();
    }
}
