//! What is seen of a call.

use serde_json::{Value, json};

use crate::check::children;
use crate::check::extract;
use crate::check::sight::{Look, Sight, Witness, texts};
use crate::check::world::{Call, World};

/// Looks at one call, or with `each` at all whose names start with `name`.
pub fn observe(world: &World<'_>, name: &str, each: bool, look: &str) -> Vec<Sight> {
    let calls: Vec<&Call<'_>> = world
        .calls
        .values()
        .filter(|call| {
            if each {
                call.name.starts_with(name)
            } else {
                call.name == name
            }
        })
        .collect();
    if calls.is_empty() {
        let label = format!("{name}.{look}");
        return vec![Sight::nothing(
            label,
            Witness::Runner,
            format!("call `{name}` was never sent"),
        )];
    }
    calls
        .into_iter()
        .flat_map(|call| one(world, call, look))
        .collect()
}

fn one(world: &World<'_>, call: &Call<'_>, look: &str) -> Vec<Sight> {
    if let Some(look) = look.strip_prefix("child.") {
        let launches = world.launches_for(call);
        if launches.is_empty() {
            let why = format!("no child served call `{}`", call.name);
            return vec![Sight::nothing(
                format!("{}.child.{look}", call.name),
                Witness::Journal,
                why,
            )];
        }
        let label = format!("{}.child", call.name);
        return launches
            .into_iter()
            .flat_map(|launch| children::one(world, launch, &label, look))
            .collect();
    }
    let (witness, look_at) = match look {
        "settled" => (Witness::Runner, Look::is(call.settled().is_some())),
        "settlements" => (Witness::Claims, Look::is(call.responses.len())),
        "duration" => (Witness::Runner, duration(call)),
        "word" => (Witness::Runner, Look::is(call.word)),
        "aborted" => (Witness::Runner, Look::is(call.aborted.is_some())),
        "task" => (
            Witness::Runner,
            Look::is(json!({"sha256": call.task.0, "bytes": call.task.1})),
        ),
        "updates" => (
            Witness::Claims,
            if_heard(call, Look::is(call.updates.len())),
        ),
        "updates.text" => {
            let all = call
                .updates
                .iter()
                .filter_map(|(_, params)| params.get("message")?.as_str());
            (Witness::Claims, if_heard(call, Look::Is(texts(all))))
        }
        "updates.bytes" => {
            let largest = call
                .updates
                .iter()
                .map(|(_, params)| params.to_string().len())
                .max();
            (
                Witness::Claims,
                if_heard(call, Look::is(largest.unwrap_or(0))),
            )
        }
        "updates.late" => (Witness::Claims, late_updates(call)),
        "launches" => (Witness::Journal, launches(world, call)),
        _ => (Witness::Claims, claimed(world, call, look)),
    };
    vec![Sight::new(
        format!("{}.{look}", call.name),
        witness,
        look_at,
    )]
}

fn unsettled(call: &Call<'_>) -> Look {
    Look::Nothing(format!("call `{}` never settled", call.name))
}

fn duration(call: &Call<'_>) -> Look {
    match call.settled() {
        Some(settled) => Look::is(settled.saturating_sub(call.sent) as f64 / 1e6),
        None => unsettled(call),
    }
}

/// Updates are judged once the call has settled, or when there are some.
fn if_heard(call: &Call<'_>, look: Look) -> Look {
    if call.settled().is_some() || !call.updates.is_empty() {
        look
    } else {
        unsettled(call)
    }
}

fn late_updates(call: &Call<'_>) -> Look {
    match call.settled() {
        Some(settled) => Look::is(call.updates.iter().filter(|(t, _)| *t > settled).count()),
        None => unsettled(call),
    }
}

/// How many children served the call. None is a finding only when the call has settled or the subject has ended:
/// before that one might still come.
fn launches(world: &World<'_>, call: &Call<'_>) -> Look {
    let count = world.launches_for(call).len();
    if count > 0 || call.settled().is_some() || world.subject_ended() {
        Look::is(count)
    } else {
        unsettled(call)
    }
}

fn claimed(world: &World<'_>, call: &Call<'_>, look: &str) -> Look {
    let Some((_, result, error)) = call.responses.first() else {
        return unsettled(call);
    };
    match look {
        "protocol-error" => {
            return match error {
                None => Look::Absent,
                Some(error) => Look::of(Some(
                    error.get("message").cloned().unwrap_or((*error).clone()),
                )),
            };
        }
        "is-error" => {
            let claimed = result
                .and_then(|result| result.get("isError"))
                .and_then(Value::as_bool);
            return Look::is(error.is_some() || claimed.unwrap_or(false));
        }
        "text" => {
            return match (result, error) {
                (Some(result), _) => Look::is(extract::text(result)),
                (None, Some(error)) => Look::of(error.get("message").cloned()),
                (None, None) => Look::Absent,
            };
        }
        "result" => return Look::of(result.cloned()),
        "details" => {
            return Look::of(
                result
                    .and_then(|result| result.get("structuredContent"))
                    .cloned(),
            );
        }
        _ => {}
    }
    let adapter = &world.evidence.header.adapter;
    if !extract::declared(adapter, look) {
        return Look::Undeclared(format!(
            "the adapter `{}` declares no observation `{look}`",
            adapter.adapter
        ));
    }
    match (result, look) {
        (Some(result), _) => Look::of(extract::observation(adapter, look, result)),
        // A call that was refused on the protocol's own level is no success, whatever else it lacks.
        (None, "ok") => Look::is(false),
        (None, "outcome") => Look::is("refused"),
        (None, _) => Look::Absent,
    }
}
