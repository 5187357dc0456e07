//! Owns the record file's header: every setting that shaped the run, none of its secrets.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use measure::api::clip;
use measure::prompt::{Source, describe};
use measure::record::{FORMAT, Header, SelfCheck};

use super::discover::Found;
use crate::clock::RunClock;
use crate::config::{CONNECT_TIMEOUT, Config, GRACE};

/// Most bytes of the endpoint's address that are kept; in some APIs the model's name is part of it.
pub const SHOWN_URL: usize = 2_048;
/// Most bytes of the model's name that are kept.
const SHOWN_MODEL: usize = 512;

/// A random name for a run.
pub fn run_name() -> String {
    format!("{:012x}", RandomState::new().build_hasher().finish() >> 16)
}

/// The header of a run.
pub fn header(config: &Config, found: &Found, clock: RunClock, run: &str) -> Header {
    let path = config
        .endpoint
        .path_for(found.api, &found.model, config.stream);
    let mut header = Header {
        format: FORMAT.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        run: run.into(),
        began_unix_ns: clock.realtime_at_start_ns(),
        origin_monotonic_ns: clock.origin_monotonic_ns(),
        stamp: config.stamp,
        url: clip(
            &config.scrub.apply(&config.endpoint.shown(&path)),
            SHOWN_URL,
        ),
        redactions: config.endpoint.redactions.clone(),
        api: found.api,
        model: clip(&found.model, SHOWN_MODEL),
        stream: config.stream,
        http: config.http.as_str().into(),
        tls: match (config.endpoint.tls, config.insecure) {
            (false, _) => "off".into(),
            (true, true) => "insecure".into(),
            (true, false) => "verified".into(),
        },
        min_chunks: config.guards.min_chunks,
        min_interval: config.guards.min_interval,
        seed: config.seed,
        input_tokens: describe(&config.source),
        output_tokens: config.output_tokens.to_string(),
        plan_hash: String::new(),
        vocabulary: None,
        self_check: SelfCheck::NotDue,
        levels: config.levels.clone(),
        lead: config.lead,
        settings: settings(config),
        environment: environment(),
    };
    header.plan_hash = plan_hash(&header, config);
    header
}

fn settings(config: &Config) -> BTreeMap<String, String> {
    let none = || "none".to_owned();
    BTreeMap::from([
        ("timeout".into(), config.timeout.to_string()),
        (
            "max_time".into(),
            config.max_time.map_or_else(none, |time| time.to_string()),
        ),
        ("connect_timeout".into(), CONNECT_TIMEOUT.to_string()),
        ("grace".into(), GRACE.to_string()),
        (
            "on_429".into(),
            if config.pauses { "pause" } else { "none" }.into(),
        ),
        ("prefix_tokens".into(), config.prefix_tokens.to_string()),
        ("keep_text".into(), config.keep_text.to_string()),
        (
            "body_fields".into(),
            config.body.keys().cloned().collect::<Vec<_>>().join(" "),
        ),
        (
            "header_names".into(),
            config
                .headers
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>()
                .join(" "),
        ),
    ])
}

fn environment() -> BTreeMap<String, String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    BTreeMap::from([
        ("os".into(), std::env::consts::OS.into()),
        ("arch".into(), std::env::consts::ARCH.into()),
        ("cores".into(), cores.to_string()),
    ])
}

/// Equal hashes mean equal levels, lengths, seed, prompts and bodies.
fn plan_hash(header: &Header, config: &Config) -> String {
    let plan = serde_json::json!({
        "levels": header.levels,
        "seed": header.seed,
        "input": header.input_tokens,
        "output": header.output_tokens,
        "prefix": config.prefix_tokens,
        "body": config.body,
        "stream": header.stream,
        "model": header.model,
        "api": header.api,
        "prompts": match &config.source {
            Source::Words(_) => String::new(),
            Source::File(prompts) => format!("{prompts:?}"),
        },
    });
    let digest = ring::digest::digest(&ring::digest::SHA256, plan.to_string().as_bytes());
    digest
        .as_ref()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
