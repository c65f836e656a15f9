//! What a subject says about its tools.

use serde_json::Value;

use crate::check::sight::{Look, Sight, Witness, texts};
use crate::check::world::World;
use crate::evidence::What;

/// The tools of a listing: the one with this name, or the last for `tools`.
fn listing<'a>(world: &World<'a>, name: Option<&str>) -> Option<&'a Vec<Value>> {
    let mut listings = world
        .evidence
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Tools { name, tools } => Some((
                name.as_str(),
                tools.get("tools").unwrap_or(tools).as_array()?,
            )),
            _ => None,
        });
    match name {
        Some(name) => listings
            .find(|(its, _)| *its == name)
            .map(|(_, tools)| tools),
        None => listings.next_back().map(|(_, tools)| tools),
    }
}

/// Looks at a listing.
pub fn observe(world: &World<'_>, name: &str, look: &str) -> Sight {
    let label = format!("{name}.{look}");
    let found =
        listing(world, Some(name)).or_else(|| (name == "tools").then(|| listing(world, None))?);
    let Some(tools) = found else {
        return Sight::nothing(
            label,
            Witness::Claims,
            format!("the tools were not listed as `{name}`"),
        );
    };
    let look_at = match look {
        "count" => Look::is(tools.len()),
        "names" => Look::Is(texts(
            tools.iter().filter_map(|tool| tool.get("name")?.as_str()),
        )),
        _ => Look::Nothing(format!("`{look}` is nothing that can be seen of a listing")),
    };
    Sight::new(label, Witness::Claims, look_at)
}

/// Looks at the tool that `spawn` calls.
pub fn tool(world: &World<'_>, look: &str) -> Sight {
    let label = format!("tool.{look}");
    let Some(tools) = listing(world, None) else {
        return Sight::nothing(label, Witness::Claims, "the tools were not listed");
    };
    let spawn = world
        .evidence
        .header
        .adapter
        .operations
        .get("spawn")
        .map(|operation| operation.tool.as_str());
    let by_name = |tool: &&Value| tool.get("name").and_then(Value::as_str) == spawn;
    let Some(tool) = tools.iter().find(by_name) else {
        let why = format!(
            "the listing has no tool `{}`",
            spawn.unwrap_or("for `spawn`")
        );
        return Sight::nothing(label, Witness::Claims, why);
    };
    let schema = tool.get("inputSchema");
    let properties = schema
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    let look_at = match look {
        "name" | "description" => Look::of(tool.get(look).cloned()),
        "title" => {
            let annotated = || tool.get("annotations")?.get("title");
            Look::of(tool.get("title").or_else(annotated).cloned())
        }
        "text" => Look::is(tool.to_string()),
        "output" => Look::of(tool.get("outputSchema").cloned()),
        "properties" => Look::Is(texts(
            properties
                .into_iter()
                .flat_map(|map| map.keys().map(String::as_str)),
        )),
        "required" => {
            let required = schema.and_then(|schema| schema.get("required")).cloned();
            Look::Is(required.unwrap_or_else(|| Value::Array(Vec::new())))
        }
        _ => match look.strip_prefix("enum.") {
            Some(field) => {
                Look::of(properties.and_then(|map| enumeration(schema?, map.get(field)?)))
            }
            None => Look::Nothing(format!("`{look}` is nothing that can be seen of a tool")),
        },
    };
    Sight::new(label, Witness::Claims, look_at)
}

/// The values that a field may have, however the schema writes them: `enum`, `const`s in `oneOf` or `anyOf`, or
/// either behind a `$ref`.
fn enumeration(schema: &Value, field: &Value) -> Option<Value> {
    if let Some(values) = field.get("enum") {
        return Some(values.clone());
    }
    if let Some(pointer) = field.get("$ref").and_then(Value::as_str) {
        return enumeration(schema, schema.pointer(pointer.strip_prefix('#')?)?);
    }
    let choices = ["oneOf", "anyOf"]
        .into_iter()
        .find_map(|key| field.get(key)?.as_array())?;
    let constant = |choice: &Value| choice.get("const").cloned();
    let mut values: Vec<Value> = choices.iter().filter_map(constant).collect();
    for choice in choices {
        if let Some(Value::Array(more)) = enumeration(schema, choice) {
            values.extend(more);
        }
    }
    (!values.is_empty()).then_some(Value::Array(values))
}
