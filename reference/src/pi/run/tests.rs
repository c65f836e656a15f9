//! Tables and properties under a pretend clock.

use proptest::prelude::*;

use super::*;
use crate::pi::wire::Message;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn limits() -> Limits {
    Limits {
        deadline: ms(60_000),
        tool_timeout: Some(ms(5_000)),
        ..Limits::default()
    }
}

fn stop() -> Record {
    message("done", "stop")
}

fn message(text: &str, stop_reason: &str) -> Record {
    Record::AssistantEnd(Box::new(Message {
        text: text.into(),
        stop_reason: stop_reason.into(),
        ..Message::default()
    }))
}

fn accepted(disposition: bool) -> Record {
    Record::PromptResponse {
        success: true,
        error: String::new(),
        disposition,
    }
}

fn record(record: Record) -> Input {
    Input::Record(record, false)
}

const EXIT_0: Input = Input::Exited(Exit {
    code: Some(0),
    signal: None,
});

/// A run with its effects written down, each with its time.
struct Table {
    run: Run,
    effects: Vec<(u64, Effect)>,
    now: Duration,
}

impl Table {
    fn new(limits: Limits) -> Self {
        let (run, effects) = Run::begin(limits, "task");
        Self {
            run,
            effects: effects.into_iter().map(|effect| (0, effect)).collect(),
            now: Duration::ZERO,
        }
    }

    fn at(&mut self, time: u64, input: Input) -> &mut Self {
        // The shell wakes the machine at each deadline before something later happens.
        while let Some(deadline) = self.run.deadline().filter(|deadline| *deadline < ms(time)) {
            self.feed(deadline.max(self.now), Input::Tick);
        }
        self.feed(ms(time), input);
        self
    }

    fn feed(&mut self, now: Duration, input: Input) {
        self.now = now;
        for effect in self.run.handle(input, now) {
            let look = effect == Effect::Look;
            self.effects.push((now.as_millis() as u64, effect));
            // Unless a test says otherwise nothing is found beside the child.
            if look {
                self.feed(now, Input::Found(0));
            }
        }
    }

    /// Lets time pass until the run is over; a child that is killed dies, and its pipes end.
    fn finish(&mut self, dies_of: Effect) -> &mut Self {
        let mut dead = self.run.exit.is_some();
        let mut from = self.effects.len();
        for _ in 0..2_000 {
            let dies = self.effects[from.min(self.effects.len())..]
                .iter()
                .any(|(_, effect)| *effect == dies_of);
            from = self.effects.len();
            if dies && !dead {
                dead = true;
                let now = self.now;
                self.feed(
                    now,
                    Input::Exited(Exit {
                        code: None,
                        signal: Some(15),
                    }),
                );
                self.feed(now, Input::StdoutEnd(false));
                self.feed(now, Input::StderrEnd);
            }
            match self.run.deadline() {
                Some(deadline) => self.feed(deadline.max(self.now), Input::Tick),
                None => break,
            }
        }
        self
    }

    fn when(&self, wanted: &Effect) -> Vec<u64> {
        self.effects
            .iter()
            .filter(|(_, effect)| effect == wanted)
            .map(|(time, _)| *time)
            .collect()
    }

    fn settled(&self) -> Option<u64> {
        let times = self.when(&Effect::Settle);
        assert!(times.len() <= 1, "settled {} times", times.len());
        times.first().copied()
    }
}

fn plain(table: &mut Table) -> &mut Table {
    table
        .at(10, record(accepted(true)))
        .at(11, record(Record::AgentStart))
        .at(20, record(stop()))
        .at(
            21,
            record(Record::AgentEnd {
                will_retry: Some(false),
            }),
        )
        .at(22, record(Record::Settled))
}

// shows: drain.clean-exit, semantics.terminal-answer-captured
#[test]
fn a_clean_run_settles_with_its_child_and_nothing_is_forced() {
    let mut table = Table::new(limits());
    plain(&mut table)
        .at(30, EXIT_0)
        .at(31, Input::StdoutEnd(false))
        .at(31, Input::StderrEnd)
        .finish(Effect::Kill);
    assert_eq!(table.settled(), Some(31));
    let outcome = table.run.outcome();
    assert_eq!(
        (outcome.cause, outcome.text.as_str()),
        (Cause::Settled, "done")
    );
    assert_eq!(
        outcome.cleanup,
        Cleanup {
            drained: true,
            ..Cleanup::default()
        }
    );
}

