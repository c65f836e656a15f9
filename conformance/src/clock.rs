//! The one clock of all witnesses: `CLOCK_MONOTONIC`, nanoseconds.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`: comparable between all processes of this machine.
pub fn now_ns() -> u64 {
    // The call fails only for a clock that does not exist, and this one exists on every Linux.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    now.map_or(0, as_ns)
}

/// A length of time in nanoseconds; what does not fit in 584 years is cut to that.
pub fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
