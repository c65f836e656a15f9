//! Whether the arguments that an adapter makes fit what the tools ask for.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Value};

use super::{Fault, Outcome, SUCCESS, Seen};
use crate::adapter::Operation;
use crate::check::words::{short, show};
use crate::evidence::What;
use crate::yaml;

/// The arguments fit the tools' input schemas.
pub fn fit(seen: &Seen<'_>) -> Outcome {
    let Some(tools) = seen.tools else {
        return Outcome::Open("the tools were not listed".to_owned());
    };
    let mut faults = Vec::new();
    let mut looked = 0;
    for (name, operation) in &seen.adapter.operations {
        if name == "spawn" && !carries_task(operation) {
            let message = format!(
                "operation `{name}`: no argument has `{{{{ task }}}}`, so the child would not know what to do"
            );
            faults.push(Fault::new(message));
        }
        let by_name =
            |tool: &&Value| tool.get("name").and_then(Value::as_str) == Some(&operation.tool);
        let Some(schema) = tools.iter().find(by_name).and_then(schema_of) else {
            continue;
        };
        looked += 1;
        let sent = if name == "spawn" { sent(seen) } else { None };
        faults.extend(operation_fits(name, operation, schema, sent));
    }
    match (faults.is_empty(), looked) {
        (false, _) => faults.into(),
        (true, 0) => Outcome::Open("no mapped tool has an input schema".to_owned()),
        (true, 1) => Outcome::Right("they fit".to_owned()),
        (true, n) => Outcome::Right(format!("those of {n} operations fit")),
    }
}

/// Where a tool says what it takes: MCP's name for it, then Pi's.
pub fn schema_of(tool: &Value) -> Option<&Value> {
    tool.get("inputSchema").or_else(|| tool.get("parameters"))
}

fn carries_task(operation: &Operation) -> bool {
    let all = serde_json::to_string(&operation.arguments).unwrap_or_default();
    all.split("{{").skip(1).any(|rest| {
        let inside = rest.split("}}").next().unwrap_or_default();
        inside
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| word == "task")
    })
}

/// What the success was called with.
fn sent<'a>(seen: &Seen<'a>) -> Option<&'a Value> {
    let sent = seen.world.first(|what| match what {
        What::CallSent {
            call, arguments, ..
        } if call == SUCCESS => Some(arguments),
        _ => None,
    });
    sent.map(|(_, arguments)| arguments)
}

fn operation_fits(
    name: &str,
    operation: &Operation,
    schema: &Value,
    sent: Option<&Value>,
) -> Vec<Fault> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.unwrap_or(&empty);
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let free: Vec<&str> = known
        .iter()
        .copied()
        .filter(|known| !operation.arguments.contains_key(*known))
        .collect();
    let mut faults = Vec::new();
    let open = schema
        .get("additionalProperties")
        .is_some_and(|more| *more != Value::Bool(false));
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut unknown: Vec<&str> = Vec::new();
    for argument in operation.arguments.keys() {
        // A schema without properties says nothing about them.
        if known.contains(&argument.as_str()) || known.is_empty() || open {
            continue;
        }
        unknown.push(argument);
        let fault = Fault::new(format!(
            "operation `{name}`: the tool `{}` has no argument `{argument}`",
            operation.tool
        ));
        let near = yaml::nearest(argument, free.iter().copied());
        faults.push(match near {
            Some(near) => fault.help(format!("nearest is `{near}`")),
            None => fault.help(format!("it takes {}", known.join(", "))),
        });
    }
    for argument in required {
        if operation.arguments.contains_key(argument) {
            continue;
        }
        let of = properties.get(argument).map_or(String::new(), kind);
        let fault = Fault::new(format!(
            "operation `{name}`: argument `{argument}`{of} is required by the schema of `{}`, but the template does not give it",
            operation.tool
        ));
        faults.push(match yaml::nearest(argument, unknown.iter().copied()) {
            Some(near) => fault.help(format!("nearest in the template is `{near}`")),
            None => fault,
        });
    }
    if let Some(sent) = sent {
        faults.extend(values_fit(name, operation, schema, sent));
    }
    faults
}

/// ` (string)`, as far as the schema tells.
fn kind(property: &Value) -> String {
    let kind = property.get("type").and_then(Value::as_str);
    kind.map_or(String::new(), |kind| format!(" ({kind})"))
}

/// What a call really carried, against the schema. What is missing or unknown was told already, in the template's terms.
fn values_fit(name: &str, operation: &Operation, schema: &Value, sent: &Value) -> Vec<Fault> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => {
            return vec![Fault::new(format!(
                "the input schema of `{}` is no JSON schema: {error}",
                operation.tool
            ))];
        }
    };
    let mut faults = Vec::new();
    for error in validator.iter_errors(sent) {
        let place = error.instance_path().to_string();
        let argument = place.trim_start_matches('/').to_owned();
        let what = match error.kind() {
            ValidationErrorKind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                if operation.arguments.contains_key(property) && argument.is_empty() {
                    format!("argument `{property}` is required, and its template comes out empty")
                } else {
                    continue;
                }
            }
            ValidationErrorKind::AdditionalProperties { .. } if argument.is_empty() => continue,
            ValidationErrorKind::Type { kind } => {
                let kind = match kind {
                    TypeKind::Single(kind) => kind.to_string(),
                    TypeKind::Multiple(kinds) => {
                        let kinds: Vec<String> =
                            kinds.iter().map(|kind| kind.to_string()).collect();
                        kinds.join(" or ")
                    }
                };
                format!(
                    "argument `{argument}` is {}, but the schema wants {kind}",
                    short(&show(error.instance()))
                )
            }
            _ => format!("argument `{argument}`: {}", short(&error.to_string())),
        };
        faults.push(Fault::new(format!("operation `{name}`: {what}")));
    }
    faults
}
