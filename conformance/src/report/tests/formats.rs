//! Formats for other programs: what they say, and that those programs can read it whatever a subject wrote.

use serde_json::{Value, json};

use super::*;
use crate::report::{Badge, Github, Markdown, Tap};

fn tap(events: &[Event]) -> String {
    told(events, |page| Box::new(Tap::new(page)))
}

fn github(events: &[Event]) -> String {
    told(events, |page| Box::new(Github::new(page)))
}

fn markdown(events: &[Event]) -> String {
    told(events, |page| Box::new(Markdown::new(page)))
}

/// Everything that means something to one of the formats.
pub const HOSTILE: &str = concat!(
    "100% </script><b>|`#1` a,b: @you\\ \u{1b}[31m\u{202e}\r\n::error::x\n...\nnot ok 1 # TO",
    "DO \"'"
);

/// One failure whose texts are hostile.
pub fn hostile() -> Vec<Event> {
    let failing = vec![check(HOSTILE, Verdict::Fail, HOSTILE, HOSTILE)];
    let Event::Finished(mut one) = finished(HOSTILE, Verdict::Fail, failing) else {
        unreachable!()
    };
    let rule = IndexMap::from([(
        "drain.descendant-holds-stdout".to_owned(),
        HOSTILE.to_owned(),
    )]);
    one.why = HOSTILE.to_owned();
    one.rules = rule;
    one.area = HOSTILE.to_owned();
    one.witnesses["journal"] = vec![HOSTILE.to_owned()];
    one.timeline = vec![HOSTILE.to_owned()];
    one.reproduce = HOSTILE.to_owned();
    let mut summary = Summary {
        selected: 1,
        ..Summary::default()
    };
    summary.count(Verdict::Fail);
    let mut events = events();
    events.truncate(1);
    events.push(Event::Finished(one));
    events.push(Event::Unmatched {
        entry: HOSTILE.to_owned(),
        problem: HOSTILE.to_owned(),
    });
    events.push(Event::Summary(Totals::Run(summary)));
    events
}

/// A test point as a reader of TAP 14 takes it.
#[derive(Debug, PartialEq)]
struct Point {
    ok: bool,
    name: String,
    directive: Option<(String, String)>,
    block: Option<Value>,
}

/// A strict reader of TAP 14, without subtests. `Err` names the line.
fn read_tap(text: &str) -> Result<(usize, Vec<Point>), String> {
    let mut lines = text.lines();
    if lines.next() != Some("TAP version 14") {
        return Err("no version line".to_owned());
    }
    let (mut plan, mut points) = (None, Vec::<Point>::new());
    while let Some(line) = lines.next() {
        let wrong = |why: &str| Err(format!("{why}: {line}"));
        if line.starts_with('#') {
            continue;
        }
        if let Some(number) = line.strip_prefix("1..") {
            let number = number.split(' ').next().unwrap_or_default();
            if plan.replace(number.parse().map_err(|_| line)?).is_some() {
                return wrong("a second plan");
            }
        } else if line == "  ---" {
            let mut yaml = String::new();
            loop {
                match lines.next() {
                    Some("  ...") => break,
                    Some(inside) if inside.starts_with("  ") => yaml += &format!("{inside}\n"),
                    _ => return wrong("a block without its end"),
                }
            }
            let block = serde_saphyr::from_str(&yaml).map_err(|e| format!("{e}\n{yaml}"))?;
            match points.last_mut() {
                Some(point) if point.block.is_none() => point.block = Some(block),
                _ => return wrong("a block of nothing"),
            }
        } else {
            let (ok, rest) = match line.strip_prefix("not ok ") {
                Some(rest) => (false, rest),
                None => (
                    true,
                    line.strip_prefix("ok ")
                        .ok_or(format!("no point: {line}"))?,
                ),
            };
            let (number, rest) = rest.split_once(" - ").ok_or("no description")?;
            if number.parse() != Ok(points.len() + 1) {
                return wrong("out of order");
            }
            points.push(point(ok, rest)?);
        }
    }
    Ok((plan.ok_or("no plan")?, points))
}

/// A description up to a ` #` that is not escaped, then a directive.
fn point(ok: bool, rest: &str) -> Result<Point, String> {
    let (mut name, mut chars) = (String::new(), rest.chars());
    let mut directive = None;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | '#')) => name.push(escaped),
                other => return Err(format!("an escape of {other:?}")),
            },
            '#' => {
                let rest = chars.as_str().trim();
                let (word, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                directive = Some((word.to_owned(), reason.to_owned()));
                break;
            }
            c => name.push(c),
        }
    }
    Ok(Point {
        ok,
        name: name.trim_end().to_owned(),
        directive,
        block: None,
    })
}

