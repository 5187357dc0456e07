//! Owns the signal that tells running exchanges to stop at once.

use tokio::sync::watch;

/// Gives the signal, from any thread.
#[derive(Debug)]
pub struct Canceller(watch::Sender<bool>);

/// Hears the signal.
#[derive(Debug, Clone)]
pub struct Cancel(watch::Receiver<bool>);

impl Canceller {
    /// A signal not yet given, and one who hears it.
    pub fn new() -> (Self, Cancel) {
        let (sender, receiver) = watch::channel(false);
        (Canceller(sender), Cancel(receiver))
    }

    /// Gives the signal, for good. Giving it twice changes nothing.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

impl Cancel {
    /// Whether the signal was given.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal; for ever if who could give it is gone.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|given| *given).await.is_err() {
            std::future::pending().await
        }
    }
}
