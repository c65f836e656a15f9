//! What holds of the simulation whatever comes in, in any order: the recordings show single paths, this shows that there
//! is nothing wild between them.

use std::collections::HashMap;

use fake_pi::act::{Flavour, Signal};
use fake_pi::pi::{
    Counting, Failure, Input, Mode, ModelPiece, Options, Output, Session, TimerId, Tokens,
    ToolResult, js,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Something that may come in. Commands get their ids when they are given.
#[derive(Debug, Clone)]
enum Given {
    Command(&'static str, Option<&'static str>),
    Reply(Vec<ModelPiece>),
    Piece(ModelPiece),
    ToolEnds(bool),
    Timer,
    Garbage(Vec<u8>),
}

fn pieces() -> impl Strategy<Value = ModelPiece> {
    prop_oneof![
        Just(ModelPiece::Begin),
        Just(ModelPiece::Id("r".to_owned())),
        "[a-z ]{0,6}".prop_map(ModelPiece::Text),
        "[a-z ]{0,6}".prop_map(ModelPiece::Thinking),
        Just(ModelPiece::ToolStart {
            id: "c1".to_owned(),
            name: "bash".to_owned()
        }),
        Just(ModelPiece::ToolArguments(
            r#"{"command":"true"}"#.to_owned()
        )),
        Just(ModelPiece::ToolArguments(r#"{"comm"#.to_owned())),
        prop_oneof![
            Just("stop"),
            Just("length"),
            Just("tool_calls"),
            Just("odd")
        ]
        .prop_map(|why| ModelPiece::Finish(why.to_owned())),
        (0..200_000_u64).prop_map(|input| ModelPiece::Tokens(Tokens {
            input,
            output: 5,
            ..Tokens::default()
        })),
        Just(ModelPiece::End),
        Just(ModelPiece::Fail(Failure::Reset)),
        Just(ModelPiece::Fail(Failure::Http(500, String::new()))),
    ]
}

fn given() -> impl Strategy<Value = Given> {
    let commands = [
        ("prompt", Some("do it")),
        ("steer", Some("change it")),
        ("follow_up", Some("then this")),
        ("abort", None),
        ("abort_retry", None),
        ("clear_queue", None),
        ("compact", None),
        ("get_state", None),
        ("get_session_stats", None),
        ("get_messages", None),
        ("frobnicate", None),
    ];
    prop_oneof![
        4 => prop::sample::select(commands.to_vec()).prop_map(|(name, text)| Given::Command(name, text)),
        2 => "[a-z ]{0,9}".prop_map(|text| Given::Reply(ModelPiece::answer("r", &text, None))),
        4 => pieces().prop_map(Given::Piece),
        2 => any::<bool>().prop_map(Given::ToolEnds),
        1 => Just(Given::Timer),
        1 => prop::collection::vec(any::<u8>(), 0..12).prop_map(Given::Garbage),
    ]
}

/// What has been seen of a session.
#[derive(Default)]
struct Seen {
    records: Vec<Value>,
    running: Vec<String>,
    timers: Vec<TimerId>,
}

impl Seen {
    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Record(record) => self.records.push(record),
                Output::RunTool(call) => self.running.push(call.id),
                Output::Arm(timer, _) => self.timers.push(timer),
                Output::Disarm(timer) => self.timers.retain(|armed| *armed != timer),
                _ => {}
            }
        }
    }
}

