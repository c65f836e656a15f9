//! `init`: a first adapter file. On a terminal it asks; elsewhere the options say what is wanted, and what they leave open is
//! suggested from what the subject says of itself.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use dialoguer::{Confirm, Input, Select};
use indexmap::IndexMap;
use serde_json::Value;

use crate::adapter::{self, Adapter};
use crate::cli::author_args::Init;
use crate::cli::{Bundled, Exit, Failure, smoke as told, suite};
use crate::draft::{self, Arguments, Draft};
use crate::evidence::Evidence;
use crate::runner::RunContext;
use crate::smoke::{self, Outcome};
use crate::yaml;

/// Runs the command.
pub fn main(bundled: &Bundled, args: &Init) -> Result<Exit, Failure> {
    let context = suite::context(bundled)?;
    suite::watch_interrupts(&context.interrupt);
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let init = Session {
        args,
        context: &context,
        asks,
    };
    init.run()
}

/// One run of the command.
struct Session<'a> {
    args: &'a Init,
    context: &'a RunContext,
    /// A person is there to be asked.
    asks: bool,
}

impl Session<'_> {
    fn run(&self) -> Result<Exit, Failure> {
        let mut draft = self.begin()?;
        let out = self.out(&draft)?;
        let folder = std::path::absolute(&out).map_err(Failure::harness)?;
        let folder = folder.parent().unwrap_or(Path::new("/")).to_owned();
        draft.command = draft
            .command
            .iter()
            .map(|word| portable(word, &folder))
            .collect();
        draft
            .arguments
            .insert("task".to_owned(), "{{ task }}".into());
        draft.observations.insert(
            "answer".to_owned(),
            adapter::Observation::Pointer("text".to_owned()),
        );
        let listing = self.probe(&draft, &out)?;
        self.starts(&listing)?;
        let tools = smoke::tools(&listing).cloned().unwrap_or_default();
        self.choose_tool(&mut draft, &tools)?;
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == draft.tool.as_str());
        self.choose_arguments(&mut draft, tool)?;
        let calls = self.probe(&draft, &out)?;
        observe(&mut draft, &calls, tool);
        self.save(&draft, &out)
    }

    /// What can be known before anything runs.
    fn begin(&self) -> Result<Draft, Failure> {
        let args = self.args;
        let command = match &args.command {
            Some(command) => command.clone(),
            None if self.asks => self.ask(
                "Which command starts the delegator? (`node server.js`; for pi-extension the extension's file)",
                None,
            )?,
            None => {
                return Err(Failure::usage(
                    "`init` needs `--command \"PROGRAM ARGUMENT…\"`: what starts the delegator (or the extension's file, with `--transport pi-extension`)",
                ));
            }
        };
        let command = shell_words::split(&command)
            .map_err(|error| Failure::usage(format!("`--command {command}`: {error}")))?;
        if command.is_empty() {
            return Err(Failure::usage(
                "`--command` is empty; it needs at least a program",
            ));
        }
        let suggested = name_of(&command);
        let name = match &args.name {
            Some(name) => name.clone(),
            None if self.asks => self.ask("What is the adapter to be called?", Some(suggested))?,
            None => suggested,
        };
        let mut env = IndexMap::new();
        for pair in &args.env {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Failure::usage(format!("`--env {pair}` has no `=`; it is written `NAME=VALUE`, such as `PI_BINARY={{{{ child }}}}`"))
            })?;
            env.insert(name.to_owned(), value.to_owned());
        }
        Ok(Draft {
            name,
            transport: args.transport.word().to_owned(),
            command,
            env,
            child_mode: "json".to_owned(),
            tool: args.tool.clone().unwrap_or_else(|| "delegate".to_owned()),
            ..Draft::default()
        })
    }

    /// Where the file goes.
    fn out(&self, draft: &Draft) -> Result<PathBuf, Failure> {
        let default = PathBuf::from(format!("{}.yaml", draft.name));
        let out = self.args.out.clone().unwrap_or(default);
        if !out.exists() || self.args.force {
            return Ok(out);
        }
        let there = format!("{} is already there", out.display());
        let over = self.asks
            && Confirm::new()
                .with_prompt(format!("{there}. Overwrite it?"))
                .default(false)
                .interact()
                .map_err(asked)?;
        if over {
            return Ok(out);
        }
        Err(Failure::usage(format!(
            "{there}; `--force` overwrites it, `--out FILE` writes another"
        )))
    }

    /// Runs the draft as it is.
    fn probe(&self, draft: &Draft, out: &Path) -> Result<Evidence, Failure> {
        let adapter = parse(draft, out)?;
        told::probe(&adapter, self.context, self.args.patience.0).map(|(evidence, _)| evidence)
    }

    /// A subject that does not get through the handshake can be asked nothing.
    fn starts(&self, evidence: &Evidence) -> Result<(), Failure> {
        let findings = smoke::look(evidence);
        match findings
            .iter()
            .find(|finding| finding.probe == "starts")
            .map(|finding| &finding.outcome)
        {
            Some(Outcome::Wrong(faults)) => Err(Failure {
                message: format!(
                    "nothing was written: {}",
                    faults
                        .iter()
                        .map(|fault| fault.message.clone())
                        .collect::<Vec<_>>()
                        .join("; ")
                ),
                exit: Exit::Failures,
            }),
            _ => Ok(()),
        }
    }

    fn choose_tool(&self, draft: &mut Draft, tools: &[Value]) -> Result<(), Failure> {
        let names = draft::tools(tools);
        if names.is_empty() {
            // A transport without a list: what was said counts.
            return Ok(());
        }
        if let Some(tool) = &self.args.tool {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            if !known.contains(&tool.as_str()) {
                return Err(Failure::usage(format!(
                    "the subject has no tool `{tool}`; {}",
                    yaml::suggestion(tool, &known)
                )));
            }
            return Ok(());
        }
        let at = if self.asks && names.len() > 1 {
            Select::new()
                .with_prompt("Which tool starts a child?")
                .items(&names)
                .default(0)
                .interact()
                .map_err(asked)?
        } else {
            0
        };
        draft.tool.clone_from(&names[at]);
        Ok(())
    }

    fn choose_arguments(&self, draft: &mut Draft, tool: Option<&Value>) -> Result<(), Failure> {
        let nothing = Value::Null;
        let schema = tool.and_then(smoke::schema_of).unwrap_or(&nothing);
        let candidates = draft::task_arguments(schema);
        let task = match (&self.args.task_argument, &candidates[..]) {
            (Some(task), _) => task.clone(),
            (None, [_, _, ..]) if self.asks => {
                let at = Select::new()
                    .with_prompt("Which of its arguments is the task?")
                    .items(&candidates)
                    .default(0)
                    .interact()
                    .map_err(asked)?;
                candidates[at].clone()
            }
            (None, [first, ..]) => first.clone(),
            (None, []) if tool.is_none() => "task".to_owned(),
            (None, []) => {
                return Err(Failure::usage(format!(
                    "no argument of the tool `{}` takes a text; `--task-argument NAME` says which one is the task, `--tool NAME` takes another tool",
                    draft.tool
                )));
            }
        };
        let mut given = IndexMap::new();
        for pair in &self.args.argument {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Failure::usage(format!(
                    "`--argument {pair}` has no `=`; it is written `NAME=VALUE`"
                ))
            })?;
            given.insert(name.to_owned(), value_of(value));
        }
        let mut all = draft::arguments(schema, &task, &given);
        for argument in std::mem::take(&mut all.unfilled) {
            let about = if argument.about.is_empty() {
                String::new()
            } else {
                format!(": {}", argument.about)
            };
            if !self.asks {
                return Err(Failure::usage(format!(
                    "the tool `{}` requires the argument `{}` ({}{about}), which nothing fills; `--argument {}=VALUE` does",
                    draft.tool, argument.name, argument.kind, argument.name
                )));
            }
            let value = self.ask(
                &format!(
                    "What is `{}` to be? ({}{about})",
                    argument.name, argument.kind
                ),
                None,
            )?;
            all.filled.insert(argument.name, value_of(&value));
        }
        let Arguments {
            filled,
            left_out,
            profiles,
            ..
        } = all;
        draft.arguments = filled;
        draft.left_out = left_out;
        draft.profiles = profiles;
        Ok(())
    }

    /// Writes the file, reads it again, and looks whether it is right.
    fn save(&self, draft: &Draft, out: &Path) -> Result<Exit, Failure> {
        let adapter = parse(draft, out)?;
        std::fs::write(out, draft.file())
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", out.display())))?;
        let (_, findings) = told::probe(&adapter, self.context, self.args.patience.0)?;
        let out = out.display();
        anstream::print!("{}", told::told(&findings));
        anstream::println!("\n{out} is written: {}", told::verdict(&findings));
        if told::exit(&findings) == Exit::AsExpected {
            anstream::println!("next: pi-conform run --adapter {out}");
        } else {
            anstream::println!("next: put it right, then pi-conform smoke --adapter {out}");
        }
        Ok(told::exit(&findings))
    }

    fn ask(&self, prompt: &str, default: Option<String>) -> Result<String, Failure> {
        let input = Input::<String>::new().with_prompt(prompt);
        let input = match default {
            Some(default) => input.default(default),
            None => input,
        };
        input.interact_text().map_err(asked)
    }
}

