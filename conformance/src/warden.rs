//! The warden: a process between the runner and one subject, so that nothing the subject starts is ever lost.
//!
//! It is a child subreaper: whatever flees from the subject's tree, by a session of its own or by a double fork, comes
//! home to it. It sees processes come and go, reaps orphans, knows the subject's true wait status, and at the end ends what is left.
//! It signals nothing but its own descendants and what carries its mark, each through a descriptor of the very
//! process (pidfd), never by a number that may have been given to somebody else.
//!
//! ```text
//!  runner ──orders──►┐ socket (the warden's fd 2)       subject's stdin, stdout: straight from the runner (fd 0, 1)
//!         ◄─reports──┘                                   subject's stderr: a pipe that the warden drains
//! ```
//!
//! When the socket closes, the runner has died: the warden ends everything, removes the scenario's folder and goes.

mod launch;
mod main;
mod protocol;
mod tree;

pub use main::main;
pub use protocol::{MARK, Order, Report, Start, encode_stderr};
