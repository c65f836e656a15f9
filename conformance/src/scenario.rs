//! Scenarios: the schema, loading, and expansion of axes.

mod axes;
mod load;
mod planned;
mod review;
mod schema;

pub use axes::AxesError;
pub use load::{LoadError, Loaded, embedded, expand, from_path, parse};
pub use planned::Planned;
pub use review::review;
pub use schema::*;
