//! Whether a subject is at work: patience with one that reckons is longer than with one that sleeps.
//!
//! A reader that takes twenty seconds of processor time for one long record is slow, not stuck; whether slow is wrong is for a bound on
//! time to say, not for the runner's patience. One that is busy for ever is given up too, after a few times as long.

use std::time::{Duration, Instant};

use crate::proc;

/// So many times as long is waited at most.
pub const AT_MOST: u32 = 5;
/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// Share of one processor from which on it counts as work.
const SHARE: f64 = 0.2;

/// Watches one process.
#[derive(Debug)]
pub struct Busy {
    pid: Option<i32>,
    looked: Instant,
    spent: Option<Duration>,
    works: bool,
}

impl Busy {
    /// Begins to watch; a process that is not known is never at work.
    pub fn new(pid: Option<i32>) -> Self {
        Self {
            pid,
            looked: Instant::now(),
            spent: pid.and_then(proc::processor_time),
            works: false,
        }
    }

    /// Whether it worked between the last two looks.
    pub fn works(&mut self) -> bool {
        let since = self.looked.elapsed();
        if since >= EVERY {
            let spent = self.pid.and_then(proc::processor_time);
            let more = spent
                .zip(self.spent)
                .map(|(now, before)| now.saturating_sub(before));
            self.works = more.is_some_and(|more| more.as_secs_f64() >= SHARE * since.as_secs_f64());
            self.looked = Instant::now();
            self.spent = spent;
        }
        self.works
    }
}
