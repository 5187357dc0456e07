//! Owns the gate: the first request of a run goes alone until its head arrives.

use tokio::sync::watch;

/// What the first request's head meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// Not known yet.
    Shut,
    /// Others may go.
    Open,
    /// The run ends here; the sentence says why.
    Ended(String),
}

/// Holds everyone back until the first request is answered.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<Passage>);

impl Gate {
    /// A gate that is shut.
    pub fn shut() -> Self {
        Gate(watch::Sender::new(Passage::Shut))
    }

    /// Lets everyone through, unless the run was ended.
    pub fn open(&self) {
        self.0.send_if_modified(|passage| {
            let shut = *passage == Passage::Shut;
            if shut {
                *passage = Passage::Open;
            }
            shut
        });
    }

    /// Ends the run.
    pub fn end(&self, why: String) {
        self.0.send_replace(Passage::Ended(why));
    }

    /// Waits until it is known; `false` if the run was ended.
    pub async fn pass(&self) -> bool {
        let mut watch = self.0.subscribe();
        match watch.wait_for(|passage| *passage != Passage::Shut).await {
            Ok(passage) => *passage == Passage::Open,
            Err(_) => false,
        }
    }

    /// Whether others may go by now.
    pub fn is_open(&self) -> bool {
        *self.0.borrow() == Passage::Open
    }

    /// Why the run was ended, if it was.
    pub fn ended(&self) -> Option<String> {
        match &*self.0.borrow() {
            Passage::Ended(why) => Some(why.clone()),
            _ => None,
        }
    }
}
