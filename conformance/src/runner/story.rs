//! One scenario from its first folder to its last event: set up, start, steps, shutdown, what is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use super::busy::{self, Busy};
use super::canary::Canary;
use super::compose;
use super::context::RunContext;
use super::journals::Journals;
use super::leftovers;
use super::pi::Model;
use super::recorder::Recorder;
use super::stage::{Stage, StageError};
use super::subject::{Subject, Talk, TalkPi};
use crate::adapter::{Adapter, ChildMode, Transport};
use crate::clock::now_ns;
use crate::evidence::{Event, Evidence, Header, What};
use crate::sandbox::Root;
use crate::scenario::{Planned, Scenario, Spawn};
use crate::warden::{Order, Start};

/// Name of the first subject.
pub const FIRST: &str = "subject";
/// How long a step waits for its fact when the adapter does not say.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a parent Pi may take to start when the adapter does not say.
const PARENT_PATIENCE: Duration = Duration::from_secs(90);
/// What a subject that declares no grace gets.
const GRACE: Duration = Duration::from_secs(5);
/// How much longer than its declared grace a subject may take to exit before the runner stops waiting.
const EXIT_SLACK: Duration = Duration::from_secs(10);
/// The same for a parent Pi, a large program that ends more slowly on a busy machine than any delegator's own promise allows for.
const PARENT_SLACK: Duration = Duration::from_secs(30);
/// After the subject's end, what was already told to end gets this long to be gone.
const SURVIVOR_GRACE: Duration = Duration::from_millis(1500);
/// After a subject was lost, what it had written before may still be read for this long.
const AFTERMATH: Duration = Duration::from_secs(2);
/// Longest time for a sample's figures to hold still.
const SETTLING: Duration = Duration::from_millis(600);
/// Between two looks at the journals.
const LOOK: Duration = Duration::from_millis(3);

/// What the evidence of a scenario says that was cut short because the run was to end.
pub const INTERRUPTED: &str = "the run was interrupted";

/// A call that was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its subject.
    pub subject: String,
    /// Its number.
    pub id: u64,
    /// The word in its task.
    pub word: String,
    /// When.
    pub t_ns: u64,
}

/// A scenario that is being run.
pub struct Story<'a> {
    pub(super) scenario: Scenario,
    adapter: &'a Adapter,
    context: &'a RunContext,
    root: &'a Root,
    pub(super) stage: Stage,
    pub(super) recorder: Arc<Recorder>,
    pub(super) journals: Journals,
    pub(super) subjects: IndexMap<String, Subject>,
    pub(super) calls: IndexMap<String, Sent>,
    /// Waits that ran out of patience.
    pub(super) in_vain: usize,
    next: u64,
}

