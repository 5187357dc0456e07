//! Tests over real sockets and processes, all on loopback.

mod audit;
mod claim;
mod client;
mod exact;
mod faults;
mod faults_net;
mod hostile;
mod instants;
mod open;
mod path;
mod probe;
mod run;
mod scripted;
mod secrets;
mod serve;
mod sim;
mod tally;
