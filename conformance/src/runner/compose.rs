//! A call as a scenario asks for it, made into what goes to the subject and what the evidence shows of it.

use super::host::Outgoing;
use super::story::FIRST;
use super::task;
use crate::adapter::{Adapter, Scope};
use crate::evidence::What;
use crate::scenario::Spawn;

/// The word by which a call is known to its child.
pub fn word(id: u64) -> String {
    format!("kit-call-{id}")
}

/// Composes a call.
///
/// # Errors
/// When the adapter has no such operation, or a template of it cannot be filled.
pub fn call(
    adapter: &Adapter,
    scope: &Scope,
    spawn: &Spawn,
    name: &str,
    id: u64,
) -> Result<(Outgoing, What), String> {
    let Some(operation) = adapter.operations.get("spawn") else {
        return Err("the adapter has no operation `spawn`".to_owned());
    };
    let word = word(id);
    let task = task::text(spawn, &word);
    let model = task::model(spawn)?;
    let profile = spawn
        .profile
        .clone()
        .or_else(|| adapter.profiles.first().cloned());
    let scope = scope
        .clone()
        .with("task", task.clone().into())
        .with("profile", profile.into())
        .with("cwd", spawn.cwd.clone().into())
        .with("model", model)
        .with("call", name.into());
    let mut arguments = scope
        .arguments(operation)
        .map_err(|error| error.to_string())?;
    for (argument, value) in &spawn.args {
        if value.is_null() {
            arguments.shift_remove(argument);
        } else {
            arguments.insert(argument.clone(), value.clone());
        }
    }
    let (task_sha256, task_bytes) = task::digest(task.as_deref().unwrap_or_default());
    let sent = What::CallSent {
        call: name.to_owned(),
        subject: spawn.on.clone().unwrap_or_else(|| FIRST.to_owned()),
        id,
        child: spawn.child.clone(),
        word,
        tool: operation.tool.clone(),
        arguments: task::shortened(&arguments),
        task_sha256,
        task_bytes,
    };
    let outgoing = Outgoing {
        call: name.to_owned(),
        id,
        tool: operation.tool.clone(),
        arguments,
        aborted: spawn.aborted,
    };
    Ok((outgoing, sent))
}
