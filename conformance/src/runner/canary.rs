//! A thread that should run every few milliseconds, and notes when it did not: then the machine stalled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::{as_ns, now_ns};

/// How long it sleeps.
const BEAT: Duration = Duration::from_millis(10);
/// Waking up later than this counts as a stall.
const LATE: Duration = Duration::from_millis(30);

/// The canary of one run.
#[derive(Debug)]
pub struct Canary {
    stalls: Arc<Mutex<Vec<(u64, u64)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Canary {
    /// Starts it.
    pub fn start() -> Self {
        let stalls = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (stalls, stop) = (Arc::clone(&stalls), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let before = now_ns();
                    std::thread::sleep(BEAT);
                    let now = now_ns();
                    let late = (now - before).saturating_sub(as_ns(BEAT));
                    if late > as_ns(LATE) {
                        stalls
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((now, late));
                    }
                }
            }
        });
        Self {
            stalls,
            stop,
            thread: Some(thread),
        }
    }

    /// Stalls that ended in this stretch of time or reach into it: when each ended, and how long it was (ns).
    pub fn between(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        let overlaps = |(end, ns): &&(u64, u64)| *end >= from && end.saturating_sub(*ns) <= to;
        stalls.iter().filter(overlaps).copied().collect()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends within one beat.
            let _ = thread.join();
        }
    }
}
