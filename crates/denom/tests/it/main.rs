//! Tests over real sockets and processes, all on loopback.

mod exact;
mod instants;
mod path;
mod probe;
mod run;
mod serve;
mod sim;