/// A question that could not be asked, or was not answered.
fn asked(error: dialoguer::Error) -> Failure {
    Failure::usage(format!("nothing was written: {error}"))
}

/// The draft as an adapter; its file's place is that of the file to be.
fn parse(draft: &Draft, out: &Path) -> Result<Adapter, Failure> {
    suite::adapter_text(&out.to_string_lossy(), &draft.file())
}

/// What the calls showed.
fn observe(draft: &mut Draft, evidence: &Evidence, tool: Option<&Value>) {
    if let Some(mode) = smoke::mode(evidence) {
        draft.child_mode = mode.to_owned();
        draft.mode_seen = true;
    }
    let (success, failures) = smoke::results(evidence);
    let reached = draft.mode_seen;
    let mut found = smoke::likely(success.filter(|_| reached), &failures);
    if !found.contains_key("answer") || !found.contains_key("ok") {
        let of_schema = tool.map(draft::of_schema).unwrap_or_default();
        for (name, observation) in of_schema {
            found.entry(name).or_insert(observation);
        }
    }
    // Something must stand there to be put right.
    let text = || adapter::Observation::Pointer("text".to_owned());
    found.entry("answer".to_owned()).or_insert_with(text);
    found.entry("ok".to_owned()).or_insert_with(smoke::by_mark);
    draft.observations = found;
}

/// JSON where it is JSON, else a text.
fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// A name out of a command: its last word that names a file, without folder and ending.
fn name_of(command: &[String]) -> String {
    let named = command
        .iter()
        .rev()
        .find(|word| !word.starts_with('-') && !word.contains('='));
    let stem = named
        .map(Path::new)
        .and_then(Path::file_stem)
        .unwrap_or_default();
    let stem = stem.to_string_lossy();
    let name: String = stem
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() {
        "my-delegator".to_owned()
    } else {
        name.to_owned()
    }
}

/// A word of a command that is a file, as the adapter finds it from wherever it runs: relative to the adapter's own folder
/// where it lies below that, else whole.
fn portable(word: &str, folder: &Path) -> String {
    let path = Path::new(word);
    if path.is_absolute() || !path.exists() || !word.contains(['/', '.']) {
        return word.to_owned();
    }
    let Ok(whole) = std::path::absolute(path) else {
        return word.to_owned();
    };
    match whole.strip_prefix(folder) {
        Ok(below) => format!("{{{{ here }}}}/{}", below.display()),
        Err(_) => whole.to_string_lossy().into_owned(),
    }
}
