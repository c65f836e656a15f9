//! What is said about each fault of a file.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Place, definition, file};

/// Holds that the user's file `text` is refused with `expected`, line for line; `FILE` stands for its path.
fn check_refused(text: impl AsRef<[u8]>, expected: &str) {
    let place = Place::new();
    place.user(text);
    let shown = place.load(false).expect_err(expected).to_string();
    let file = place.path("agent/delegator.json").display().to_string();
    assert_eq!(
        shown
            .replace(&file, "FILE")
            .replace(&place.path("").display().to_string(), "ROOT/"),
        expected
    );
}

// shows: config.definition-complete
#[test]
fn each_missing_part_is_named() {
    for (key, example) in [
        ("description", "\"description\": \"what it is for\""),
        ("model", "\"model\": \"inherit\" or a model id"),
        ("thinking", "\"thinking\": \"low\""),
        ("prompt", "\"prompt\": \"its role\""),
        ("tools", "\"tools\": [\"read\"]"),
        ("extensions", "\"extensions\": []"),
        ("skills", "\"skills\": []"),
        ("deadlineMs", "\"deadlineMs\": 300000"),
    ] {
        let mut changes = json!({});
        changes[key] = Value::Null;
        check_refused(
            file(json!({"mine": definition(changes)})),
            &format!(
                "FILE:1:21: profile `mine`: `{key}`: this part is missing; add it: a definition replaces the whole \
                 profile, so write {example}"
            ),
        );
    }
}

// shows: config.diagnostics, config.bad-config-fails-before-delegation
#[test]
fn faults_of_a_file_are_named_with_their_place() {
    for (text, expected) in [
        (
            "",
            "FILE:1:1: this is not JSON: EOF while parsing a value; correct the syntax",
        ),
        (
            "{\n  \"profiles\": {},\n}",
            "FILE:3:1: this is not JSON: key must be a string; correct the syntax",
        ),
        (
            "{} x",
            "FILE:1:4: this is not JSON: trailing characters; correct the syntax",
        ),
        (
            "[]",
            "FILE:1:1: this is a list, not an object with the keys profiles and limits; write an object with the keys \
             profiles and limits",
        ),
        (
            "{\"profils\": {}}",
            "FILE:1:13: `profils`: there is no such key; did you mean `profiles`?",
        ),
        (
            "{\"x\": 1}",
            "FILE:1:7: `x`: there is no such key; the keys are profiles, limits",
        ),
        (
            "{\"agents\": []}",
            "FILE:1:12: `agents`: this is an older format, which is no longer read; define complete profiles under \
             `profiles`",
        ),
        (
            "{\"scout\": {}}",
            "FILE:1:11: `scout`: this is an older format, with profiles at the top; move the entry into `profiles`: \
             {\"profiles\": {\"scout\": …}}",
        ),
        (
            "{\"profiles\": {\"a\": null}}",
            "FILE:1:20: profile `a`: null disables a profile, and there is none of this name; remove the entry",
        ),
        (
            "{\"profiles\": {\"scuot\": null}}",
            "FILE:1:24: profile `scuot`: null disables a profile, and there is none of this name; did you mean `scout`?",
        ),
        (
            "{\"profiles\": {\"scout\": null, \"scout\": null}}",
            "FILE:1:39: `scout`: this key comes twice; keep one of the two",
        ),
        (
            "{\"profiles\": {\"scout\": 1}}",
            "FILE:1:24: profile `scout`: this is a number, not a complete definition, or null to disable the name; write \
             a complete definition, or null to disable the name",
        ),
        (
            "\u{feff}{}",
            "FILE:1:1: the file starts with a byte order mark; save it as UTF-8 without one",
        ),
        (
            "{\"profiles\": {\"scout\": null, \"reviewer\": null, \"oracle\": null, \"tester\": null, \"worker\": null}}",
            "FILE: `profiles`: every profile is disabled; leave at least one profile in force",
        ),
    ] {
        check_refused(text, expected);
    }
    check_refused(
        b"{\n \"a\xff\"}",
        "FILE:2:4: this byte is not UTF-8; save the file as UTF-8",
    );
}

