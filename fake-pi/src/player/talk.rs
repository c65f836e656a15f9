//! Pi's side of a start: which child it is, the session that speaks for it, the task, and the session file.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::choose::{self, Facts};
use super::stage::{Catches, Stage, State, wall_ms};
use crate::act::Flavour;
use crate::journal::{Digest, What, bounded};
use crate::pi::{Ending, Ids, Input, Mode, Model, Options, Session, ToolSpec, js};

/// The hash of a text as it stands in journals.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What begins with the first mark, where something stands before it.
fn marked(task: &str) -> Option<&str> {
    let at = ["kit-child-", "kit-call-"]
        .iter()
        .filter_map(|mark| task.find(mark))
        .min()?;
    (at > 0).then(|| &task[at..])
}

/// The task is known: it is journalled, and may tell which child this is.
pub fn task_known(stage: &Stage, state: &mut State, via: &str, task: &str) {
    let call = choose::call_word(task);
    let hash = sha256(task);
    stage.journal.write(What::Task {
        via: via.to_owned(),
        text: bounded(task),
        bytes: task.len() as u64,
        sha256: hash.clone(),
        call: call.clone(),
        marked: marked(task).map(|text| Digest {
            bytes: text.len() as u64,
            sha256: sha256(text),
        }),
    });
    if state.taken == 0 {
        state.known.task = task.to_owned();
        state.known.task_hash = hash;
        state.known.call = call.unwrap_or_default();
    }
    choose_child(stage, state, Some(task));
}

/// Chooses the child, if that can be told by now.
pub fn choose_child(stage: &Stage, state: &mut State, task: Option<&str>) {
    if state.chosen.is_some() {
        return;
    }
    let facts = Facts {
        task,
        argv: &stage.given.argv,
        cwd: &stage.given.cwd,
    };
    let Some(chosen) = choose::choose(&stage.given.script, facts) else {
        if task.is_some() {
            let message = "no child of the script fits this task".to_owned();
            stage.journal.write(What::Fault {
                message: message.clone(),
            });
            // Whoever waits for this child would wait for ever.
            stage.stderr(format!("fake-pi: {message}\n").as_bytes());
            let ending = Ending::Code(i32::from(crate::EXIT_BAD_SCRIPT));
            stage.leave(ending, Duration::ZERO);
        }
        return;
    };
    stage.journal.write(What::Chosen {
        child: chosen.name.clone(),
    });
    state.catches = Catches::of(&chosen);
    let other = choose::first_flavour(&stage.given.script) != chosen.flavour;
    state.chosen = Some(chosen);
    if other && state.session.is_some() {
        // Commands were answered in another flavour already; from here on it is the right one.
        state.session = None;
    }
    ensure_session(stage, state, stage.given.args.mode == Mode::Rpc);
}

/// Makes the session when something needs one: in RPC mode it listens from the start, the one-shot modes begin with a run.
pub fn ensure_session(stage: &Stage, state: &mut State, needed: bool) {
    if state.session.is_some() || !needed {
        return;
    }
    let flavour = match &state.chosen {
        Some(chosen) => chosen.flavour,
        None => choose::first_flavour(&stage.given.script),
    };
    let options = options(stage, state, flavour);
    state.session = Some(Session::new(
        options,
        Box::new(Uuids(Arc::clone(&state.next_id))),
    ));
    stage.tell_locked(state, Input::Start);
}

fn options(stage: &Stage, state: &mut State, flavour: Flavour) -> Options {
    let args = &stage.given.args;
    let mut options = Options::new(flavour, args.mode);
    if let Some(model) = &args.model {
        let (name, level) = match model.rsplit_once(':') {
            Some((name, level)) if is_level(level) => (name, Some(level)),
            _ => (model.as_str(), None),
        };
        let (provider, id) = name.split_once('/').unwrap_or(("stub", name));
        options.model = Model::stub(provider, id);
        options.models = vec![options.model.clone()];
        options.thinking = level.unwrap_or("off").to_owned();
    }
    if let Some(thinking) = &args.thinking {
        options.thinking.clone_from(thinking);
    }
    if let Some(tools) = &args.tools {
        options.tools = tools
            .iter()
            .filter_map(|name| ToolSpec::builtin(name))
            .collect();
    }
    options.cwd.clone_from(&stage.given.cwd);
    options.system_prompt = system_prompt(args.system_prompt.as_deref());
    state.known.prompt_hash = sha256(&options.system_prompt);
    options.warnings.clone_from(&args.warnings);
    options.messages = state.prompts.drain(..).collect();
    options.session_file = session_file(args, &stage.given.cwd);
    options
}

fn is_level(word: &str) -> bool {
    matches!(
        word,
        "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max"
    )
}

/// A system prompt is a text, or a path whose content it is.
fn system_prompt(given: Option<&str>) -> String {
    let given = given.unwrap_or_default();
    if !given.is_empty() && given.len() < 4096 && Path::new(given).is_file() {
        return std::fs::read_to_string(given).unwrap_or_default();
    }
    given.to_owned()
}

fn session_file(args: &crate::args::Args, cwd: &str) -> Option<String> {
    if args.no_session {
        return None;
    }
    let absolute = |path: &str| Path::new(cwd).join(path).to_string_lossy().into_owned();
    if let Some(path) = &args.session {
        return Some(absolute(path));
    }
    // A folder, by its last slash: the session names the file in it.
    let folder = absolute(args.session_dir.as_ref()?);
    Some(format!("{}/", folder.trim_end_matches('/')))
}

/// Fresh identifiers, or the one that a script wants.
struct Uuids(Arc<Mutex<Option<String>>>);

impl Ids for Uuids {
    fn uuid(&mut self) -> String {
        let wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        wanted.unwrap_or_else(|| uuid::Uuid::now_v7().to_string())
    }

    fn entry(&mut self) -> String {
        uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
    }
}

/// Adds a message to the file of a session (by its identifier), with the header before it when the file is new. As with the real Pi nothing depends
/// on it for the run: what cannot be written is left out.
pub fn append_message(path: &Path, session: &str, message: &Value) {
    let fresh = !path.exists();
    if let (true, Some(folder)) = (fresh, path.parent()) {
        let _ = std::fs::create_dir_all(folder);
    }
    let Ok(mut file) = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
    else {
        return;
    };
    let timestamp = crate::pi::iso(wall_ms());
    let mut lines = String::new();
    if fresh {
        let cwd = std::env::current_dir().unwrap_or_default();
        let header = json!({"type": "session", "version": 3, "id": session, "timestamp": timestamp, "cwd": cwd});
        lines.push_str(&js::line(&header));
        lines.push('\n');
    }
    let id = &uuid::Uuid::new_v4().simple().to_string()[..8];
    let entry = json!({"type": "message", "id": id, "parentId": null, "timestamp": timestamp, "message": message});
    lines.push_str(&js::line(&entry));
    lines.push('\n');
    let _ = file.write_all(lines.as_bytes());
}
