//! Owns the stamp of one socket read: when its bytes reached this machine, and how late we looked.

use serde::{Deserialize, Serialize};

use crate::time::{Instant, Length};

/// Where the arrival time of a read came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampSource {
    /// The kernel's receive stamp, converted to the run's clock at the read.
    Kernel,
    /// One clock read directly after the read returned.
    Read,
}

/// The stamp that every byte of one socket read shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// When the bytes reached this machine, by `source`.
    pub at: Instant,
    /// Where `at` came from.
    pub source: StampSource,
    /// At least so late was this client: read − kernel stamp. `None` without a kernel stamp.
    pub lag_low: Option<Length>,
    /// At most so late was this client: read − the later of the worker's last wake and its
    /// previous look at this socket.
    pub lag_high: Length,
    /// The kernel's stamp ran backwards, or past its own read, by more than 1 µs and was clamped.
    pub clamped: bool,
}
