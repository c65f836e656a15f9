//! Which tool, which arguments, which observations: suggested from names and schemas.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::adapter::Observation;
use crate::smoke::{LIKELY, Likely, schema_of};
use crate::yaml;

/// Names that delegators give the argument with the task, the likeliest first.
pub const TASK: [&str; 12] = [
    "task",
    "prompt",
    "message",
    "instructions",
    "instruction",
    "query",
    "request",
    "input",
    "goal",
    "question",
    "text",
    "description",
];

/// Words in the names of tools that delegate.
const DELEGATES: [&str; 8] = [
    "delegate", "subagent", "agent", "spawn", "task", "run", "ask", "worker",
];

/// Arguments that mean something to scenarios: what they carry, and how they are named.
const CARRIED: [(&str, &[&str]); 3] = [
    (
        "profile",
        &[
            "profile",
            "agent",
            "role",
            "subagent",
            "subagent_type",
            "subagentType",
            "agent_type",
        ],
    ),
    (
        "cwd",
        &[
            "cwd",
            "workdir",
            "working_directory",
            "workingDirectory",
            "directory",
            "dir",
        ],
    ),
    ("model", &["model", "model_id", "modelId"]),
];

/// Names of tools, those that look most like delegating first. What takes no text cannot take a task.
pub fn tools(listed: &[Value]) -> Vec<String> {
    let mut scored: Vec<(usize, String)> = listed
        .iter()
        .filter_map(|tool| {
            let name = tool.get("name")?.as_str()?;
            let words = name.to_ascii_lowercase();
            let by_name = DELEGATES.iter().position(|word| words.contains(word));
            let takes = tool_takes_task(tool);
            let score =
                by_name.unwrap_or(DELEGATES.len()) + if takes { 0 } else { 2 * DELEGATES.len() };
            Some((score, name.to_owned()))
        })
        .collect();
    scored.sort_by_key(|(score, _)| *score);
    scored.into_iter().map(|(_, name)| name).collect()
}

fn tool_takes_task(tool: &Value) -> bool {
    schema_of(tool).is_some_and(|schema| !task_arguments(schema).is_empty())
}

fn properties(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.cloned().unwrap_or_default()
}

fn required(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn is_text(property: &Value) -> bool {
    match property.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        // A property that says nothing of its type takes a text as well.
        _ => property.get("enum").is_none() && property.get("const").is_none(),
    }
}

/// Arguments that may take the task, the likeliest first: by name, then whatever text is required, then any text.
pub fn task_arguments(schema: &Value) -> Vec<String> {
    let required = required(schema);
    let properties = properties(schema);
    let mut scored: Vec<(usize, &String)> = properties
        .iter()
        .filter(|(name, property)| {
            let carried = CARRIED
                .iter()
                .any(|(_, names)| names.contains(&name.as_str()));
            is_text(property) && property.get("enum").is_none() && !carried
        })
        .map(|(name, _)| {
            let by_name = TASK.iter().position(|word| word == name);
            let within = || {
                TASK.iter()
                    .position(|word| name.to_ascii_lowercase().contains(word))
            };
            let score = by_name
                .or_else(|| Some(within()? + TASK.len()))
                .unwrap_or(2 * TASK.len());
            (
                score
                    + if required.contains(name) {
                        0
                    } else {
                        TASK.len()
                    },
                name,
            )
        })
        .collect();
    scored.sort_by_key(|(score, _)| *score);
    scored.into_iter().map(|(_, name)| name.clone()).collect()
}

/// An argument that is required, and that nothing fills.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its type, as far as the schema tells.
    pub kind: String,
    /// What the schema says about it.
    pub about: String,
}

/// All arguments of a tool's call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments {
    /// Those that are filled.
    pub filled: IndexMap<String, Value>,
    /// Those that are required and that nothing fills.
    pub unfilled: Vec<Argument>,
    /// Those that are left out: name and type.
    pub left_out: Vec<(String, String)>,
    /// Agents or profiles that the schema names.
    pub profiles: Vec<String>,
}

