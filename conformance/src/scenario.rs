//! Scenarios: the schema, and loading them with axes expanded.
mod planned;
mod schema;
pub use planned::Planned;
pub use schema::*;
