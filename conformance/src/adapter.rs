//! Adapters: the schema, loading them, and mapping operations and observations.

mod figures;
mod load;
mod meaning;
mod schema;
mod template;

pub use figures::{Figure, Figures};
pub use load::{AdapterError, bundled_names, load, parse, parse_at};
pub use schema::*;
pub use template::{Scope, TemplateError};

pub use crate::check::extract::observation as observe;