fn run(flavour: Flavour, steps: &[Given]) -> (Seen, HashMap<u64, &'static str>, Session) {
    let mut session = Session::new(
        Options::new(flavour, Mode::Rpc),
        Box::new(Counting::default()),
    );
    let mut seen = Seen::default();
    let mut sent = HashMap::new();
    seen.take(session.handle(Input::Start, 0));
    for (now, step) in (1..).zip(steps) {
        let outputs = match step {
            Given::Command(name, text) => {
                let mut command = json!({"id": now, "type": name});
                if let Some(text) = text {
                    command["message"] = json!(text);
                }
                sent.insert(now, *name);
                session.handle(Input::Line(command.to_string().as_bytes()), now)
            }
            Given::Reply(pieces) => pieces
                .iter()
                .flat_map(|piece| session.handle(Input::Model(piece.clone()), now))
                .collect(),
            Given::Piece(piece) => session.handle(Input::Model(piece.clone()), now),
            Given::ToolEnds(well) => {
                let result = if *well {
                    ToolResult::text("done")
                } else {
                    ToolResult::failure("broken")
                };
                match seen.running.pop() {
                    Some(id) => session.handle(Input::ToolEnd { id: &id, result }, now),
                    None => Vec::new(),
                }
            }
            Given::Timer => match seen.timers.pop() {
                Some(timer) => session.handle(Input::Timer(timer), now),
                None => Vec::new(),
            },
            // `null` ends the real Pi, and so the session.
            Given::Garbage(bytes) if bytes.as_slice() == b"null" => Vec::new(),
            Given::Garbage(bytes) => session.handle(Input::Line(bytes), now),
        };
        seen.take(outputs);
    }
    (seen, sent, session)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_are_well_ordered_whatever_comes_in(
        old in any::<bool>(),
        steps in prop::collection::vec(given(), 0..60),
    ) {
        let flavour = if old { Flavour::V0_73_1 } else { Flavour::V1_6_0 };
        let (seen, sent, mut session) = run(flavour, &steps);
        let (mut running, mut turn, mut message) = (false, false, false);
        let mut answered: HashMap<u64, u32> = HashMap::new();
        for record in &seen.records {
            prop_assert!(!js::line(record).contains('\n'), "a record is one line");
            match record["type"].as_str().unwrap_or_default() {
                "agent_start" => {
                    prop_assert!(!running, "a run begins inside a run");
                    running = true;
                }
                "turn_start" => {
                    prop_assert!(running && !turn, "a turn begins outside a run, or inside a turn");
                    turn = true;
                }
                "message_start" => {
                    prop_assert!(turn && !message, "a message begins outside a turn, or inside a message");
                    message = true;
                }
                "message_update" => prop_assert!(message, "an update outside a message"),
                "message_end" => {
                    prop_assert!(message, "the end of no message");
                    message = false;
                }
                "turn_end" => {
                    prop_assert!(turn && !message, "the end of no turn, or with an open message");
                    turn = false;
                }
                "agent_end" => {
                    prop_assert!(running && !turn, "the end of no run, or with an open turn");
                    running = false;
                }
                "agent_settled" => {
                    prop_assert!(!old, "0.73.1 never says that it has settled");
                    prop_assert!(!running, "settled inside a run");
                }
                "response" => {
                    if let Some(id) = record["id"].as_u64() {
                        *answered.entry(id).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        for (id, name) in &sent {
            let count = answered.get(id).copied().unwrap_or(0);
            prop_assert!(count <= 1, "{count} responses to {name}");
            // 0.73.1 forgets the id of a command that it doesn't know.
            let nameless = old && matches!(*name, "frobnicate" | "clear_queue");
            let later = matches!(*name, "abort" | "compact");
            prop_assert!(nameless || later || count == 1, "no response to {name}");
        }
        // The end of input always ends it, and nothing comes after that.
        let ended = session.handle(Input::Eof, 1000);
        prop_assert!(ended.iter().any(|output| matches!(output, Output::Exit(_))));
        prop_assert!(session.handle(Input::Signal(Signal::Term), 1001).is_empty());
    }

    #[test]
    fn an_abort_always_comes_to_rest(
        old in any::<bool>(),
        steps in prop::collection::vec(given(), 0..40),
    ) {
        let flavour = if old { Flavour::V0_73_1 } else { Flavour::V1_6_0 };
        let (mut seen, _, mut session) = run(flavour, &steps);
        seen.take(session.handle(Input::Line(br#"{"id":"stop","type":"abort"}"#), 1000));
        // Killed tools end; nothing else is needed.
        while let Some(id) = seen.running.pop() {
            let result = ToolResult::bash_ended("", "Command aborted");
            seen.take(session.handle(Input::ToolEnd { id: &id, result }, 1001));
        }
        let response = seen.records.iter().filter(|record| record["id"] == "stop").count();
        prop_assert_eq!(response, 1, "the abort has its response");
        prop_assert!(session.is_idle());
    }

    #[test]
    fn the_same_inputs_give_the_same_records(steps in prop::collection::vec(given(), 0..40)) {
        let lines = |steps: &[Given]| {
            let (seen, _, _) = run(Flavour::V1_6_0, steps);
            seen.records.iter().map(js::line).collect::<Vec<_>>()
        };
        prop_assert_eq!(lines(&steps), lines(&steps));
    }
}
