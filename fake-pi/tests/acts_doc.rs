//! `docs/acts.md`: every example is a right script, and every act has one.

use fake_pi::act::Script;
use fake_pi::load;

const TEXT: &str = include_str!("../../docs/acts.md");

/// The YAML blocks, each as a whole script.
fn scripts() -> Vec<Script> {
    let blocks = TEXT.split("```yaml\n").skip(1);
    blocks
        .map(|block| {
            let block = block.split("```").next().unwrap_or_default();
            let whole = if block.starts_with("- ") {
                let acts: String = block.lines().map(|line| format!("    {line}\n")).collect();
                format!("children:\n  a:\n{acts}")
            } else {
                block.to_owned()
            };
            load::parse("docs/acts.md", &whole)
                .unwrap_or_else(|report| panic!("{report:?}\n{whole}"))
        })
        .collect()
}

#[test]
fn every_example_is_a_right_script_and_every_act_has_one() {
    let examples = serde_json::to_string(&scripts()).unwrap();
    let schema = serde_json::to_value(schemars::schema_for!(Script)).unwrap();
    let acts = schema["$defs"]["Act"]["oneOf"].as_array().unwrap();
    assert!(acts.len() > 30);
    for act in acts {
        let name = act["required"][0].as_str().unwrap();
        assert!(
            examples.contains(&format!("{{\"{name}\":")),
            "no example of `{name}`"
        );
        assert!(
            TEXT.contains(&format!("`{name}`")),
            "`{name}` is not explained"
        );
    }
}