#[test]
fn tap_is_what_a_reader_of_tap_14_takes() {
    let text = tap(&events());
    let (plan, points) = read_tap(&text).unwrap();
    assert_eq!(
        (plan, points.len()),
        (10, 10),
        "nine scenarios and an entry of the baseline"
    );
    let by = |name: &str| {
        let found = points.iter().find(|point| point.name.ends_with(name));
        found.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    };
    let directive = |name: &str| by(name).directive.as_ref().map(|(word, _)| word.as_str());
    for (name, ok, word) in [
        ("/clean-exit", true, None),
        ("/holds-stdout[size=1]", false, None),
        ("/length-stop", true, None),
        ("/old-fault", false, Some(concat!("TO", "DO"))),
        ("/mended", false, None),
        ("/needs-more", true, Some("SKIP")),
        ("/nothing-seen", false, None),
        ("/stalled", false, None),
        ("/no-folder", false, None),
        ("baseline: holds-stdot / *", false, None),
    ] {
        assert_eq!((by(name).ok, directive(name)), (ok, word), "{name}");
        assert_eq!(by(name).block.is_none(), name == "/clean-exit", "{name}");
    }
    let block = by("/holds-stdout[size=1]").block.as_ref().unwrap();
    assert_eq!(block["verdict"], "fail");
    assert_eq!(block["checks"][0]["id"], "checks[1] call.settles");
    assert_eq!(
        block["kernel"],
        json!(["subject ended: exit 0", "no survivors"])
    );
    insta::assert_snapshot!(text);
}

#[test]
fn tap_stands_what_a_subject_wrote() {
    let (plan, points) = read_tap(&tap(&hostile())).unwrap();
    assert_eq!((plan, points.len()), (2, 2));
    assert!(
        points
            .iter()
            .all(|point| !point.ok && point.directive.is_none())
    );
    let block = points[0].block.as_ref().unwrap();
    assert_eq!(
        block["checks"][0]["seen"],
        crate::report::text::visible(HOSTILE)
    );
}

/// What was cut off is not a success to a reader of TAP, and neither is what was planned and never ran.
#[test]
fn tap_of_a_run_that_was_cut_off_has_no_whole_plan() {
    let mut events = events();
    let last = events.pop().unwrap();
    assert_eq!(read_tap(&tap(&events)).unwrap_err(), "no plan");
    events.truncate(5);
    events.push(last);
    let (plan, points) = read_tap(&tap(&events)).unwrap();
    assert_eq!((plan, points.len()), (9, 2));
    let nothing = [
        events[0].clone(),
        Event::Summary(Totals::Run(Summary::default())),
    ];
    assert!(tap(&nothing).ends_with("1..0 # SKIP nothing was selected\n"));
}

#[test]
fn github_annotations() {
    insta::assert_snapshot!(github(&events()));
}

#[test]
fn github_stands_what_a_subject_wrote() {
    let text = github(&hostile());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for line in &lines[..2] {
        let rest = line.strip_prefix("::error title=").unwrap();
        let (title, message) = rest.split_once("::").unwrap();
        assert!(!title.contains([':', ',']), "{title}");
        assert!(message.contains("100%25"), "{message}");
        let unescaped = message.replace("%25", "").replace("%0A", "");
        assert!(!unescaped.contains('%'), "{message}");
    }
    assert!(lines[2].starts_with("pi-conform on reference-delegator: 1 scenario, 0 pass, 2 not"));
}

#[test]
fn markdown_page() {
    insta::assert_snapshot!(markdown(&events()));
}

#[test]
fn markdown_stands_what_a_subject_wrote() {
    insta::assert_snapshot!(markdown(&hostile()));
}

/// A job's summary takes 1 MiB, and shows nothing of what is longer.
#[test]
fn markdown_fits_a_job_summary_however_much_fails() {
    let mut many = vec![events().remove(0)];
    for number in 0..4000 {
        let seen = "saw | much".repeat(100);
        let checks = vec![check(
            "checks[0] call.ok",
            Verdict::Fail,
            "call.ok is true",
            &seen,
        )];
        many.push(finished(&format!("fails-{number}"), Verdict::Fail, checks));
    }
    let summary = Summary {
        selected: 4000,
        fail: 4000,
        ..Summary::default()
    };
    many.push(Event::Summary(Totals::Run(summary)));
    let text = markdown(&many);
    assert!(text.len() < 1024 * 1024, "{} bytes", text.len());
    assert!(text.contains("#### fail") && text.contains(" more:"));
}

#[test]
fn badges_say_the_worst() {
    use Verdict::*;
    let badge = |verdicts: &[Verdict], selected: usize| {
        let mut summary = Summary {
            selected,
            ..Summary::default()
        };
        verdicts.iter().for_each(|verdict| summary.count(*verdict));
        let events = [Event::Summary(Totals::Run(summary))];
        let text = told(&events, |page| Box::new(Badge::new(page)));
        let badge: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(badge["schemaVersion"], 1);
        assert_eq!(badge["label"], "pi-conform");
        let word = |key: &str| badge[key].as_str().unwrap().to_owned();
        (word("message"), word("color"))
    };
    for (verdicts, selected, message, color) in [
        (
            &[Pass, Differs, NotApplicable][..],
            3,
            "2 pass",
            "brightgreen",
        ),
        (&[Pass, KnownFailure], 2, "1 pass, 1 known", "green"),
        (&[Pass, Fail, Stale], 3, "1 pass, 2 fail", "red"),
        (&[Pass, NoEvidence], 3, "incomplete, 2 open", "yellow"),
        (&[NotApplicable], 1, "nothing judged", "lightgrey"),
        (&[], 0, "nothing judged", "lightgrey"),
        (&[Fail, HarnessError], 2, "harness error", "lightgrey"),
    ] {
        let told = badge(verdicts, selected);
        assert_eq!(told, (message.to_owned(), color.to_owned()), "{verdicts:?}");
    }
}

