//! A subject that behaves: everything that it does is seen, and nothing is left.

use conformance::bundle;
use conformance::evidence::What;
use conformance::runner::{self, Keep, Progress, RunContext};

use crate::support::{
    EXECUTABLE, adapter, exit, faults, given_up, pick, planned, planned_with, responses, run,
    server, strays, survivors,
};

#[test]
fn one_call_from_handshake_to_exit() {
    let evidence = run(
        &server("answer $id done; echo note >&2"),
        "[{list-tools: {as: tools}}, {call: {as: call}}, {sample: {as: end}}]",
    );
    assert_eq!(faults(&evidence), Vec::<String>::new());
    assert_eq!(given_up(&evidence), Vec::<String>::new());
    assert_eq!(strays(&evidence), Vec::<String>::new());
    assert_eq!(
        responses(&evidence),
        [("call".to_owned(), "done".to_owned())]
    );
    assert_eq!(exit(&evidence), Some((Some(0), None)));
    assert_eq!(survivors(&evidence), Vec::<String>::new());
    assert_eq!(evidence.stderr["subject"], "note\n");
    assert!(
        evidence
            .events
            .windows(2)
            .all(|pair| pair[0].t_ns <= pair[1].t_ns)
    );
    assert_eq!(evidence.events.last().unwrap().what, What::End);
    let samples = pick(&evidence, |what| match what {
        What::Sample { name, sample, .. } => Some((name.clone(), sample.clone())),
        _ => None,
    });
    let end = samples.iter().find(|(name, _)| name == "end").unwrap();
    assert!(end.1.fds >= 3 && end.1.zombies == 0 && end.1.rss > 0);
    assert!(!std::path::Path::new(&evidence.header.folders["run"]).exists());
}

#[test]
fn a_repetition_names_its_calls_and_second_subjects_stand_beside_the_first() {
    let steps = "[{repeat: {times: 3, do: [{spawn: {as: call}}, {wait: call.settled}]}},
        {subject: {as: second}}, {call: {as: other, on: second}}, {wait: 'call-3.settled'}]";
    let evidence = run(&server("answer $id done"), steps);
    assert_eq!(faults(&evidence), Vec::<String>::new());
    let names: Vec<String> = responses(&evidence)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["call-1", "call-2", "call-3", "other"]);
    let started = pick(&evidence, |what| match what {
        What::SubjectStarted { subject, .. } => Some(subject.clone()),
        _ => None,
    });
    assert_eq!(started, ["subject", "second"]);
}

#[test]
fn an_abort_reaches_the_subject_with_the_calls_own_number() {
    let script = server(":").replace(
        "esac",
        "*notifications/cancelled*) n=${line#*requestId\\\":}; n=${n%%[,\\}]*}; answer $n cancelled ;;\n  esac",
    );
    let steps = "[{spawn: {as: slow}}, {abort: slow}, {wait: slow.settled}, {call: {as: early, aborted: true}}]";
    let evidence = run(&script, steps);
    assert_eq!(
        responses(&evidence),
        [
            ("slow".to_owned(), "cancelled".to_owned()),
            ("early".to_owned(), "cancelled".to_owned())
        ]
    );
}

#[test]
fn setup_gives_files_environment_signals_and_limits() {
    let folder = tempfile::tempdir().unwrap();
    let on_call = r#"answer $id "$(cat ../home/note.txt)|$MINE|$HOME|$(ulimit -n)|$(sed -n 's/SigBlk:.//p;s/SigIgn:.//p' /proc/self/status | tr '\n' ' ')|$(ls -A "$TMPDIR")""#;
    let adapter = adapter(folder.path(), &server(on_call));
    let keys = "setup: {files: {'{home}/note.txt': hello}, env: {MINE: '{run}/x'}, descriptors: 77, blocked: [TERM], ignored: [HUP]}
steps: [{call: {as: call}}]";
    let evidence = runner::run(&planned_with(keys), &adapter, &RunContext::new(EXECUTABLE));
    assert_eq!(faults(&evidence), Vec::<String>::new());
    let run = &evidence.header.folders["run"];
    let text = &responses(&evidence)[0].1;
    let parts: Vec<&str> = text.split('|').collect();
    assert_eq!(
        parts[..4],
        ["hello", &format!("{run}/x"), &format!("{run}/home"), "77"],
        "{text}"
    );
    let sets: Vec<u64> = parts[4]
        .split(' ')
        .filter_map(|set| u64::from_str_radix(set, 16).ok())
        .collect();
    // Only what has a name: the C library keeps the signals above for itself, and they come from whoever started the tests.
    let named = |set: &u64| set & 0x7fff_ffff;
    assert_eq!(
        sets.iter().map(named).collect::<Vec<_>>(),
        [1 << 14, 1],
        "{text}"
    );
    assert_eq!(parts[5], "");
}

#[test]
fn a_bundle_reads_back_as_the_same_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let adapter = adapter(folder.path(), &server("answer $id done; echo note >&2"));
    let mut context = RunContext::new(EXECUTABLE);
    context.bundles = Some(folder.path().join("bundles"));
    let evidence = runner::run(&planned("[{call: {as: call}}]"), &adapter, &context);
    let path = folder.path().join("bundles/trial");
    assert_eq!(bundle::read(&path).unwrap(), evidence);

    let text = std::fs::read_to_string(path.join("bundle.json")).unwrap();
    std::fs::write(
        path.join("bundle.json"),
        text.replace("\"format\": 1", "\"format\": 2"),
    )
    .unwrap();
    let error = bundle::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("has format 2, and this version reads formats up to 1"),
        "{error}"
    );
    let error = bundle::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no `bundle.json`"), "{error}");
}

#[test]
fn many_run_at_once_and_only_what_is_wanted_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let adapter = adapter(folder.path(), &server("answer $id done"));
    let mut context = RunContext::new(EXECUTABLE);
    context.bundles = Some(folder.path().join("bundles"));
    let all: Vec<_> = (0..6)
        .map(|n| {
            let mut planned = planned("[{call: {as: call}}]");
            planned.name = format!("trial-{n}");
            planned.scenario.alone = n == 2;
            planned
        })
        .collect();
    let mut running = std::collections::HashSet::new();
    let mut finished = 0;
    runner::run_all(
        &all,
        &adapter,
        &context,
        3,
        &mut |progress| match progress {
            Progress::Started(planned) => {
                assert!(!planned.scenario.alone || running.is_empty());
                running.insert(planned.name.clone());
                assert!(running.len() <= 3);
                Keep::Nothing
            }
            Progress::Finished(planned, evidence) => {
                assert!(running.remove(&planned.name));
                assert_eq!(responses(&evidence).len(), 1);
                finished += 1;
                if planned.name == "trial-4" {
                    Keep::Bundle
                } else {
                    Keep::Nothing
                }
            }
        },
    );
    assert_eq!(finished, 6);
    let kept: Vec<_> = std::fs::read_dir(folder.path().join("bundles"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(kept, ["trial-4"]);
}
