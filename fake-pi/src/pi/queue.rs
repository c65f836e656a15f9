//! Messages that wait for their turn: steer and follow_up.

use serde_json::{Value, json};

/// How many waiting messages one turn takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// `one-at-a-time`.
    #[default]
    One,
    /// `all`.
    All,
}

impl Take {
    /// By its name on the wire; anything but `all` is one at a time.
    pub fn from_name(name: &str) -> Self {
        if name == "all" { Self::All } else { Self::One }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one-at-a-time",
            Self::All => "all",
        }
    }
}

/// The two queues. They outlive runs: what was not delivered waits for the next prompt.
#[derive(Debug, Default)]
pub struct Queue {
    /// Delivered before the next model call.
    pub steering: Vec<String>,
    /// Delivered when the run would end.
    pub follow_up: Vec<String>,
    /// How many steering messages a turn takes.
    pub steering_mode: Take,
    /// How many follow-ups a turn takes.
    pub follow_up_mode: Take,
}

impl Queue {
    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    /// The steering messages that the next turn takes. They stay listed until [`Queue::delivered`].
    pub fn next_steering(&self) -> Vec<String> {
        next(&self.steering, self.steering_mode)
    }

    /// The follow-ups that the next turn takes. They stay listed until [`Queue::delivered`].
    pub fn next_follow_up(&self) -> Vec<String> {
        next(&self.follow_up, self.follow_up_mode)
    }

    /// Takes one message off, now that it enters the conversation. Whether it was there.
    pub fn delivered(&mut self, text: &str) -> bool {
        for queue in [&mut self.steering, &mut self.follow_up] {
            if let Some(at) = queue.iter().position(|waiting| waiting == text) {
                queue.remove(at);
                return true;
            }
        }
        false
    }

    /// The `queue_update` record.
    pub fn record(&self) -> Value {
        json!({"type": "queue_update", "steering": self.steering, "followUp": self.follow_up})
    }
}

fn next(queue: &[String], mode: Take) -> Vec<String> {
    match mode {
        Take::One => queue.first().cloned().into_iter().collect(),
        Take::All => queue.to_vec(),
    }
}