fn html(events: &[Event]) -> String {
    told(events, |page| Box::new(crate::report::Html::new(page)))
}

/// The element that begins with `open`, up to `close`.
fn element<'p>(page: &'p str, open: &str, close: &str) -> &'p str {
    let from = page.find(open).unwrap_or_else(|| panic!("no {open}"));
    let rest = &page[from..];
    &rest[..rest.find(close).unwrap_or(rest.len())]
}

#[test]
fn html_tells_every_scenario_and_opens_failures() {
    let page = html(&events());
    for verdict in [
        "fail",
        "differs",
        "known-failure",
        "stale",
        "not-applicable",
        "no-evidence",
        "inconclusive",
        "harness-error",
    ] {
        let cards = page
            .matches(&format!("<details class=\"card v-{verdict}\""))
            .count();
        assert_eq!(cards, 1, "{verdict}");
        assert!(
            page.contains(&format!("id=\"show-{verdict}\"")),
            "{verdict} can be chosen"
        );
    }
    let fail = element(
        &page,
        "<details class=\"card v-fail\"",
        "<details class=\"card v-no",
    );
    for part in [
        " open>",
        "holds-stdout[size=1]",
        "A background helper that keeps the pipe open",
        "<code>drain.descendant-holds-stdout</code> A descendant that keeps",
        "call.settles comes within grace after a.exited",
        "<span class=\"witness\">claims</span> call.settled came 8000.0 ms",
        "1 of its checks pass",
        "<h4>journal</h4>",
        "no survivors",
        "call settled: two files",
        "pi-conform run &#x27;holds-stdout[size=1]&#x27;",
    ] {
        assert!(fail.contains(part), "`{part}` is not in\n{fail}");
    }
    let passes = element(&page, "<details class=\"passes\"", "</details>");
    assert!(passes.contains("clean-exit") && !passes.contains("holds-stdout"));
    assert!(page.contains("<code>holds-stdot &#x2f; *</code>"));
    assert!(page.contains("<b>9</b> scenarios"));
}

/// Nothing is taken from anywhere, and no script runs but the page's own, which stands there with its digest.
#[test]
fn html_stands_alone() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let page = html(&events());
    for outside in ["http:", "https:", "//", "src=", "@import", "url("] {
        let place = page
            .find(outside)
            .map(|at| &page[at.saturating_sub(60)..at + 20]);
        // Two slashes also begin a comment of the script.
        let comment = outside == "//" && place.is_some_and(|place| place.contains("<script>//"));
        assert!(place.is_none() || comment, "{outside}: {place:?}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    let script = element(&page, "<script>", "</script>").trim_start_matches("<script>");
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(script));
    assert!(page.contains(&format!("script-src 'sha256-{digest}'")));
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn html_stands_what_a_subject_wrote() {
    let mut events = hostile();
    if let Event::Run {
        subject,
        about,
        suite,
        ..
    } = &mut events[0]
    {
        for text in [subject, about, suite] {
            *text = HOSTILE.to_owned();
        }
    }
    let page = html(&events);
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(!page.contains("<b>|"));
    let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert_eq!(page.chars().find(|c| odd(*c)), None);
    // In an attribute no quote of a text ends the value.
    assert!(!page.contains("DO \"'"));
}

/// A heading for each level on the way, one label for each field, and names for what is scrolled or drawn.
#[test]
fn html_has_its_labels_and_headings() {
    let page = html(&events());
    let levels = regex::Regex::new("<h([1-6])").unwrap();
    let levels: Vec<u32> = levels
        .captures_iter(&page)
        .map(|found| found[1].parse().unwrap())
        .collect();
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
    for pair in levels.windows(2) {
        assert!(pair[1] <= pair[0] + 1, "{levels:?}");
    }
    for field in ["<input ", "<select "] {
        for (at, _) in page.match_indices(field) {
            let before = &page[..at];
            assert!(
                before.rfind("<label") > before.rfind("</label>"),
                "{}",
                &page[at..at + 60]
            );
        }
    }
    let ids = regex::Regex::new(r#" id="([^"]+)""#).unwrap();
    let mut ids: Vec<&str> = ids
        .captures_iter(&page)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id stands twice");
    assert!(page.contains("<html lang=\"en\">"));
}

#[test]
fn html_of_a_quiet_run_is_calm() {
    let mut summary = Summary {
        selected: 1,
        ..Summary::default()
    };
    summary.count(Verdict::Pass);
    let mut few: Vec<Event> = events().into_iter().take(3).collect();
    few.push(Event::Summary(Totals::Run(summary)));
    let page = html(&few);
    assert!(page.contains("conclusion fine\">all as expected"));
    assert!(!page.contains("class=\"card"));
}
