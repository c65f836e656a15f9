//! The options of the commands for whoever writes an adapter: `init`, `doctor`, `smoke`, `attach`.

use std::path::PathBuf;

use clap::ValueEnum;
use fake_pi::act::Span;

use super::args::{Style, Subject};

/// `init`.
#[derive(Debug, Clone, clap::Args)]
pub struct Init {
    /// The adapter's name; default: that of the command's file.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How the delegator is talked to.
    #[arg(long, value_enum, default_value_t)]
    pub transport: Spoken,
    /// What starts it, as one would type it: `node server.js`; with pi-extension, the extension's file.
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// The tool that starts a child; default: the one that looks most like it.
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Its argument that is the task; default: the one that looks most like it.
    #[arg(long, value_name = "NAME")]
    pub task_argument: Option<String>,
    /// A further argument of the tool. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub argument: Vec<String>,
    /// A variable for the delegator, such as `PI_BINARY={{ child }}`. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// The file to write; default: NAME.yaml.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite a file that is already there.
    #[arg(long)]
    pub force: bool,
    /// Ask nothing, also on a terminal.
    #[arg(short, long)]
    pub yes: bool,
    /// How long each fact is waited for, such as `500ms` or `5s`.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub patience: Span,
}

/// Transports that `init` can begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Spoken {
    /// An MCP server on standard input and output.
    #[default]
    Mcp,
    /// A command that takes JSON requests and prints JSON outcomes.
    Command,
    /// An extension of Pi.
    PiExtension,
}

impl Spoken {
    /// Its word in adapter files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Command => "command",
            Self::PiExtension => "pi-extension",
        }
    }
}

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

/// `doctor`.
#[derive(Debug, Clone, clap::Args)]
pub struct Doctor {
    /// For which subject.
    #[command(flatten)]
    pub subject: Subject,
    /// Lines for people, or one JSON object a line.
    #[arg(long, value_enum, default_value_t)]
    pub format: Style,
}

/// `attach`.
#[derive(Debug, Clone, clap::Args)]
pub struct Attach {
    /// The scenario, with its axis values where it has some.
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,
    /// Which subject.
    #[command(flatten)]
    pub subject: Subject,
    /// Scenario files or folders in place of those that the program carries.
    #[arg(long = "scenarios", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Keep the scenario's folder.
    #[arg(long)]
    pub keep: bool,
}
