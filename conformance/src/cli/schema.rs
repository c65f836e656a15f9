//! `schema`: the formats as JSON schema, for editors and for readers of the files.

use schemars::schema_for;

use crate::cli::args::{Schema, SchemaOf};
use crate::cli::{Exit, Failure, session};

/// Runs the command.
pub fn main(args: &Schema) -> Result<Exit, Failure> {
    let schema = match args.of {
        SchemaOf::Script => schema_for!(fake_pi::act::Script),
        SchemaOf::Journal => schema_for!(fake_pi::journal::Entry),
        SchemaOf::Scenario => schema_for!(crate::scenario::Scenario),
        SchemaOf::Adapter => schema_for!(crate::adapter::Adapter),
        SchemaOf::Bundle => schema_for!(crate::evidence::Header),
        SchemaOf::Evidence => schema_for!(crate::evidence::Event),
        SchemaOf::Event => schema_for!(crate::report::Event),
        SchemaOf::Comparison => schema_for!(crate::compare::Comparison),
    };
    let mut text = serde_json::to_string_pretty(&schema).map_err(Failure::harness)?;
    text.push('\n');
    session::print(text.as_bytes())
}