// shows: config.diagnostics, config.deadline-bounded, field.extreme-time-limits
#[test]
fn faults_of_a_definition_name_profile_key_and_correction() {
    let levels = "off, minimal, low, medium, high, xhigh, max";
    let tools = "read, grep, find, ls, bash, edit, write";
    let number = "a whole number from 1000 to 3600000";
    let deadline = |shown: &str| format!("`deadlineMs`: {shown} is not {number}; write {number}");
    for (changes, expected) in [
        (
            json!({"promt": "x"}),
            "`promt`: there is no such key; did you mean `prompt`?".to_owned(),
        ),
        (json!({"zzz": 1}), {
            "`zzz`: there is no such key; the keys are description, model, thinking, prompt, tools, extensions, skills, \
             deadlineMs"
                .to_owned()
        }),
        (
            json!({"timeoutMs": 5}),
            "`timeoutMs`: this is the word of an older format; write `deadlineMs`".into(),
        ),
        (
            json!({"systemPrompt": "x"}),
            "`systemPrompt`: this is the word of an older format; write `prompt`".into(),
        ),
        (json!({"thinking": "hihg"}), {
            format!(
                "`thinking`: there is no thinking level `hihg`; did you mean `high`? write one of {levels}"
            )
        }),
        (
            json!({"thinking": 3}),
            format!("`thinking`: this is a number, not one of {levels}; write one of {levels}"),
        ),
        (json!({"tools": "read"}), {
            "`tools`: this is a string, not a list of strings, which may be empty; write a list of strings, which may \
             be empty"
                .into()
        }),
        (json!({"tools": ["raed"]}), {
            format!(
                "`tools`: there is no tool `raed`; did you mean `read`? the built-in tools are {tools}"
            )
        }),
        (
            json!({"tools": ["read", "read"]}),
            "`tools`: `read` stands here twice; keep one of the two".into(),
        ),
        (
            json!({"prompt": " \n"}),
            "`prompt`: this is empty; write some text".into(),
        ),
        (json!({"prompt": "a\0b"}), {
            "`prompt`: this contains the character U+0000, which no argument can carry; remove it"
                .into()
        }),
        (json!({"description": "d".repeat(1025)}), {
            "`description`: this is 1025 bytes long, at most 1024 are allowed; shorten it".into()
        }),
        (json!({"model": "a b"}), {
            "`model`: model contains ' ', which no model id does; write a model id such as \"provider/model\", or \
             \"inherit\" for the parent's model"
                .into()
        }),
        (json!({"model": "x:high"}), {
            "`model`: model ends in the thinking level `:high`; thinking belongs to the profile; write a model id such \
             as \"provider/model\", or \"inherit\" for the parent's model"
                .into()
        }),
        (json!({"deadlineMs": 0}), deadline("0")),
        (json!({"deadlineMs": 999}), deadline("999")),
        (json!({"deadlineMs": 3_600_001}), deadline("3600001")),
        (
            json!({"deadlineMs": 2_147_483_647u64}),
            deadline("2147483647"),
        ),
        (
            json!({"deadlineMs": 2_147_483_648u64}),
            deadline("2147483648"),
        ),
        (json!({"deadlineMs": -1}), deadline("-1")),
        (json!({"deadlineMs": 1500.5}), deadline("1500.5")),
        (
            json!({"deadlineMs": "60s"}),
            format!("`deadlineMs`: this is a string, not {number}; write {number}"),
        ),
    ] {
        let text = file(json!({"mine": definition(changes.clone())}));
        let place = Place::new();
        place.user(&text);
        let diagnostics = place.load(false).expect_err(&text);
        assert_eq!(diagnostics.faults.len(), 1, "{diagnostics}");
        let fault = &diagnostics.faults[0];
        assert_eq!(fault.file, place.path("agent/delegator.json"));
        assert!(
            fault
                .place
                .is_some_and(|place| place.line == 1 && place.column > 20),
            "{fault}"
        );
        let shown = fault.to_string();
        let (_, said) = shown.split_once("profile `mine`: ").expect(&shown);
        assert_eq!(said, expected, "{changes}");
    }
    for name in ["", "Scout", "1st", "a b", "-x", &"n".repeat(65)] {
        let mut profiles = json!({});
        profiles[name] = definition(json!({}));
        let place = Place::new();
        place.user(file(profiles));
        let shown = place.load(false).unwrap_err().to_string();
        assert!(shown.contains("this is no name for a profile"), "{shown}");
    }
}

// shows: config.deadline-bounded
#[test]
fn deadlines_at_the_bounds_are_taken() {
    for millis in [1000, 3_600_000] {
        let place = Place::new();
        place.user(file(
            json!({"mine": definition(json!({"deadlineMs": millis}))}),
        ));
        let config = place.load(false).unwrap();
        assert_eq!(
            config.profiles.get("mine").unwrap().deadline,
            Duration::from_millis(millis)
        );
    }
}

// shows: field.big-task
#[test]
fn a_prompt_that_no_argument_could_carry_is_refused_with_the_limit() {
    check_refused(
        file(json!({"mine": definition(json!({"prompt": "p".repeat(200 * 1024)}))})),
        "FILE:1:97: profile `mine`: `prompt`: this is 204800 bytes long, at most 102400 are allowed; shorten it",
    );
}

#[test]
fn all_faults_are_reported_together_and_their_number_is_bounded() {
    let place = Place::new();
    place.user(file(
        json!({"a": definition(json!({"thinking": "x", "deadlineMs": 1})), "b": 1}),
    ));
    place.project("{\"limits\": {\"taskChars\": 0}}");
    assert_eq!(place.load(true).unwrap_err().faults.len(), 4);
    let many: serde_json::Map<_, _> = (0..50).map(|n| (format!("p{n}"), json!(1))).collect();
    place.user(file(many.into()));
    let diagnostics = place.load(false).unwrap_err();
    assert_eq!((diagnostics.faults.len(), diagnostics.more), (20, 30));
    assert!(diagnostics.to_string().ends_with("\nand 30 more"));
}
