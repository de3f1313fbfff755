//! What a logon costs a server of this machine: `cargo xtask bench logons`.
//!
//! Prints the time and the server's CPU time of one logon, in microseconds, of as many as are asked for; a tenth as many go
//! before.
//!
//!     logons TARGET TIMES SERVER-PID
#![expect(clippy::unwrap_used, reason = "a program for measuring")]

use anabranch_load::logons::{Cost, log_on};
use anabranch_load::target::Target;
use anabranch_load::{Access, Server, ServerProcess};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, times, pid] = &arguments[..] else { panic!("logons TARGET TIMES SERVER-PID") };
    let target: Target = target.parse().unwrap();
    let times: u32 = times.parse().unwrap();
    let process = Some(ServerProcess { pid: pid.parse().unwrap() });
    let access = Access { server: Server { process, ..Server::default() }, ..Access::default() };
    log_on(&target, &access, times / 10).unwrap();
    let Cost { seconds, server_cpu_seconds } = log_on(&target, &access, times).unwrap();
    let of_one = |seconds: f64| seconds * 1e6 / f64::from(times);
    println!("{:.1}\t{:.1}", of_one(seconds), of_one(server_cpu_seconds.unwrap()));
}
