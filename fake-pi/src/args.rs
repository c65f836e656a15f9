//! Pi's command line, in both flavours (`scenarios/traces/README.md` tells where they differ).

use crate::act::Flavour;
use crate::pi::Mode;

/// A command line that Pi accepts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Args {
    /// `--mode`, or text when there is none.
    pub mode: Mode,
    /// `--session`.
    pub session: Option<String>,
    /// `--session-dir`.
    pub session_dir: Option<String>,
    /// `--no-session`.
    pub no_session: bool,
    /// `--model`, with `--provider` before it when that was given apart.
    pub model: Option<String>,
    /// `--thinking`, when it is a level that exists.
    pub thinking: Option<String>,
    /// `--tools`.
    pub tools: Option<Vec<String>>,
    /// `--system-prompt`, a path not yet read.
    pub system_prompt: Option<String>,
    /// Messages in order.
    pub messages: Vec<String>,
    /// `@FILE` arguments, without the `@`.
    pub files: Vec<String>,
    /// Warnings for standard error.
    pub warnings: Vec<String>,
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A session.
    Run(Box<Args>),
    /// `--version`: this text, on standard error in 0.73.1.
    Version(&'static str),
    /// `--help`.
    Help,
    /// Pi refuses it: this on standard error, exit code 1.
    Refused(String),
}

const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Flags without a value that only change what a fake does not have.
const QUIET: [&str; 19] = [
    "--print",
    "-p",
    "--offline",
    "--no-extensions",
    "-ne",
    "--no-skills",
    "-ns",
    "--no-prompt-templates",
    "-np",
    "--no-context-files",
    "-nc",
    "--no-themes",
    "--continue",
    "-c",
    "--resume",
    "-r",
    "--verbose",
    "--no-builtin-tools",
    "-nbt",
];

/// The same, only in 1.6.0.
const QUIET_NEWER: [&str; 5] = ["--no-mcp", "--approve", "-a", "--no-approve", "-na"];

/// Flags with a value that a fake does not use.
const VALUED: [&str; 12] = [
    "--extension",
    "-e",
    "--skill",
    "--prompt-template",
    "--theme",
    "--append-system-prompt",
    "--api-key",
    "--models",
    "--fork",
    "--export",
    "--list-models",
    "--session-control",
];

/// The same, only in 1.6.0.
const VALUED_NEWER: [&str; 7] = [
    "--session-id",
    "--name",
    "-n",
    "--exclude-tools",
    "-xt",
    "--tui-mode",
    "--use-theme",
];

