//! The options of the commands for whoever writes an adapter: `init`, `doctor`, `smoke`, `attach`.

use fake_pi::act::Span;

use super::args::{Style, Subject};

/// `smoke`.
#[derive(Debug, Clone, clap::Args)]
pub struct Smoke {
    /// Which subject.
    #[command(flatten)]
    pub subject: Subject,
    /// How long each fact is waited for, such as `500ms` or `5s`.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub patience: Span,
    /// Lines for people, or one JSON object a line.
    #[arg(long, value_enum, default_value_t)]
    pub format: Style,
}
