//! Owns the denominators: bases of time, and what else a rate may be per.

use serde::Serialize;

/// What a denominator other than time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// One of the things served at once: a user, a stream, a request.
    Stream,
    /// One of several that do the work: an agent, a runner.
    Worker,
    /// A part of the hardware: a GPU, a node, a rack.
    Machine,
    /// All of it: the system, the cluster.
    Whole,
    /// What it costs: a dollar, a watt.
    Cost,
}

/// A denominator other than time, by its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entity {
    /// Its name in the singular.
    pub name: &'static str,
    /// What it is.
    pub class: Class,
}

/// A base of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time {
    /// `second`, `hour`, …
    pub name: &'static str,
    /// As it stands after "/".
    pub short: &'static str,
    /// In seconds.
    pub seconds: f64,
}

pub(super) const SECOND: Time = time("second", "s", 1.0);

pub(super) const MINUTE: Time = time("minute", "min", 60.0);

const fn time(name: &'static str, short: &'static str, seconds: f64) -> Time {
    Time {
        name,
        short,
        seconds,
    }
}

/// The base of time that a word names.
pub(super) fn time_of(word: &str) -> Option<Time> {
    // A month and a year are the mean ones of the calendar.
    Some(match word {
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "ms" | "millisecond" | "milliseconds" => time("millisecond", "ms", 1e-3),
        "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" | "hourly" => time("hour", "h", 3_600.0),
        "d" | "day" | "days" | "daily" => time("day", "day", 86_400.0),
        "wk" | "week" | "weeks" | "weekly" => time("week", "week", 604_800.0),
        "mo" | "month" | "months" | "monthly" => time("month", "month", 2_629_746.0),
        "yr" | "year" | "years" | "annum" => time("year", "year", 31_556_952.0),
        _ => return None,
    })
}

const ENTITIES: [(&str, Class, &[&str]); 30] = [
    (
        "user",
        Class::Stream,
        &["user", "users", "u", "customer", "customers", "person"],
    ),
    (
        "stream",
        Class::Stream,
        &["stream", "streams", "sequence", "sequences", "seq"],
    ),
    (
        "request",
        Class::Stream,
        &["request", "requests", "req", "query", "queries", "prompt"],
    ),
    (
        "session",
        Class::Stream,
        &["session", "sessions", "connection", "conversation"],
    ),
    (
        "client",
        Class::Stream,
        &["client", "clients", "caller", "slot"],
    ),
    (
        "agent",
        Class::Worker,
        &["agent", "agents", "operator", "operators", "employee"],
    ),
    (
        "worker",
        Class::Worker,
        &["worker", "workers", "process", "thread", "core", "cores"],
    ),
    (
        "runner",
        Class::Worker,
        &["runner", "runners", "executor", "executors"],
    ),
    (
        "line",
        Class::Worker,
        &["line", "lane", "counter", "station", "desk", "lines"],
    ),
    (
        "GPU",
        Class::Machine,
        &[
            "gpu",
            "gpus",
            "accelerator",
            "card",
            "accelerators",
            "cards",
        ],
    ),
    (
        "chip",
        Class::Machine,
        &[
            "chip", "chips", "tpu", "tpus", "npu", "lpu", "die", "device",
        ],
    ),
    (
        "node",
        Class::Machine,
        &["node", "nodes", "host", "hosts", "box", "boxes"],
    ),
    (
        "server",
        Class::Machine,
        &["server", "servers", "machine", "machines", "devices"],
    ),
    (
        "replica",
        Class::Machine,
        &[
            "replica",
            "replicas",
            "instance",
            "instances",
            "pod",
            "pods",
        ],
    ),
    ("rack", Class::Machine, &["rack", "racks"]),
    (
        "system",
        Class::Whole,
        &["system", "deployment", "cluster", "fleet", "site", "plant"],
    ),
    ("MW", Class::Cost, &["mw", "megawatt", "megawatts"]),
    ("kW", Class::Cost, &["kw", "kilowatt", "kilowatts"]),
    ("W", Class::Cost, &["w", "watt", "watts"]),
    ("J", Class::Cost, &["j", "joule", "joules"]),
    ("kWh", Class::Cost, &["kwh"]),
    ("dollar", Class::Cost, &["dollar", "dollars", "usd", "buck"]),
    ("euro", Class::Cost, &["euro", "euros", "eur"]),
    ("pound", Class::Cost, &["pound", "pounds", "gbp"]),
    ("cent", Class::Cost, &["cent", "cents"]),
    ("gigawatt", Class::Cost, &["gw", "gigawatt", "gigawatts"]),
    (
        "channel",
        Class::Worker,
        &["channel", "channels", "team", "teams"],
    ),
    (
        "developer",
        Class::Stream,
        &["developer", "developers", "engineer", "engineers"],
    ),
    (
        "seat",
        Class::Stream,
        &["seat", "seats", "player", "players"],
    ),
    (
        "job",
        Class::Stream,
        &["job", "jobs", "pipeline", "batch", "chat", "call"],
    ),
];

/// The entity that a word names. Product names of accelerators are GPUs.
pub(super) fn entity_of(word: &str) -> Option<Entity> {
    let named = ENTITIES.iter().find(|(_, _, words)| words.contains(&word));
    if let Some((name, class, _)) = named {
        return Some(Entity {
            name,
            class: *class,
        });
    }
    is_accelerator(word).then_some(Entity {
        name: "GPU",
        class: Class::Machine,
    })
}

/// "h100", "gb200", "l40s", "mi300x", "a100s", "4090".
pub(super) fn is_accelerator(word: &str) -> bool {
    let word = word
        .strip_suffix('s')
        .filter(|w| w.len() > 3)
        .unwrap_or(word);
    let digits_at = word.find(|c: char| c.is_ascii_digit());
    let Some((letters, rest)) = digits_at.map(|at| word.split_at(at)) else {
        return false;
    };
    let series = [
        "h", "a", "b", "l", "t", "v", "gb", "gh", "mi", "rtx", "gaudi", "m",
    ];
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let tail = &rest[number.len()..];
    let long_enough = number.len()
        >= if letters.len() > 1 || letters == "l" || letters == "t" {
            1
        } else {
            2
        };
    series.contains(&letters)
        && long_enough
        && number.len() <= 4
        && matches!(tail, "" | "s" | "x" | "g")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_by_name() {
        for yes in [
            "h100", "gb200", "l40s", "mi300x", "a100s", "l4", "b200", "rtx4090",
        ] {
            assert!(is_accelerator(yes), "{yes}");
        }
        for no in ["c16", "qwen3.5", "fp8", "v0.6", "gpt4", "a1", "users"] {
            assert!(!is_accelerator(no), "{no}");
        }
    }
}
