//! A recording, as it lies in `scenarios/traces`.

use std::path::PathBuf;

use serde_json::Value;

/// What the recorder saw or did, in its order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Lines written to standard input by one write.
    Stdin(Vec<String>),
    Stdout(String),
    Stderr(String),
    Close,
    Signal(String),
    Exit {
        code: Option<i64>,
        signal: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct Trace {
    pub case: String,
    pub argv: Vec<String>,
    /// With the time in milliseconds.
    pub events: Vec<(f64, Event)>,
}

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios/traces")
}

impl Trace {
    /// All recordings of a flavour, by name.
    pub fn all(flavour: &str) -> Vec<Self> {
        let mut names: Vec<String> = std::fs::read_dir(folder().join(flavour))
            .unwrap()
            .filter_map(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .into_string()
                    .unwrap()
                    .strip_suffix(".jsonl")
                    .map(str::to_owned)
            })
            .collect();
        names.sort();
        assert!(names.len() > 170, "{} recordings of {flavour}", names.len());
        names.iter().map(|name| Self::load(flavour, name)).collect()
    }

    pub fn load(flavour: &str, case: &str) -> Self {
        let file = folder().join(flavour).join(format!("{case}.jsonl"));
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut trace = Self {
            case: case.to_owned(),
            argv: Vec::new(),
            events: Vec::new(),
        };
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            let data = || entry["data"].as_str().unwrap_or_default().to_owned();
            let time = entry["t_ms"].as_f64().unwrap_or(0.0);
            let event = match entry["stream"].as_str().unwrap() {
                "meta" => {
                    trace.argv = serde_json::from_value(entry["argv"].clone()).unwrap();
                    continue;
                }
                "stdin" => {
                    let lines: Vec<String> = data().split('\n').map(str::to_owned).collect();
                    // One write, or two so close that Pi reads them at once.
                    if let Some((before, Event::Stdin(earlier))) = trace.events.last_mut()
                        && time - *before < 0.3
                    {
                        earlier.extend(lines);
                        continue;
                    }
                    Event::Stdin(lines)
                }
                "stdout" => Event::Stdout(data()),
                "stderr" => Event::Stderr(data()),
                "signal" => Event::Signal(data().split(' ').next().unwrap_or_default().to_owned()),
                "exit" => Event::Exit {
                    code: entry["data"]["code"].as_i64(),
                    signal: entry["data"]["signal"].as_str().map(str::to_owned),
                },
                "note" if data() == "stdin: closed by the parent" => Event::Close,
                "note" => continue,
                other => panic!("{case}: stream {other}"),
            };
            trace.events.push((time, event));
        }
        trace
    }

    /// The records on standard output, each with the index of its event.
    pub fn stdout(&self) -> impl Iterator<Item = (usize, &str)> {
        self.events
            .iter()
            .enumerate()
            .filter_map(|(at, (_, event))| match event {
                Event::Stdout(line) => Some((at, line.as_str())),
                _ => None,
            })
    }

    /// The same recording with another line in one place.
    pub fn with_line(&self, at: usize, line: &str) -> Self {
        let mut other = self.clone();
        other.events[at].1 = Event::Stdout(line.to_owned());
        other
    }
}