/// Runs one scenario below `root`.
pub fn run(
    planned: &Planned,
    adapter: &Adapter,
    context: &RunContext,
    root: &Root,
    canary: &Canary,
) -> Evidence {
    let begun = now_ns();
    let folder = context
        .bundles
        .as_ref()
        .map(|bundles| bundles.join(crate::bundle::folder_name(&planned.name)));
    let mut header = Header {
        format: crate::evidence::FORMAT,
        name: planned.name.clone(),
        area: planned.area.clone(),
        scenario: planned.scenario.clone(),
        adapter: adapter.clone(),
        axes: planned.axes.clone(),
        started: jiff::Timestamp::now().to_string(),
        folders: IndexMap::new(),
        reproduce: context.reproduce.replace("{name}", &planned.name),
    };
    if crate::check::inapplicable(&planned.scenario, adapter).is_some() {
        // The judge says why; nothing has to run for that.
        let end = Event {
            t_ns: begun,
            what: What::End,
        };
        return Evidence {
            header,
            events: vec![end],
            journals: Vec::new(),
            stderr: IndexMap::new(),
        };
    }
    let prepared = prepare(planned, adapter, context, root, &mut header);
    let mut bundle_error = None;
    if let Some(folder) = &folder {
        let made = std::fs::create_dir_all(folder).map_err(|error| error.to_string());
        let made = made.and_then(|()| {
            crate::bundle::write_header(folder, &header).map_err(|error| error.to_string())
        });
        bundle_error = made.err();
    }
    let live = folder.as_ref().map(|folder| folder.join("events.jsonl"));
    let recorder = match Recorder::new(live.as_deref()) {
        Ok(recorder) => recorder,
        Err(error) => {
            bundle_error.get_or_insert(error.to_string());
            Recorder::default()
        }
    };
    if let Some(error) = bundle_error {
        recorder.fault(format!("cannot write the bundle: {error}"));
    }
    let recorder = Arc::new(recorder);
    let mut journals = Vec::new();
    match prepared {
        Err(error) => recorder.fault(error.to_string()),
        Ok((scenario, stage)) => {
            let mut story = Story {
                scenario,
                adapter,
                context,
                root,
                stage,
                recorder: Arc::clone(&recorder),
                journals: Journals::default(),
                subjects: IndexMap::new(),
                calls: IndexMap::new(),
                in_vain: 0,
                next: 0,
            };
            // A fault of ours must neither end the other scenarios nor leave this one's processes: dropping the story does that.
            let told = std::panic::AssertUnwindSafe(|| story.tell());
            if let Err(panic) = std::panic::catch_unwind(told) {
                let text = panic.downcast_ref::<String>().cloned();
                let text =
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                recorder.fault(format!("the runner panicked: {}", text.unwrap_or_default()));
            }
            let (read, faults) = story.journals.take();
            journals = read;
            faults.into_iter().for_each(|fault| recorder.fault(fault));
        }
    }
    let ended = now_ns();
    for (t_ns, ns) in canary.between(begun, ended) {
        recorder.note_at(t_ns.min(ended), What::Stall { ns });
    }
    recorder.note(What::End);
    let (mut events, stderr) = recorder.take();
    leave_end_last(&mut events);
    let evidence = Evidence {
        header,
        events,
        journals,
        stderr,
    };
    if let Some(folder) = &folder
        && let Err(error) = crate::bundle::write(folder, &evidence)
    {
        let mut evidence = evidence;
        let message = format!("cannot write the bundle: {error}");
        evidence.events.insert(
            0,
            Event {
                t_ns: begun,
                what: What::HarnessError { message },
            },
        );
        return evidence;
    }
    evidence
}

fn leave_end_last(events: &mut [Event]) {
    if let Some(at) = events.iter().position(|event| event.what == What::End) {
        events[at..].rotate_left(1);
    }
}

/// Makes the folders, and fills their names into the scenario.
fn prepare(
    planned: &Planned,
    adapter: &Adapter,
    context: &RunContext,
    root: &Root,
    header: &mut Header,
) -> Result<(Scenario, Stage), StageError> {
    let mut stage = Stage::new(root, &planned.name, &planned.scenario, adapter, context)?;
    let scenario = super::stage::filled(&planned.scenario, &stage.folders)?;
    header.folders.clone_from(&stage.folders);
    header.scenario = scenario.clone();
    stage.lay_out(root, &scenario, adapter)?;
    Ok((scenario, stage))
}

