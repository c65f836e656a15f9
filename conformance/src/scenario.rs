//! Scenarios: the schema, and loading them with axes expanded.
mod schema;
pub use schema::*;
