//! The live status of `delegate run`: one line that changes on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nix::sys::signal::Signal;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::interval;

use crate::dialect::delegator::Delegator;
use crate::dialect::delegator::progress::{Pace, Progress};
use crate::dialect::delegator::result::CallResult;
use crate::dialect::stop::{self, Why};
use crate::signals::Signals;

/// How often the seconds on the line are brought up to date.
const TICK: Duration = Duration::from_millis(120);

/// Does a call and shows what it does meanwhile. A signal stops it; then the result says so and the signal is returned.
pub async fn watched(
    delegator: &Delegator,
    arguments: &Map<String, Value>,
    profile: &str,
    quiet: bool,
    signals: &mut Signals,
) -> (CallResult, Option<Signal>) {
    let (stopper, stop) = stop::pair();
    let (activities, mut seen) = mpsc::channel(64);
    let mut call = std::pin::pin!(delegator.call(arguments, stop, activities));
    let mut line = Line::new(quiet);
    let mut progress = Progress::new(profile);
    let start = Instant::now();
    let mut tick = interval(TICK);
    let mut signal = None;
    loop {
        tokio::select! {
            result = &mut call => {
                // What the child did last may still be on its way.
                while let Ok(activity) = seen.try_recv() {
                    progress.see(&activity);
                    line.show(&progress, start.elapsed());
                }
                line.clear();
                return (result, signal);
            }
            Some(activity) = seen.recv() => {
                progress.see(&activity);
                line.show(&progress, start.elapsed());
            }
            number = signals.next(), if signal.is_none() => {
                signal = Some(number);
                stopper.stop(Why::Aborted);
            }
            _ = tick.tick() => line.tick(&progress, start.elapsed()),
        }
    }
}

/// Where progress is shown.
enum Line {
    Nowhere,
    Live(ProgressBar),
    Plain(Pace),
}

impl Line {
    fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Nowhere;
        }
        if !io::stderr().is_terminal() {
            return Self::Plain(Pace::default());
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let template = if colour {
            "{spinner:.cyan} {wide_msg}"
        } else {
            "{spinner} {wide_msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::Live(bar)
    }

    fn show(&mut self, progress: &Progress, elapsed: Duration) {
        match self {
            Self::Nowhere => {}
            Self::Live(bar) => bar.set_message(progress.line(elapsed)),
            Self::Plain(pace) => {
                if pace.allows(elapsed) {
                    let _ = writeln!(io::stderr().lock(), "{}", progress.line(elapsed));
                }
            }
        }
    }

    fn tick(&mut self, progress: &Progress, elapsed: Duration) {
        if let Self::Live(bar) = self {
            bar.set_message(progress.line(elapsed));
            bar.tick();
        }
    }

    fn clear(&mut self) {
        if let Self::Live(bar) = self {
            bar.finish_and_clear();
        }
    }
}
