//! Pi's behaviour on its wire, as a function: what comes in goes to [`Session::handle`], what goes out comes back.
//!
//! Nothing here reads a clock, a file or an environment. The player (or a test) brings lines of standard input, pieces of
//! model replies, results of tools, expired timers, signals; it gets records, text, wishes (run this tool, ask the model)
//! and the end. So the same inputs give the same records, and every recording of the real Pi can be replayed.
//!
//! ```text
//!            prompt                    begin                    tool calls
//!   idle ───────────► requested ───────────────► streaming ───────────────► tools
//!    ▲                  ▲   │  fails before it      │  stop, length,          │
//!    │                  │   │  begins               │  error, abort           │ all ended
//!    │                  │   ▼                       ▼                         │
//!    │                  └── next turn ◄── queued messages? ◄──────────────────┘
//!    │                                      │ none
//!    │                                      ▼
//!    │      settled                     run ends ──── transient error ───► retry wait
//!    ├───────────────────────────────────┤                                    │ timer
//!    │                                   └── window full ──► compacting       └──► requested
//!    └─────────────────────────────────────────────────────────┘
//! ```
//!
//! The event order is that of the recordings in `scenarios/traces`; `tests/fidelity.rs` holds it there.
//!
//! | file | subject |
//! |---|---|
//! | `session.rs` | the state machine: inputs, runs, turns, abort |
//! | `turn.rs` | an answer while it streams, and the tools that it calls |
//! | `recovery.rs` | retries and compaction |
//! | `command.rs` | the commands of RPC mode |
//! | `handlers.rs` | extensions at work |
//! | `print_mode.rs` | `--mode json` and text |
//! | `message.rs` `usage.rs` `tools.rs` `queue.rs` `entries.rs` | what records are made of |
//! | `provider.rs` `options.rs` `extension.rs` `ids.rs` | what comes from outside |
//! | `js.rs` `broken_json.rs` | JavaScript's JSON |

pub mod broken_json;
mod command;
mod entries;
pub mod extension;
mod handlers;
pub mod ids;
pub mod js;
mod message;
pub mod options;
mod print_mode;
pub mod provider;
mod queue;
mod recovery;
mod session;
pub mod tools;
mod turn;
pub mod usage;

pub use entries::iso;
pub use ids::{Counting, Ids};
pub use message::ToolCall;
pub use options::{Api, CompactionSettings, Cost, Mode, Model, Options, RetrySettings, ToolSpec};
pub use provider::{Failure, ModelPiece};
pub use session::{Ending, Input, Output, Purpose, Session, TimerId};
pub use tools::ToolResult;
pub use usage::Tokens;
