//! The HTML report in a real browser: it is drawn, in light and dark, wide and narrow, with and without its script.
//!
//! Without Chromium the trials show as ignored, with what was looked for; with `PI_CONFORM_CHROMIUM=required` they fail instead.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has said so, and its own harness captures nothing"
)]

mod browser;
mod page;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use browser::{Browser, Image, Scheme};
use page::Page;

/// Colours of the page's style in the two schemes: ground, failure, a child's bar.
const LIGHT: [[u8; 3]; 3] = [[0xfa, 0xfa, 0xf8], [0xb3, 0x26, 0x1e], [0x9f, 0xcf, 0xe0]];
const DARK: [[u8; 3]; 3] = [[0x12, 0x14, 0x17], [0xff, 0x8a, 0x80], [0x2f, 0x64, 0x78]];

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    type Body = fn(&Browser, &Page);
    let all: [(&str, Body); 5] = [
        ("light_and_wide", |browser, page| {
            drawn(browser, page, Scheme::Light, 1280);
        }),
        ("dark_and_wide", |browser, page| {
            drawn(browser, page, Scheme::Dark, 1280);
        }),
        ("light_and_narrow", |browser, page| {
            drawn(browser, page, Scheme::Light, 480);
        }),
        ("its_script_runs_and_no_other", its_script_runs),
        ("without_scripts", without_scripts),
    ];
    let trials = all.into_iter().map(|(name, body)| {
        Trial::ignorable_test(name, move || -> Result<Completion, Failed> {
            let Some(browser) = Browser::find() else {
                let missing = format!(
                    "no browser on PATH; looked for {}",
                    browser::NAMES.join(", ")
                );
                let required = std::env::var_os("PI_CONFORM_CHROMIUM")
                    .is_some_and(|value| value == "required");
                return if required {
                    Err(missing.into())
                } else {
                    Ok(Completion::ignored_with(missing))
                };
            };
            body(&browser, &Page::make());
            Ok(Completion::Completed)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// The page has the scheme's ground, and the picture's bars are on it: the child's, and the survivor's in the colour of
/// failures.
fn drawn(browser: &Browser, page: &Page, scheme: Scheme, width: u32) {
    holds(&browser.screenshot(page, scheme, width), scheme);
}

fn holds(image: &Image, scheme: Scheme) {
    let [ground, failure, child] = match scheme {
        Scheme::Light => LIGHT,
        Scheme::Dark => DARK,
    };
    assert_eq!(image.at(2, 2), ground);
    // Marks stand on it, so its longest run is shorter than the bar.
    let run = image.longest(child);
    assert!(run >= 30, "the child's bar: {run}");
    if image.width > 1000 {
        // Eight rows of them are the totals; at 480 the survivor is out of sight, to the right.
        let rows = image.rows_with(failure, 300);
        assert!(rows >= 8 + 8, "rows of the survivor: {rows}");
    }
    // Nothing makes the page wider than its window.
    for y in (0..image.height).step_by(7) {
        assert_eq!(
            image.at(image.width - 3, y),
            ground,
            "at the right edge, line {y}"
        );
    }
}

fn its_script_runs(browser: &Browser, page: &Page) {
    let dom = browser.dom(page);
    // The script has counted, so the page's policy let it run; what the subject wrote did not run.
    assert!(dom.contains(">3 of 3 shown</output>"), "{dom}");
    assert!(
        !dom.contains("<i data-broken"),
        "a subject's text became an element"
    );
    has_the_failure(&dom);
}

/// Without its script the page shows the same, but for what needs the script. A script that is not the page's own does not run:
/// the policy in the page names its digest.
fn without_scripts(browser: &Browser, page: &Page) {
    page.spoil_its_script();
    let dom = browser.dom(page);
    has_the_failure(&dom);
    let hidden = dom.matches("class=\"scripted\" hidden").count();
    assert_eq!(hidden, 3, "what needs the script is hidden");
    for verdict in ["fail", "pass", "differs"] {
        assert!(dom.contains(&format!("id=\"show-{verdict}\"")), "{verdict}");
    }
    holds(
        &browser.screenshot(page, Scheme::Light, 1280),
        Scheme::Light,
    );
}

/// The failing scenario stands there, open, with its picture and its texts.
fn has_the_failure(dom: &str) {
    let card = dom.split("<details class=\"card v-fail\"").nth(1).unwrap();
    let card = card.split("<details class=\"card").next().unwrap();
    for part in [
        "open=\"\"",
        "holds-stdout",
        "bar survives",
        "class=\"bar child\"",
        "class=\"mark signal\"",
        "class=\"call\"",
        "class=\"stall\"",
        "still alive",
        "&lt;/script&gt;&lt;i data-broken&gt;",
        "pi-conform run 'holds-stdout'",
    ] {
        assert!(card.contains(part), "`{part}` is not in\n{card}");
    }
}