/// Fills a tool's arguments: the task, what was given, what scenarios carry, and what a schema has a value for.
pub fn arguments(schema: &Value, task: &str, given: &IndexMap<String, Value>) -> Arguments {
    let required = required(schema);
    let mut all = Arguments::default();
    all.filled.insert(task.to_owned(), json!("{{ task }}"));
    let mut properties = properties(schema);
    for name in required.iter().chain(given.keys()) {
        // A name that has no schema of its own is an argument all the same.
        properties.entry(name.clone()).or_insert_with(|| json!({}));
    }
    for (name, property) in &properties {
        if name == task {
            continue;
        }
        let must = required.contains(name);
        if let Some(value) = given.get(name) {
            all.filled.insert(name.clone(), value.clone());
        } else if let Some((carries, _)) = CARRIED
            .iter()
            .find(|(_, names)| names.contains(&name.as_str()) && is_text_or_choice(property))
        {
            carried(&mut all, name, property, carries, must);
        } else if let Some(value) = own_value(property).filter(|_| must) {
            all.filled.insert(name.clone(), value);
        } else if must {
            all.unfilled.push(argument(name, property));
        } else {
            all.left_out.push((name.clone(), kind(property)));
        }
    }
    all
}

fn is_text_or_choice(property: &Value) -> bool {
    is_text(property) || property.get("enum").is_some()
}

/// An argument that scenarios may set. One that is required must have a value when a scenario sets none.
fn carried(all: &mut Arguments, name: &str, property: &Value, carries: &str, must: bool) {
    let choices = property.get("enum").and_then(Value::as_array);
    let choices: Vec<String> = choices
        .into_iter()
        .flatten()
        .filter_map(|choice| choice.as_str().map(str::to_owned))
        .collect();
    let default = property.get("default").and_then(Value::as_str);
    let template = match carries {
        "profile" if !choices.is_empty() => {
            all.profiles = choices;
            "{{ profile }}".to_owned()
        }
        "profile" if default.is_some() => {
            all.profiles = default.map(str::to_owned).into_iter().collect();
            "{{ profile }}".to_owned()
        }
        "cwd" if must => "{{ cwd or work }}".to_owned(),
        _ if must => match default
            .map(str::to_owned)
            .or_else(|| choices.first().cloned())
        {
            Some(value) => value,
            None => {
                all.unfilled.push(argument(name, property));
                return;
            }
        },
        carries => format!("{{{{ {carries} }}}}"),
    };
    all.filled.insert(name.to_owned(), Value::String(template));
}

/// A value that the schema itself gives.
fn own_value(property: &Value) -> Option<Value> {
    let choice = || property.get("enum")?.as_array()?.first().cloned();
    let switch = || (kind(property) == "boolean").then_some(Value::Bool(false));
    let given = property.get("default").or_else(|| property.get("const"));
    given.cloned().or_else(choice).or_else(switch)
}

fn argument(name: &str, property: &Value) -> Argument {
    let about = property.get("description").and_then(Value::as_str);
    Argument {
        name: name.to_owned(),
        kind: kind(property),
        about: about.unwrap_or_default().to_owned(),
    }
}