// shows: drain.semantic-completion-guard, semantics.valid-answer-survives-forced-cleanup, drain.term-then-kill
#[test]
fn a_child_that_stays_after_its_answer_is_asked_and_then_forced() {
    for (dies_of, kill, at) in [(Effect::Term, false, 3022), (Effect::Kill, true, 5022)] {
        let mut table = Table::new(limits());
        plain(&mut table).finish(dies_of);
        assert_eq!(table.when(&Effect::Term), [3022]);
        let settled = table.settled().unwrap();
        assert!((at..at + 20).contains(&settled), "{settled}");
        let outcome = table.run.outcome();
        assert_eq!(outcome.cause, Cause::Settled);
        assert_eq!((outcome.cleanup.term, outcome.cleanup.kill), (true, kill));
    }
}

// shows: drain.descendant-holds-stdout, drain.post-exit-guard-bounded
#[test]
fn a_pipe_that_somebody_holds_after_the_exit_is_given_up_on() {
    let mut table = Table::new(limits());
    table
        .at(10, record(Record::AgentStart))
        .at(100, EXIT_0)
        .finish(Effect::Kill);
    // One drain for the output that may still come, one for the pipes' end: nobody was found to end.
    assert_eq!(table.settled(), Some(2100));
    let outcome = table.run.outcome();
    assert_eq!(outcome.cause, Cause::Ended);
    assert!(outcome.cleanup.incomplete && !outcome.cleanup.drained);
}

// shows: field.zombie-is-not-alive, drain.descendants-gone-after-success
#[test]
fn what_outlives_the_child_is_asked_after_it_had_time_to_go() {
    let mut table = Table::new(limits());
    plain(&mut table)
        .at(30, Input::StdoutEnd(false))
        .at(30, Input::StderrEnd)
        .at(40, EXIT_0);
    // The helper's answer would have settled it at once; here two are found.
    assert_eq!(
        table.settled(),
        Some(40),
        "nothing found, nothing to wait for"
    );
    let (mut run, _) = Run::begin(limits(), "task");
    for (time, input) in [
        (1, record(Record::AgentStart)),
        (2, record(stop())),
        (3, record(Record::Settled)),
        (4, EXIT_0),
    ] {
        run.handle(input, ms(time));
    }
    assert!(!run.handle(Input::Found(2), ms(5)).contains(&Effect::Term));
    run.handle(Input::Tick, ms(60));
    assert!(run.handle(Input::Found(2), ms(105)).contains(&Effect::Term));
    run.handle(Input::Tick, ms(2_100));
    let effects = run.handle(Input::Tick, ms(2_106));
    assert!(effects.contains(&Effect::Kill), "{effects:?}");
    run.handle(Input::Found(0), ms(2_120));
    run.handle(Input::StdoutEnd(false), ms(2_121));
    assert!(
        run.handle(Input::StderrEnd, ms(2_121))
            .contains(&Effect::Settle)
    );
    assert_eq!(run.outcome().cleanup.strays, 2);
}

// shows: wait.hang-is-bounded-when-limit-set, deadline.activity-does-not-extend
#[test]
fn the_deadline_is_wall_clock() {
    let mut table = Table::new(Limits {
        deadline: ms(1_000),
        ..limits()
    });
    table.at(10, record(Record::AgentStart));
    for time in (50..990).step_by(50) {
        table.at(time, record(Record::Other));
    }
    table.finish(Effect::Term);
    assert_eq!(table.when(&Effect::Term), [1_000]);
    assert_eq!(table.run.outcome().cause, Cause::Deadline);
}

// shows: field.accepted-but-silent
#[test]
fn a_prompt_that_starts_nothing_ends_by_the_start_watchdog() {
    for taken in [true, false] {
        let mut table = Table::new(Limits {
            start_watchdog: Some(ms(1_000)),
            ..limits()
        });
        if taken {
            table.at(5, record(accepted(true)));
        }
        table.finish(Effect::Term);
        let prompts = table
            .effects
            .iter()
            .filter(|(_, effect)| matches!(effect, Effect::Write(_)))
            .count();
        assert_eq!((table.when(&Effect::Term), prompts), (vec![1_000], 1));
        assert_eq!(
            table.run.outcome().cause,
            Cause::NotStarted { accepted: taken }
        );
    }
}

// shows: field.older-pi-without-settled
#[test]
fn a_pi_without_settled_ends_by_silence_and_a_retry_breaks_it() {
    let mut table = Table::new(limits());
    table
        .at(1, record(accepted(false)))
        .at(2, record(Record::AgentStart))
        .at(3, record(message("", "error")));
    table
        .at(4, record(Record::AgentEnd { will_retry: None }))
        .at(5, record(Record::RecoveryStart));
    table
        .at(4_000, record(Record::AgentStart))
        .at(4_001, record(stop()));
    table
        .at(4_002, record(Record::AgentEnd { will_retry: None }))
        .at(5_100, EXIT_0);
    assert_eq!(table.when(&Effect::CloseStdin), [5_002]);
    assert_eq!(table.run.cause, Some(Cause::Settled));
}

