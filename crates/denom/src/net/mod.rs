//! The network: a stamped socket, a connection of our own, and one HTTP exchange on it.
//!
//! Lower modules know nothing of higher ones: `tap` and `wake` hold what is known of reads, `unread`
//! what waits for one, `source` and `socket` read and stamp, `http` speaks either version, `tls`,
//! `target` and `connect` open, `exchange` drives a request.

pub mod cancel;
pub mod connect;
pub mod exchange;
pub mod limits;
pub mod target;
pub mod tls;
pub mod wake;

mod answer;
mod deadline;
mod h2_io;
mod http;
mod io;
mod socket;
mod source;
mod speak;
mod tap;
mod turns;
mod unread;

pub use cancel::{Cancel, Canceller};
pub use connect::{
    ConnectError, ConnectOptions, Connection, Opened, Phase, StampMode, connect, connect_over,
};
pub use exchange::{
    BodyEnd, Break, Exchanged, Progress, RequestError, RequestFault, Sink, Timeouts, Waiting,
};
pub use http::HttpVersion;
pub use target::Target;
pub use unread::{Looks, Unread};
pub use wake::{Wake, Worker};

#[cfg(test)]
mod tests;
