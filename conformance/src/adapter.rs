//! Adapters: the schema, and loading them.
mod schema;
pub use schema::*;
