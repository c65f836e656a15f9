//! The `delegator` dialect: one tool, foreground only, five profiles, a deadline that nobody can talk it out of.
//!
//! ```text
//!  arguments ─► request::check ─► launch (profile's arguments, folder, model) ─► pi::run ─► result
//!                     └ refused                                   └ updates ─► progress
//! ```

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::stop::{Stop, Why};
use crate::config::{Config, Limits};
use crate::pi::seam::Twist;
use crate::pi::{self, Launch, Update};
use crate::session::{MARK_VARIABLE, Program, Session};

pub mod progress;
pub mod request;
pub mod result;
pub mod run;
pub mod tool;

use progress::Activity;
use request::{Asked, Refusal};
use result::{CallResult, Verdict};

/// Updates of a run that may wait to be told; a reader that lags loses some, the run never waits for it.
const UPDATES: usize = 64;

/// The dialect over one session.
pub struct Delegator {
    /// The session.
    pub session: Arc<Session>,
    twist: Arc<dyn Twist>,
}

impl Delegator {
    /// Serves calls of `session`. `twist` is how a mutant differs; the sound program has none.
    pub fn new(session: Arc<Session>, twist: Arc<dyn Twist>) -> Self {
        Self { session, twist }
    }

    /// How often a call's response is sent: see [`Twist::answers`].
    pub fn answers(&self) -> usize {
        self.twist.answers()
    }

    /// Most bytes of answer text in a result.
    pub fn output_cap(&self) -> usize {
        self.session
            .config
            .as_ref()
            .map_or(Limits::default().output_cap, |config| {
                config.limits.output_cap
            })
    }

    /// Does one call, to its end: when this returns, the process tree is gone. There is exactly one result, whatever
    /// happens. `activities` tells what the child does meanwhile, as far as somebody reads it.
    pub async fn call(
        &self,
        arguments: &Map<String, Value>,
        stop: Stop,
        activities: mpsc::Sender<Activity>,
    ) -> CallResult {
        let start = Instant::now();
        let profile = arguments
            .get("profile")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut result = match self.admit(arguments) {
            Err(refusal) => CallResult::refused(&refusal, &crate::config::clip(profile)),
            Ok((asked, config)) => self.launch(asked, config, stop, activities).await,
        };
        result.duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        result
    }

    /// Whether a call may start a child at all.
    fn admit(&self, arguments: &Map<String, Value>) -> Result<(Asked, &Config), Refusal> {
        if self.session.nested {
            let message = format!(
                "this runs inside a delegated child ({MARK_VARIABLE} is set): delegations do not nest"
            );
            return Err(Refusal {
                reason: "nested",
                message,
            });
        }
        let config = self
            .session
            .config
            .as_ref()
            .map_err(|diagnostics| Refusal {
                reason: "configuration",
                message: format!(
                    "the configuration is faulty, and nothing is delegated:\n{diagnostics}"
                ),
            })?;
        Ok((request::check(arguments, config)?, config))
    }

    async fn launch(
        &self,
        asked: Asked,
        config: &Config,
        stop: Stop,
        activities: mpsc::Sender<Activity>,
    ) -> CallResult {
        let Asked {
            task,
            profile,
            cwd,
            model,
        } = asked;
        let cwd = match request::folder(cwd.as_deref(), &self.session.cwd) {
            Ok(cwd) => cwd,
            Err(refusal) => return CallResult::refused(&refusal, &profile.name),
        };
        let parent = self.session.parent_model();
        let model = profile.effective_model(model.as_deref(), parent.as_deref());
        let about = CallResult {
            profile: profile.name.clone(),
            model: model.unwrap_or_default().to_owned(),
            ..CallResult::without_run(Verdict::Failed, "", "")
        };
        // Already told to stop: nothing is started, and nothing more is looked at.
        if let Some(why) = stop.told() {
            let (reason, message) = match why {
                Why::Aborted => (
                    "aborted",
                    "the call was cancelled before anything was started",
                ),
                Why::Shutdown => ("shutdown", "the session ended before anything was started"),
            };
            let CallResult { profile, model, .. } = about;
            return CallResult {
                profile,
                model,
                ..CallResult::without_run(Verdict::Cancelled, reason, message)
            };
        }
        let program = match &self.session.program {
            Program::At(path) => path.clone(),
            Program::Missing(why) => {
                let CallResult { profile, model, .. } = about;
                return CallResult {
                    profile,
                    model,
                    ..CallResult::without_run(Verdict::Failed, "spawn-error", why)
                };
            }
        };
        let launch = Launch {
            program,
            args: profile.arguments(model),
            // What the shell of the session left there is not where the child is.
            env: vec![(OsString::from("PWD"), Some(cwd.clone().into()))],
            cwd,
            task,
            mark: uuid::Uuid::new_v4().to_string(),
            limits: run::limits(&config.limits, profile.deadline),
            kill_on_drop: true,
        };
        let (updates, mut seen) = mpsc::channel::<Update>(UPDATES);
        let telling = async {
            while let Some(update) = seen.recv().await {
                let _ = activities.try_send(run::activity(update));
            }
        };
        let running = pi::run(launch, stop, updates, self.twist.as_ref());
        let (outcome, ()) = tokio::join!(running, telling);
        let CallResult { profile, model, .. } = about;
        CallResult {
            profile,
            model,
            ..run::result(outcome)
        }
    }
}
