//! A Pi extension as subject: a real Pi is the parent, the runner plays its user and its model, and fake-pi is its child.
//!
//! ```text
//!  step ─► prompt ─► parent Pi ─► model (stub provider) ─► the step's tool call ─► extension ─► fake-pi
//!                        └── events: tool started, updated, ended; settled ─► recorder
//! ```
//!
//! interpose.rs  where the parent and its children come from
//! model.rs      what the model answers, what its requests show      ← pure
//! parent.rs     the conversation with the parent
//! session.rs    calls under way and what each event means            ← pure
//! tolerant.rs   JSON as a parent writes it                           ← pure

mod interpose;
mod model;
mod parent;
mod session;
mod tolerant;

pub use interpose::{LOADER_CACHE, Parent};
pub use parent::{Model, PiHost};