// A status line of an extension, say, may follow the last agent_end; the run must not wait for its deadline then.
#[test]
fn an_event_after_the_last_agent_end_of_an_older_pi_only_begins_the_silence_anew() {
    for last in [
        record(Record::AgentEnd { will_retry: None }),
        Input::Skipped(Record::AgentEnd { will_retry: None }),
    ] {
        let mut table = Table::new(limits());
        table
            .at(1, record(accepted(false)))
            .at(2, record(Record::AgentStart))
            .at(3, record(stop()))
            .at(4, last)
            .at(500, record(Record::Other))
            .at(3_000, EXIT_0);
        assert_eq!(table.when(&Effect::CloseStdin), [1_500]);
        assert_eq!(table.run.cause, Some(Cause::Settled));
    }
}

#[test]
fn a_tool_whose_long_result_was_not_kept_has_ended_all_the_same() {
    let mut table = Table::new(limits());
    table
        .at(1, record(Record::AgentStart))
        .at(
            2,
            record(Record::ToolStart {
                id: "a".into(),
                name: "read".into(),
                detail: String::new(),
            }),
        )
        .at(
            3,
            Input::Skipped(Record::ToolEnd {
                id: "a".into(),
                name: "read".into(),
                failed: false,
                text: String::new(),
            }),
        )
        .at(20_000, record(stop()))
        .at(20_001, record(Record::Settled));
    assert_eq!(table.run.cause, Some(Cause::Settled));
}

// shows: field.stale-settled
#[test]
fn a_settled_event_of_an_attempt_that_is_repeated_does_not_end_the_run() {
    let mut table = Table::new(limits());
    table
        .at(1, record(accepted(true)))
        .at(2, record(Record::AgentStart))
        .at(3, record(message("first", "stop")));
    table
        .at(4, record(Record::RecoveryStart))
        .at(5, record(Record::RecoveryEnd(true)))
        .at(6, record(Record::Settled));
    assert_eq!(table.run.cause, None);
    table
        .at(7, record(Record::AgentStart))
        .at(8, record(message("second", "stop")))
        .at(9, record(Record::Settled));
    table.finish(Effect::Term);
    assert_eq!(table.run.outcome().text, "second");
}

// shows: tool-timeout.armed-for-known-fast, tool-timeout.cleared-by-matching-end, tool-timeout.ids-independent
// shows: tool-timeout.bash-exempt, tool-timeout.cannot-extend-run
#[test]
fn only_fast_tools_are_timed_each_by_its_id() {
    let start = |id: &str, name: &str| {
        record(Record::ToolStart {
            id: id.into(),
            name: name.into(),
            detail: String::new(),
        })
    };
    let end = |id: &str| {
        record(Record::ToolEnd {
            id: id.into(),
            name: "read".into(),
            failed: false,
            text: String::new(),
        })
    };
    let cause = |inputs: &[(u64, Input)], deadline| {
        let mut table = Table::new(Limits {
            deadline: ms(deadline),
            tool_timeout: Some(ms(500)),
            ..limits()
        });
        for (time, input) in inputs {
            table.at(*time, input.clone());
        }
        table.finish(Effect::Term);
        (table.when(&Effect::Term), table.run.outcome().cause)
    };
    assert_eq!(
        cause(&[(10, start("a", "read"))], 9_000),
        (vec![510], Cause::ToolTimeout("read".into()))
    );
    assert_eq!(
        cause(&[(10, start("a", "read")), (400, end("a"))], 9_000).1,
        Cause::Deadline
    );
    let both = [
        (10, start("a", "read")),
        (20, start("b", "grep")),
        (400, end("a")),
    ];
    assert_eq!(
        cause(&both, 9_000),
        (vec![520], Cause::ToolTimeout("grep".into()))
    );
    assert_eq!(cause(&[(10, start("a", "bash"))], 9_000).1, Cause::Deadline);
    assert_eq!(
        cause(&[(900, start("a", "read"))], 1_000),
        (vec![1_000], Cause::Deadline)
    );
}

// shows: drain.bash-timeout-ends-run, field.tool-text-never-decides
#[test]
fn only_bashs_own_last_words_end_the_run() {
    let cause = |name: &str, failed, text: &str| {
        let mut table = Table::new(limits());
        let end = Record::ToolEnd {
            id: "a".into(),
            name: name.into(),
            failed,
            text: text.into(),
        };
        table.at(1, record(Record::AgentStart)).at(2, record(end));
        table.run.cause.clone()
    };
    let timed_out = "half\n\nCommand timed out after 5 seconds";
    assert_eq!(
        cause("bash", true, timed_out),
        Some(Cause::BashTimeout(
            "Command timed out after 5 seconds".into()
        ))
    );
    assert_eq!(
        cause("bash", true, "Command aborted"),
        Some(Cause::BashTimeout("Command aborted".into()))
    );
    assert_eq!(cause("bash", false, timed_out), None);
    assert_eq!(cause("read", true, timed_out), None);
    assert_eq!(
        cause("bash", true, "fatal: Command timed out after all\nexit 128"),
        None
    );
}

