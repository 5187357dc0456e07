//! The simulated server: it plays a script over a real socket, and writes down when it did.
//!
//! The script is the truth. [`scripts`] makes one from a model name and an [`Ask`](ask::Ask), as
//! pure data, written once and spoken in the [`dialect`] of the request; [`server`] plays it;
//! [`ledger`] holds the instant before each write. A test can therefore hold any measured figure
//! against the script, or against the ledger of the same run.

mod alarm;
pub mod ask;
pub mod clock;
mod connection;
pub mod dialect;
mod framed;
mod h2;
mod http;
pub mod ledger;
pub mod library;
mod outlet;
mod play;
mod replies;
mod routes;
pub mod script;
pub mod scripts;
pub mod server;
mod tape;
pub mod tls;
mod voices;
mod wire;
mod worker;
