//! Tests over real sockets and processes, all on loopback.

mod exact;
mod faults_net;
mod hostile;
mod instants;
mod run;
mod scripted;
mod secrets;
mod serve;
mod sim;