/// Reads arguments (without the program's name).
pub fn parse(arguments: &[String], flavour: Flavour) -> Asked {
    let newer = flavour == Flavour::V1_6_0;
    let levels = if newer { &LEVELS[..] } else { &LEVELS[..6] };
    let mut args = Args {
        mode: Mode::Text,
        ..Args::default()
    };
    let mut provider = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let flag = argument.as_str();
        if flag == "--" && newer {
            args.messages.extend(rest.by_ref().cloned());
        } else if matches!(flag, "--version" | "-v") {
            return Asked::Version(if newer { "1.6.0" } else { "0.73.1" });
        } else if matches!(flag, "--help" | "-h") {
            return Asked::Help;
        } else if QUIET.contains(&flag) || (newer && QUIET_NEWER.contains(&flag)) {
        } else if matches!(flag, "--no-tools" | "-nt") {
            args.tools = Some(Vec::new());
        } else if flag == "--no-session" {
            args.no_session = true;
        } else if let Some(file) = flag.strip_prefix('@') {
            args.files.push(file.to_owned());
        } else if !flag.starts_with('-') || flag == "-" {
            args.messages.push(argument.clone());
        } else {
            let known = is_valued(flag)
                || VALUED.contains(&flag)
                || (newer && VALUED_NEWER.contains(&flag));
            let Some(value) = rest.next().filter(|_| known) else {
                return Asked::Refused(format!("Error: Unknown option: {flag}"));
            };
            match flag {
                "--mode" => match value.as_str() {
                    "rpc" => args.mode = Mode::Rpc,
                    "json" => args.mode = Mode::Json,
                    "text" => args.mode = Mode::Text,
                    other if newer => {
                        return Asked::Refused(format!(
                            "Error: Invalid mode \"{other}\". Valid values: text, json, rpc"
                        ));
                    }
                    _ => {}
                },
                "--session" => args.session = Some(value.clone()),
                "--session-dir" => args.session_dir = Some(value.clone()),
                "--provider" => provider = Some(value.clone()),
                "--model" => args.model = Some(value.clone()),
                "--thinking" if levels.contains(&value.as_str()) => {
                    args.thinking = Some(value.clone())
                }
                "--thinking" => args.warnings.push(format!(
                    "Warning: Invalid thinking level \"{value}\". Valid values: {}",
                    levels.join(", ")
                )),
                "--tools" | "-t" => {
                    args.tools = Some(
                        value
                            .split(',')
                            .map(|tool| tool.trim().to_owned())
                            .collect(),
                    )
                }
                "--system-prompt" => args.system_prompt = Some(value.clone()),
                _ => {}
            }
        }
    }
    if let (Some(provider), Some(model)) = (provider, &mut args.model) {
        *model = format!("{provider}/{model}");
    }
    if args.mode == Mode::Rpc && !args.files.is_empty() {
        return Asked::Refused("Error: @file arguments are not supported in RPC mode".to_owned());
    }
    if let Some(id) = args
        .session
        .as_deref()
        .filter(|id| !id.contains(['/', '.']))
    {
        return Asked::Refused(format!("No session found matching '{id}'"));
    }
    Asked::Run(Box::new(args))
}

fn is_valued(flag: &str) -> bool {
    matches!(
        flag,
        "--mode"
            | "--session"
            | "--session-dir"
            | "--provider"
            | "--model"
            | "--thinking"
            | "--tools"
            | "-t"
            | "--system-prompt"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str, flavour: Flavour) -> Asked {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words, flavour)
    }

    #[test]
    fn the_command_line_of_a_delegator_is_taken() {
        for flavour in [Flavour::V1_6_0, Flavour::V0_73_1] {
            let line = "--mode rpc --session /s/a.jsonl --no-extensions --no-skills --no-prompt-templates --no-context-files --model stub/x --thinking off --tools read,bash --system-prompt hi";
            let Asked::Run(args) = parse_line(line, flavour) else {
                panic!()
            };
            assert_eq!(args.mode, Mode::Rpc);
            assert_eq!(args.model.as_deref(), Some("stub/x"));
            assert_eq!(args.tools, Some(vec!["read".to_owned(), "bash".to_owned()]));
        }
    }

    #[test]
    fn wrong_starts_are_refused_in_pis_words() {
        let newer = |line| parse_line(line, Flavour::V1_6_0);
        let refused = |text: &str| Asked::Refused(text.to_owned());
        assert_eq!(
            newer("--no-such-flag"),
            refused("Error: Unknown option: --no-such-flag")
        );
        assert_eq!(newer("-Z"), refused("Error: Unknown option: -Z"));
        assert_eq!(
            newer("--no-session --model"),
            refused("Error: Unknown option: --model")
        );
        assert_eq!(
            newer("--mode bogus"),
            refused("Error: Invalid mode \"bogus\". Valid values: text, json, rpc")
        );
        assert_eq!(
            newer("--mode rpc @note.txt"),
            refused("Error: @file arguments are not supported in RPC mode")
        );
        assert_eq!(
            newer("--session deadbeef"),
            refused("No session found matching 'deadbeef'")
        );
        assert_eq!(
            parse_line("--no-mcp", Flavour::V0_73_1),
            refused("Error: Unknown option: --no-mcp")
        );
        assert!(
            matches!(parse_line("--mode bogus", Flavour::V0_73_1), Asked::Run(args) if args.mode == Mode::Text)
        );
    }
}