// shows: field.last-record-cut
#[test]
fn a_stream_that_ends_inside_a_record_is_told_whatever_came_before() {
    let mut table = Table::new(limits());
    table
        .at(1, record(Record::AgentStart))
        .at(2, record(stop()))
        .at(3, Input::StdoutEnd(true))
        .at(4, EXIT_0);
    assert_eq!(table.run.cause, Some(Cause::IncompleteRecord));
}

// shows: field.term-held-by-dialog
#[test]
fn a_dialog_is_answered_as_cancelled_at_once() {
    let mut table = Table::new(limits());
    table.at(1, record(Record::Dialog { id: "d1".into() }));
    let answer = r#"{"type":"extension_ui_response","id":"d1","cancelled":true}"#;
    assert_eq!(table.when(&Effect::Write(answer.into())), [1]);
}

fn anything() -> impl Strategy<Value = Input> {
    let exit = |code, signal| Input::Exited(Exit { code, signal });
    prop_oneof![
        3 => Just(record(stop())),
        2 => Just(record(message("", "error"))),
        2 => Just(record(Record::AgentStart)),
        2 => Just(record(Record::Settled)),
        2 => any::<Option<bool>>().prop_map(|will_retry| record(Record::AgentEnd { will_retry })),
        1 => any::<bool>().prop_map(|again| record(Record::RecoveryEnd(again))),
        1 => Just(record(Record::RecoveryStart)),
        2 => any::<bool>().prop_map(|disposition| record(accepted(disposition))),
        2 => prop_oneof![Just(exit(Some(0), None)), Just(exit(Some(3), None)), Just(exit(None, Some(9)))],
        2 => any::<bool>().prop_map(Input::StdoutEnd),
        2 => Just(Input::StderrEnd),
        1 => prop_oneof![Just(Why::Aborted), Just(Why::Shutdown)].prop_map(Input::Stop),
        1 => (0..3_usize).prop_map(Input::Found),
        1 => Just(Input::Oversized),
        1 => Just(Input::StdinBroken),
        1 => Just(Input::Tick),
    ]
}

proptest! {
    // shows: drain.finalisation-idempotent, deadline.no-unbounded-wait, semantics.settles-exactly-once
    // shows: semantics.first-terminal-cause-kept, deadline.races-completion-once, deadline.races-abort-once
    // shows: cancel.no-duplicate-completion, cancel.never-success
    #[test]
    fn every_order_of_events_settles_once_by_its_first_cause_and_in_bounded_time(
        events in prop::collection::vec((anything(), 0..3_000_u64), 0..24)
    ) {
        let mut table = Table::new(Limits { deadline: ms(10_000), ..limits() });
        let mut time = 0;
        let mut cause = None;
        let mut caused_at = None;
        for (input, wait) in events {
            time += wait;
            // One exit, one end of each stream: what the kernel does, it does once.
            let again = match &input {
                Input::Exited(_) => table.run.exit.is_some(),
                Input::StdoutEnd(_) => table.run.stdout_end.is_some(),
                Input::Record(..) => table.run.stdout_end.is_some(),
                _ => false,
            };
            if again {
                continue;
            }
            table.at(time, input);
            if cause.is_some() {
                prop_assert_eq!(&table.run.cause, &cause, "a later cause replaced the first");
            } else if table.run.cause.is_some() {
                cause.clone_from(&table.run.cause);
                caused_at = Some(table.now);
            }
        }
        // From here on nothing happens but time; the child only dies when it is killed, or not even then.
        table.finish(Effect::Kill);
        let settled = table.settled();
        prop_assert!(settled.is_some(), "never settled");
        let limits = limits();
        let bound = limits.post_answer_drain + limits.term_grace + limits.kill_grace + 2 * limits.post_exit_drain;
        let from = caused_at.map_or(ms(10_000), |at| at).as_millis() as u64;
        prop_assert!(settled.unwrap() <= from.max(time).max(10_000) + bound.as_millis() as u64 + 200);
        let after = table.effects.iter().skip_while(|(_, effect)| *effect != Effect::Settle).count();
        prop_assert_eq!(after, 1, "something came after the settlement");
        prop_assert!(table.when(&Effect::Term).len() <= 1);
        if let Some(cause) = cause {
            prop_assert_eq!(table.run.outcome().cause, cause);
        }
    }
}
