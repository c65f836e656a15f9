//! A fake child's script as far as a model can play it: for delegators whose child is a session inside the parent.
//!
//! What a model says, and when, is all there is of such a child. Acts that are about processes, pipes or records have no meaning
//! there, and a scenario that has one does not apply.

use std::time::Duration;

use fake_pi::act::{Act, Child, FullReply, Reply as Said, Stream, Wait, WaitFor};
use serde_json::json;

use super::script::{Cut, Reply, Step, Words, Yes};

/// Deltas of a stream without end: more than any scenario waits for.
const ENDLESS: u64 = 20_000;
/// Bytes of an answer that a model is made to say.
const LONGEST: u64 = 64 << 20;

/// The replies of one child, in order, for requests that carry its mark. `None`: a model alone cannot play it.
pub fn replies(name: &str, child: &Child) -> Option<Vec<Reply>> {
    let acts = match child {
        Child::Acts(acts) => acts,
        Child::Full(full) if full.on.is_empty() && full.when.is_none() => &full.acts,
        Child::Full(_) => return None,
    };
    let mut played = Played {
        mark: Words::One(format!("kit-child-{name} ")),
        replies: Vec::new(),
        steps: Vec::new(),
        over: false,
    };
    for act in acts {
        played.act(act)?;
    }
    if !played.steps.is_empty() {
        // What was begun and not finished: the stream just ends.
        played.steps.push(Step::Cut(Cut::Fin));
        played.finish();
    }
    Some(played.replies)
}

/// Points that the child's script reaches, in order; they count as reached once its model was asked.
pub fn reaches(child: &Child) -> Vec<&str> {
    let acts = match child {
        Child::Acts(acts) => acts,
        Child::Full(full) => &full.acts,
    };
    acts.iter()
        .filter_map(|act| match act {
            Act::Reach(name) => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

struct Played {
    mark: Words,
    replies: Vec<Reply>,
    steps: Vec<Step>,
    over: bool,
}

impl Played {
    fn act(&mut self, act: &Act) -> Option<()> {
        match act {
            Act::Accept(_) | Act::Reach(_) => {}
            // Nothing follows the answer of a session but its end.
            Act::Exit(0) if self.over => {}
            Act::Stream(stream) => self.stream(stream),
            Act::Wait(Wait::For(span)) => self.steps.push(Step::SleepMs(millis(span.0))),
            Act::Wait(Wait::Until(WaitFor::Barrier(name))) => {
                self.steps.push(Step::Wait(name.clone()));
            }
            Act::Hang(_) => {
                if !self.over {
                    self.steps.push(Step::Hang(Yes));
                    self.finish();
                }
            }
            Act::Answer(said) | Act::Reply(said) => self.answer(said)?,
            _ => return None,
        }
        Some(())
    }

    fn stream(&mut self, stream: &Stream) {
        for _ in 0..stream.times.unwrap_or(ENDLESS) {
            self.steps.push(Step::Text(stream.text.clone()));
            if let Some(every) = stream.every {
                self.steps.push(Step::SleepMs(millis(every.0).max(1)));
            }
        }
    }

    fn answer(&mut self, said: &Said) -> Option<()> {
        let full = match said {
            Said::Text(text) => FullReply {
                text: Some(text.clone()),
                ..FullReply::default()
            },
            Said::Full(full) => (**full).clone(),
        };
        let ordinary = full.tools.is_empty()
            && full.echo.is_none()
            && full.error_repeat.is_none()
            && full.settle != Some(false)
            && full.settled != Some(false);
        if !ordinary {
            return None;
        }
        if let Some(thinking) = &full.thinking {
            self.steps.push(Step::Thinking(thinking.clone()));
        }
        let text = text(&full)?;
        if let Some(error) = full.error {
            if text.is_empty() && self.steps.is_empty() {
                self.replies.push(Reply {
                    match_any: Some(self.mark.clone()),
                    status: Some(400),
                    body: Some(json!({"error": {"message": error}})),
                    ..Reply::default()
                });
                self.over = true;
                return Some(());
            }
            self.steps.push(Step::Text(text));
            self.steps.push(Step::Error(json!({"message": error})));
            self.steps.push(Step::Cut(Cut::Fin));
        } else {
            if !text.is_empty() {
                self.steps.push(Step::Text(text));
            }
            match full.stop.as_deref() {
                None | Some("stop") => self.steps.push(Step::Finish("stop".to_owned())),
                Some("length") => self.steps.push(Step::Finish("length".to_owned())),
                Some(_) => return None,
            }
        }
        self.finish();
        self.over = true;
        Some(())
    }

    fn finish(&mut self) {
        self.replies.push(Reply {
            match_any: Some(self.mark.clone()),
            steps: std::mem::take(&mut self.steps),
            ..Reply::default()
        });
    }
}

fn text(full: &FullReply) -> Option<String> {
    if let Some(repeat) = &full.repeat {
        let bytes = repeat.bytes.map(|size| size.0);
        let times = repeat.times.unwrap_or(u64::MAX);
        let most = bytes.unwrap_or(LONGEST);
        if most > LONGEST || repeat.piece.is_empty() {
            return None;
        }
        let mut text = repeat.before.clone();
        let mut count = 0;
        while count < times && (text.len() as u64) < most {
            text.push_str(&repeat.piece);
            count += 1;
        }
        let cut = text.floor_char_boundary(usize::try_from(most).ok()?.min(text.len()));
        text.truncate(cut);
        return Some(text);
    }
    if !full.blocks.is_empty() {
        return Some(full.blocks.concat());
    }
    Some(full.text.clone().unwrap_or_default())
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(acts: &str) -> Child {
        serde_saphyr::from_str(acts).unwrap()
    }

    #[test]
    fn what_a_model_says_is_played_and_what_a_process_does_is_not() {
        let played = replies(
            "a",
            &child("[{accept: prompt}, {answer: {text: half, stop: length}}, {exit: 0}]"),
        )
        .unwrap();
        assert_eq!(
            played[0].steps,
            [Step::Text("half".into()), Step::Finish("length".into())]
        );
        let refused = replies("a", &child("[{answer: {error: boom}}]")).unwrap();
        assert_eq!(refused[0].status, Some(400));
        let hangs = replies(
            "a",
            &child("[{stream: {text: 'on ', times: 1}}, {hang: true}]"),
        )
        .unwrap();
        assert_eq!(hangs[0].steps, [Step::Text("on ".into()), Step::Hang(Yes)]);
        for acts in [
            "[{exit: 3}]",
            "[{answer: x}, {exit: 3}]",
            "[{raw: x}]",
            "[{descendant: {}}]",
            "[{answer: {echo: call}}]",
            "{acts: [{hang: true}], on: {term: []}}",
        ] {
            assert_eq!(replies("a", &child(acts)), None, "{acts}");
        }
    }
}
