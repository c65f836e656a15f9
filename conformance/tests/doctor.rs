//! `pi-conform doctor` with the real program: what is there, what is missing, and what brings it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod real_runs;

use real_runs::{Place, finish};

#[test]
fn a_machine_that_runs_the_suite_has_what_the_reference_needs() {
    let place = Place::new();
    let done = place.pi_conform(&["doctor"]);
    assert_eq!((done.code, &*done.err), (Some(0), ""), "{}", done.out);
    for name in [
        "program",
        "tmpdir",
        "proc",
        "subreaper",
        "pidfd",
        "descriptors",
        "processes",
    ] {
        assert!(
            done.out.contains(&format!("✓ {name}")),
            "{name}: {}",
            done.out
        );
    }
    assert!(!done.out.contains('✗'), "{}", done.out);
    place.is_tidy();
}

#[test]
fn what_the_adapter_needs_and_is_missing_has_its_cure_and_an_exit_code() {
    let place = Place::new();
    place.subject("nowhere", "[no-such-program-anywhere]");
    let done = place.pi_conform(&["doctor", "--adapter", "nowhere.yaml"]);
    assert_eq!(done.code, Some(3), "{}", done.out);
    assert!(
        done.out
            .contains("✗ program      there is no program `no-such-program-anywhere` on PATH"),
        "{}",
        done.out
    );
    assert!(
        done.out
            .contains("→ install it, or put the `command` of the adapter `nowhere` right"),
        "{}",
        done.out
    );
}

#[test]
fn what_is_missing_and_not_needed_is_told_with_the_command_that_brings_it() {
    let place = Place::new();
    let packages = place.path("packages");
    let mut command = place.command(&["doctor", "--format", "json", "--packages"]);
    command.arg(&packages);
    let done = finish(command);
    assert_eq!(done.code, Some(0), "{}", done.out);
    let found: Vec<serde_json::Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let node = found.iter().find(|line| line["name"] == "node").unwrap();
    assert_eq!(
        (&node["there"], &node["needed"]),
        (&false.into(), &false.into())
    );
    let cure = format!(
        "npm install --prefix {}/node@22 node@22",
        packages.display()
    );
    assert_eq!(node["cure"], cure.as_str());
}

#[test]
fn a_temporary_folder_that_cannot_be_written_is_told() {
    let place = Place::new();
    let mut command = place.command(&["doctor"]);
    command.env("TMPDIR", place.path("missing"));
    let done = finish(command);
    assert_eq!(done.code, Some(3), "{}", done.out);
    assert!(
        done.out.contains("✗ tmpdir") && done.out.contains("missing cannot be written"),
        "{}",
        done.out
    );
    assert!(done.out.contains("→ export TMPDIR="), "{}", done.out);
}
