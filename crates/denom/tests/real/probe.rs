//! The probe in front of real hops: of llama.cpp's server, and of the simulated one.
//!
//! Verdicts are asserted, never a speed. HAProxy's bundles show only where several tokens come in 200 ms, so in front of
//! llama.cpp they are asserted by what the server itself declares.

use std::process::Command;
use std::sync::{LazyLock, PoisonError};

use denom::sim::server::{Config, Running, Server};
use serde_json::{Value, json};

use crate::parts::{self, SERVER};

/// The simulated server, where the hops expect it.
static SIMULATED: LazyLock<Running> = LazyLock::new(|| {
    let port: u16 = parts::variable("REAL_SIM_PORT").parse().expect("a port");
    let config = Config {
        listen: ([127, 0, 0, 1], port).into(),
        ..Config::default()
    };
    Server::start(&config).expect("the port that ci/real-parts chose is free")
});

/// The exit code and the report of a probe.
fn probe(base: &str, more: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command.args(["probe", &format!("{base}/v1/chat/completions")]);
    command.args(["--quiet", "--format", "json", "--timeout", "280s"]);
    command.args(more);
    let output = parts::finished(&mut command);
    (output.status.code(), parts::parsed(&command, &output))
}

fn verdict(report: &Value, side: usize) -> &str {
    report["paths"][side]["verdict"]["kind"]
        .as_str()
        .unwrap_or_else(|| panic!("no verdict in {report}"))
}

fn is(base: &str, more: &[&str], kind: &str, code: i32) -> Value {
    let (found, report) = probe(base, more);
    let why = &report["paths"][0]["verdict"];
    assert_eq!(
        (verdict(&report, 0), found),
        (kind, Some(code)),
        "{why} {}",
        report["evidence"]
    );
    report
}

fn simulated(route: &str, more: &[&str], kind: &str, code: i32) -> Value {
    LazyLock::force(&SIMULATED);
    let base = parts::variable(&format!("REAL_SIM_{route}"));
    is(
        &base,
        &[&["-m", "normal", "--lengths", "8,32,128"], more].concat(),
        kind,
        code,
    )
}

#[test]
fn each_hop_in_front_of_the_simulated_server_is_told() {
    let direct = SIMULATED.url();
    std::thread::scope(|scope| {
        let ask = |route: &'static str, kind, code| {
            scope.spawn(move || simulated(route, &[], kind, code));
        };
        scope.spawn(|| {
            is(
                &direct,
                &["-m", "normal", "--lengths", "8,32,128"],
                "streams",
                0,
            )
        });
        ask("ONE", "streams", 0);
        ask("HOPS", "buffers", 1);
        ask("HAPROXY", "bundles_by_time", 1);
        ask("NODELAY", "streams", 0);
        ask("VARNISH", "buffers", 1);
        scope.spawn(|| {
            let report = simulated("SMALL", &[], "bundles_by_size", 1);
            let bytes = &report["paths"][0]["verdict"]["bundle_bytes"];
            let bytes = bytes.as_f64().expect("a size");
            assert!((3_900.0..4_200.0).contains(&bytes), "{bytes}");
        });
        scope.spawn(|| gzip_is_found(&simulated("GZIP", &["--as-sdk"], "streams", 1)));
    });
}

fn gzip_is_found(report: &Value) {
    assert_eq!(
        verdict(report, 1),
        "buffers",
        "{}",
        report["paths"][1]["verdict"]
    );
    assert_eq!(report["comparisons"][0]["differs"], true);
}

/// Few tokens, since a busy machine makes only a few a second, and always as many as asked for.
fn never_stops() -> Vec<String> {
    let body = parts::scratch("probe").join("body.json");
    parts::write(
        &body,
        &json!({ "ignore_eos": true, "temperature": 0 }).to_string(),
    );
    let body = body.display().to_string();
    ["--lengths", "2,8,32", "--body", &body]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn each_hop_in_front_of_the_real_server_is_told() {
    let _alone = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let given = never_stops();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let route = |name: &str| parts::variable(&format!("REAL_{name}"));
    let direct = route("DIRECT");
    let hops = [&given[..], &["--direct", &direct]].concat();
    let held = is(&route("HOPS"), &hops, "buffers", 1);
    assert_eq!(
        verdict(&held, 1),
        "streams",
        "{}",
        held["paths"][1]["verdict"]
    );
    abilities_are_seen(&held["paths"][1]);
    let compared = &held["comparisons"][0];
    assert!(
        compared["text"]
            .as_str()
            .is_some_and(|text| text.contains("what stands between"))
    );
    is(&route("VARNISH"), &given, "buffers", 1);
    is(&route("NODELAY"), &given, "streams", 0);
    let sdk = [&given[..], &["--as-sdk"]].concat();
    gzip_is_found(&is(&route("GZIP"), &sdk, "streams", 1));
    // Several of a timer's 200 ms must fit into the longest answer, or there is nothing to tell.
    let longer: Vec<&str> = given
        .iter()
        .map(|flag| if *flag == "2,8,32" { "8,32,128" } else { flag })
        .collect();
    let (_, bundled) = probe(&route("HAPROXY"), &longer);
    let declared = bundled["declared"]["generation"]["p50"]["value"].as_f64();
    if declared.is_some_and(|rate| rate > 20.0) {
        assert_eq!(
            verdict(&bundled, 0),
            "bundles_by_time",
            "{}",
            bundled["evidence"]
        );
    }
}

fn abilities_are_seen(path: &Value) {
    let seen = |code: &str| {
        let all = path["supports"].as_array().expect("a list");
        let one = all.iter().find(|one| one["code"] == code);
        one.unwrap_or_else(|| panic!("no {code} in {all:?}"))["seen"].clone()
    };
    assert_eq!(seen("usage_in_stream"), true);
    assert_eq!(seen("length_obeyed"), true);
    let says = path["says"].as_array().expect("a list");
    assert!(
        says.iter().any(|said| said["what"] == "X-Accel-Buffering"),
        "{says:?}"
    );
    // What it declares and what is inferred stand apart, each named as what it is.
    assert_eq!(path["declared"]["generation"]["evidence"], "declared");
    assert_eq!(path["inferred"]["time_per_token"]["evidence"], "inferred");
}