impl Story<'_> {
    fn tell(&mut self) {
        self.journals = Journals::new(self.stage.journals.clone());
        if self.start_subject(FIRST, "start") {
            let steps = self.scenario.steps.clone();
            self.steps(&steps, "steps");
        }
        self.end();
    }

    /// Starts a subject and greets it. `false`: it never answered.
    pub(super) fn start_subject(&mut self, name: &str, path: &str) -> bool {
        let start = match self.stage.start(&self.scenario, self.adapter) {
            Ok(start) => start,
            Err(error) => {
                self.recorder.fault(error.to_string());
                return false;
            }
        };
        let talk = match self.talk() {
            Ok(talk) => talk,
            Err(error) => {
                self.recorder.fault(error.to_string());
                return false;
            }
        };
        if let Err(error) = self.launch(name, start, talk) {
            self.recorder
                .fault(format!("cannot start a warden: {error}"));
            return false;
        }
        let fact = format!("{name}.starts");
        let mut starts = |story: &mut Self| story.recorder.fact(&fact).is_some();
        if !self.wait_longer(path, &fact, self.start_patience(), &mut starts, Some(name)) {
            return false;
        }
        if let Some(subject) = self.subjects.get_mut(name) {
            subject.host.greeted();
        }
        self.take_sample(name, "auto", true);
        true
    }

    /// How the subject is talked to; with a parent Pi its model begins to serve.
    fn talk(&self) -> Result<Talk, StageError> {
        Ok(match self.adapter.transport {
            Transport::Mcp => Talk::Mcp,
            Transport::Command => Talk::Command,
            Transport::PiExtension => {
                let io = |source| StageError::Io {
                    what: "the parent's model".to_owned(),
                    source,
                };
                let inside = self.adapter.child_mode == ChildMode::InProcess;
                let children = self.scenario.children.iter().filter(|_| inside);
                let model = Model::start(children).map_err(io)?;
                model
                    .settle_in(&self.stage.sandbox.folder("agent"))
                    .map_err(io)?;
                Talk::Pi(Box::new(TalkPi {
                    parent: self.adapter.parent.clone(),
                    tells_settled: self.stage.real_parent()?.tells_settled(),
                    model,
                }))
            }
        })
    }

    fn launch(&mut self, name: &str, start: Start, talk: Talk) -> std::io::Result<()> {
        let recorder = Arc::clone(&self.recorder);
        let mut subject = Subject::start(name, &self.root.executable(), start, talk, recorder)?;
        subject.host.greet();
        self.subjects.insert(name.to_owned(), subject);
        Ok(())
    }

    /// Waits until something holds. When patience runs out, or the subject that it needs is lost, that is noted.
    pub(super) fn wait_for(
        &mut self,
        path: &str,
        fact: &str,
        mut holds: impl FnMut(&mut Self) -> bool,
        needs: Option<&str>,
    ) -> bool {
        let patience = self.patience();
        self.wait_longer(path, fact, patience, &mut holds, needs)
    }

    fn wait_longer(
        &mut self,
        path: &str,
        fact: &str,
        patience: Duration,
        holds: &mut dyn FnMut(&mut Self) -> bool,
        needs: Option<&str>,
    ) -> bool {
        let until = Instant::now() + patience;
        let at_most = Instant::now() + patience * busy::AT_MOST;
        let mut busy = Busy::new(self.recorder.pid(needs.unwrap_or(FIRST)));
        let mut lost_since = None;
        loop {
            if holds(self) {
                return true;
            }
            let now = Instant::now();
            if needs.is_some_and(|subject| self.recorder.is_lost(subject)) {
                lost_since.get_or_insert(now);
            }
            let hopeless = lost_since.is_some_and(|since| now >= since + AFTERMATH);
            let works = busy.works();
            let over = now >= at_most || now >= until && !works;
            if over || hopeless || self.context.interrupt.raised() {
                self.recorder.note(What::GaveUp {
                    path: path.to_owned(),
                    fact: fact.to_owned(),
                });
                self.in_vain += 1;
                return false;
            }
            self.recorder.wait(LOOK);
        }
    }

    fn patience(&self) -> Duration {
        self.adapter
            .figures
            .patience
            .map_or(PATIENCE, |span| span.0)
    }

    /// A parent Pi compiles its extensions first; that takes its time and says nothing about them.
    fn start_patience(&self) -> Duration {
        let parent = self.adapter.transport == Transport::PiExtension;
        let given = self.adapter.parent.start_within.map(|span| span.0);
        let longer = given.or(parent.then_some(PARENT_PATIENCE));
        self.patience().max(longer.unwrap_or_default())
    }

    /// The run is to end.
    pub(super) fn interrupted(&self) -> bool {
        self.context.interrupt.raised()
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sends a call. `false`: it could not be made.
    pub(super) fn send(&mut self, spawn: &Spawn, name: String) -> bool {
        let subject = spawn.on.clone().unwrap_or_else(|| FIRST.to_owned());
        let id = self.next_id();
        let word = compose::word(id);
        let composed = compose::call(self.adapter, &self.stage.scope, spawn, &name, id);
        let (outgoing, sent) = match composed {
            Ok(composed) => composed,
            Err(message) => {
                self.recorder.fault(message);
                return false;
            }
        };
        self.note_sent(name.clone(), subject.clone(), id, word, sent);
        let Some(host) = self.subjects.get_mut(&subject) else {
            self.recorder
                .fault(format!("there is no subject `{subject}`"));
            return false;
        };
        if spawn.aborted {
            self.recorder.note(What::AbortSent { call: name });
        }
        host.host.call(&outgoing);
        true
    }

    pub(super) fn note_sent(
        &mut self,
        name: String,
        subject: String,
        id: u64,
        word: String,
        what: What,
    ) {
        let t_ns = now_ns();
        self.recorder.note_at(t_ns, what);
        let sent = Sent {
            subject,
            id,
            word,
            t_ns,
        };
        self.calls.insert(name, sent);
    }

    /// Takes a snapshot of a subject once its figures hold still, since what a result leaves behind is tidied up just after it.
    pub(super) fn take_sample(&mut self, subject: &str, name: &str, reset_peak: bool) {
        let until = Instant::now() + SETTLING;
        let mut before = None;
        loop {
            let id = self.next_id();
            let Some(link) = self.subjects.get_mut(subject) else {
                self.recorder
                    .fault(format!("there is no subject `{subject}`"));
                return;
            };
            link.order(&Order::Sample { id, reset_peak });
            let patience = Instant::now() + self.patience();
            let taken = loop {
                if let Some(taken) = self.recorder.take_sample(id) {
                    break taken;
                }
                if self.recorder.is_finished(subject) || Instant::now() >= patience {
                    break None;
                }
                self.recorder.wait(LOOK);
            };
            // A subject that has gone has no figures: a check that wants them finds no evidence.
            let Some(sample) = taken else {
                return;
            };
            let figures = (sample.fds, sample.children, sample.zombies);
            if reset_peak || before == Some(figures) || Instant::now() >= until {
                self.recorder.note(What::Sample {
                    name: name.to_owned(),
                    subject: subject.to_owned(),
                    sample,
                });
                return;
            }
            before = Some(figures);
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Session shutdown for all subjects; then who survived, and what lies about.
    fn end(&mut self) {
        let names: Vec<String> = self.subjects.keys().cloned().collect();
        for name in &names {
            if !self.recorder.is_lost(name) {
                self.take_sample(name, "auto", false);
            }
            if let Some(subject) = self.subjects.get_mut(name) {
                subject.close();
            }
        }
        let grace = self.adapter.figures.grace.map_or(GRACE, |span| span.0);
        let slack = if self.adapter.transport == Transport::PiExtension {
            PARENT_SLACK
        } else {
            EXIT_SLACK
        };
        let until = Instant::now() + grace + slack;
        for name in &names {
            let left = || names.iter().any(|name| !self.recorder.is_lost(name));
            while left() && Instant::now() < until && !self.context.interrupt.raised() {
                self.recorder.wait(Duration::from_millis(20));
            }
            let fact = format!("{name}.exited");
            if !self.recorder.is_lost(name) && !self.context.interrupt.raised() {
                self.recorder.note(What::GaveUp {
                    path: "end".to_owned(),
                    fact,
                });
            }
        }
        let grace = if self.context.interrupt.raised() {
            Duration::ZERO
        } else {
            SURVIVOR_GRACE
        };
        for (_, subject) in std::mem::take(&mut self.subjects) {
            subject.finish(grace);
        }
        if self.context.interrupt.raised() {
            self.recorder.fault(INTERRUPTED);
        }
        self.recorder.note(What::Survivors {
            processes: self.recorder.survivors(),
        });
        let sandbox = &self.stage.sandbox;
        let mut files = leftovers::with_modes(&sandbox.folder("tmp"));
        files.retain(|path, _| !self.stage.is_ours(path));
        self.recorder.note(What::Leftovers { files });
        self.recorder.note(What::WorkFiles {
            files: leftovers::work_files(sandbox.run()),
        });
    }
}