fn kind(property: &Value) -> String {
    match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Observations that a tool's output schema allows, for a delegator that gave no result to look at.
pub fn of_schema(tool: &Value) -> IndexMap<String, Observation> {
    let mut found = IndexMap::new();
    let Some(schema) = tool.get("outputSchema") else {
        return found;
    };
    let fields = properties(schema);
    let names = || fields.keys().map(String::as_str);
    let is = |name: &str, kind: &str| self::kind(&fields[name]) == kind;
    let ok =
        names().find(|name| ["ok", "success", "succeeded"].contains(name) && is(name, "boolean"));
    let answer = ["answer", "output", "result", "response", "text"];
    let answer = answer
        .into_iter()
        .find(|name| fields.contains_key(*name))
        .or_else(|| yaml::nearest("answer", names()));
    let mut put = |observation: &str, field: &str| {
        let pointer = format!("/structuredContent/{field}");
        found.insert(observation.to_owned(), Observation::Pointer(pointer));
    };
    if let Some(field) = ok {
        put("ok", field);
    }
    if let Some(field) = answer {
        put("answer", field);
    }
    for Likely {
        observation,
        fields: words,
    } in LIKELY
    {
        if let Some(field) = words.iter().find(|word| fields.contains_key(**word)) {
            put(observation, field);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(properties: Value, required: Value) -> Value {
        json!({"type": "object", "properties": properties, "required": required})
    }

    #[test]
    fn the_tool_that_delegates_comes_first() {
        let text = json!({"x": {"type": "string"}});
        let listed = [
            json!({"name": "list_agents", "inputSchema": schema(json!({}), json!([]))}),
            json!({"name": "read_file", "inputSchema": schema(text.clone(), json!([]))}),
            json!({"name": "spawn_subagent", "inputSchema": schema(text, json!([]))}),
        ];
        assert_eq!(
            tools(&listed),
            ["spawn_subagent", "read_file", "list_agents"]
        );
    }

    #[test]
    fn the_task_is_the_text_that_is_named_so_or_else_the_one_that_is_required() {
        let text = json!({"type": "string"});
        for (properties, required, expected) in [
            (json!({"title": text, "task": text}), json!([]), "task"),
            (
                json!({"description": text, "prompt": text}),
                json!(["description", "prompt"]),
                "prompt",
            ),
            (json!({"a": text, "b": text}), json!(["b"]), "b"),
            (
                json!({"count": {"type": "integer"}, "user_message": text}),
                json!(["count"]),
                "user_message",
            ),
            (
                json!({"agent": text, "model": text, "what": text}),
                json!(["agent"]),
                "what",
            ),
        ] {
            let found = task_arguments(&schema(properties.clone(), required));
            assert_eq!(
                found.first().map(String::as_str),
                Some(expected),
                "{properties}"
            );
        }
        assert!(task_arguments(&schema(json!({"n": {"type": "integer"}}), json!([]))).is_empty());
    }

    #[test]
    fn arguments_are_filled_from_what_scenarios_carry_and_what_the_schema_gives() {
        let schema = schema(
            json!({
                "prompt": {"type": "string"},
                "agent": {"type": "string", "enum": ["scout", "worker"]},
                "cwd": {"type": "string"},
                "model": {"type": "string"},
                "background": {"type": "boolean"},
                "depth": {"enum": [1, 2]},
                "budget": {"type": "number", "description": "In dollars."},
                "timeout": {"type": ["integer", "null"]},
            }),
            json!(["prompt", "agent", "cwd", "background", "depth", "budget"]),
        );
        let all = arguments(&schema, "prompt", &IndexMap::new());
        let filled = json!({
            "prompt": "{{ task }}", "agent": "{{ profile }}", "cwd": "{{ cwd or work }}", "model": "{{ model }}",
            "background": false, "depth": 1,
        });
        assert_eq!(json!(all.filled), filled);
        assert_eq!(all.profiles, ["scout", "worker"]);
        assert_eq!(
            all.left_out,
            [("timeout".to_owned(), "integer or null".to_owned())]
        );
        let [budget] = &all.unfilled[..] else {
            panic!("{:?}", all.unfilled)
        };
        assert_eq!(
            (&*budget.name, &*budget.kind, &*budget.about),
            ("budget", "number", "In dollars.")
        );
        let given = IndexMap::from([("budget".to_owned(), json!(2.5))]);
        let all = arguments(&schema, "prompt", &given);
        assert!(all.unfilled.is_empty());
        assert_eq!(all.filled["budget"], json!(2.5));
    }
}
