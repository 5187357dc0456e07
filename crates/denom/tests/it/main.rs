//! Tests over real sockets and processes, all on loopback.

mod audit;
mod claim;
mod exact;
mod faults;
mod instants;
mod path;
mod probe;
mod run;
mod serve;
mod sim;
mod tally;
