//! Tests over real sockets and processes, all on loopback.

mod audit;
mod exact;
mod instants;
mod run;
mod serve;
mod sim;
