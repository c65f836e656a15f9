//! Tokens and what they cost, with JavaScript's arithmetic.

use serde_json::{Value, json};

use super::js;
use super::options::{Api, Cost, Model};
use crate::act::Flavour;

/// Token counts as Pi keeps them, for one answer. `input` is without cached tokens; `reasoning` is part of `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Prompt tokens that were neither read from nor written to the cache.
    pub input: u64,
    /// Completion tokens.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
}

impl Tokens {
    /// All tokens of the answer: what counts against the context window.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// What they cost, in the order input, output, cache read, cache write. Rates are for a million tokens.
    pub fn costs(&self, rates: &Cost) -> [f64; 4] {
        #[expect(
            clippy::cast_precision_loss,
            reason = "JavaScript counts in doubles too"
        )]
        let part = |rate: f64, tokens: u64| rate / 1e6 * tokens as f64;
        [
            part(rates.input, self.input),
            part(rates.output, self.output),
            part(rates.cache_read, self.cache_read),
            part(rates.cache_write, self.cache_write),
        ]
    }

    /// The sum of [`Tokens::costs`], added from left to right.
    pub fn cost(&self, rates: &Cost) -> f64 {
        let [input, output, read, write] = self.costs(rates);
        input + output + read + write
    }

    /// The `usage` object as the provider's numbers make it.
    pub fn record(&self, flavour: Flavour, api: Api, rates: &Cost) -> Value {
        shape(self, self.costs(rates), self.cost(rates), flavour, api)
    }
}

/// The `usage` object of several replies together: tokens and costs added one after the other.
pub fn sum(parts: &[Tokens], flavour: Flavour, model: &Model) -> Value {
    let mut tokens = Tokens::default();
    let (mut costs, mut total) = ([0.0; 4], 0.0);
    for part in parts {
        tokens.input += part.input;
        tokens.output += part.output;
        tokens.cache_read += part.cache_read;
        tokens.cache_write += part.cache_write;
        tokens.reasoning += part.reasoning;
        for (sum, cost) in costs.iter_mut().zip(part.costs(&model.cost)) {
            *sum += cost;
        }
        total += part.cost(&model.cost);
    }
    shape(&tokens, costs, total, flavour, model.api)
}

fn shape(tokens: &Tokens, costs: [f64; 4], total: f64, flavour: Flavour, api: Api) -> Value {
    let [input, output, read, write] = costs.map(js::number);
    let mut usage = json!({
        "input": tokens.input,
        "output": tokens.output,
        "cacheRead": tokens.cache_read,
        "cacheWrite": tokens.cache_write,
    });
    let newer = flavour == Flavour::V1_6_0;
    if newer && api == Api::Completions {
        usage["reasoning"] = json!(tokens.reasoning);
    }
    usage["totalTokens"] = json!(tokens.total());
    usage["cost"] = json!({"input": input, "output": output, "cacheRead": read, "cacheWrite": write, "total": js::number(total)});
    if newer {
        usage["cost"]["totalFromProvider"] = json!(false);
        if api == Api::Messages {
            usage["cacheWrite1h"] = json!(0);
        }
    }
    usage
}

/// The `usage` object before the provider has said anything.
pub fn nothing() -> Value {
    json!({
        "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
    })
}
