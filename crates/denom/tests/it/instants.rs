//! Each script's instants, counts and rates, to the nanosecond: cut at random places, and as hyper
//! hands them over in virtual time.

use denom::sim::ask::Ask;
use denom::sim::scripts::script;
use measure::time::{Instant, Length};
use measure::trace::Trace;
use serde_json::{Value, json};

use super::exact::{ask, exchanged, fed, fed_in_pieces, row_of};

/// Head, first event, first content, first answer, last content and end, in milliseconds.
type Instants = [Option<u64>; 6];
/// Count in millionths, and interval in milliseconds.
type Rate = Option<(u64, u64)>;

const fn all(instants: [u64; 6]) -> Instants {
    let [head, event, content, answer, last, end] = instants;
    [
        Some(head),
        Some(event),
        Some(content),
        Some(answer),
        Some(last),
        Some(end),
    ]
}

const fn tokens(count: u64, millis: u64) -> Rate {
    Some((count * 1_000_000, millis))
}

const USUAL: Instants = all([0, 0, 60, 60, 690, 690]);
const LATE: Instants = all([690; 6]);
const BROKEN: Instants = all([0, 0, 60, 60, 150, 160]);

/// Name, instants, billed and visible tokens, generation rate, end-to-end rate, naive rate.
type Truth = (&'static str, Instants, [Option<u64>; 2], Rate, Rate, Rate);

#[rustfmt::skip]
const TRUTHS: &[Truth] = &[
    ("normal",     USUAL, [Some(64); 2], tokens(63, 630), tokens(64, 690), None),
    ("nospace",    USUAL, [Some(64); 2], tokens(63, 630), tokens(64, 690), None),
    ("crlf",       USUAL, [Some(64); 2], tokens(63, 630), tokens(64, 690), None),
    ("nodone",     USUAL, [Some(64); 2], tokens(63, 630), tokens(64, 690), None),
    ("nousage",    USUAL, [None; 2],     tokens(63, 630), tokens(64, 690), None),
    ("keepalives", all([0, 10, 60, 60, 690, 690]),    [Some(64); 2], tokens(63, 630), tokens(64, 690), None),
    ("slow_start", all([0, 0, 600, 600, 1_230, 1_230]), [Some(64); 2], tokens(63, 630), tokens(64, 1_230), None),
    ("reason",     all([0, 0, 60, 540, 690, 690]),    [Some(64); 2], tokens(63, 630), tokens(64, 690), None),
    ("stoptoken",  all([0, 0, 60, 60, 680, 680]),     [Some(64), Some(63)], tokens(62, 620), tokens(63, 680), None),
    // 63 tokens over 16 equal chunks: the stop token is taken to be billed and not sent.
    ("spec4",      all([0, 0, 60, 60, 660, 690]),     [Some(64), Some(63)], Some((59_062_500, 600)), tokens(63, 690), None),
    ("burst",      LATE, [Some(64); 2], None, tokens(64, 690), None),
    ("roleburst",  all([5, 5, 690, 690, 690, 690]),   [Some(64); 2], None, tokens(64, 690), None),
    ("firstlate",  all([690, 690, 690, 690, 692, 692]), [Some(64); 2], None, tokens(64, 692), tokens(64, 2)),
    ("twoclump",   all([345, 345, 345, 345, 690, 690]), [Some(64); 2], None, tokens(64, 690), tokens(64, 345)),
    ("onechunk",   LATE, [Some(64), Some(63)], None, tokens(63, 690), None),
    // Its one event states its own count, so nothing is taken off.
    ("plainjson",  LATE, [Some(64); 2], None, tokens(64, 690), None),
    ("empty",      [Some(0), Some(0), None, None, None, Some(60)], [Some(0), None], None, None, None),
    ("html",       [Some(0), None, None, None, None, Some(0)], [None; 2], None, None, None),
    ("miderror",   BROKEN, [None; 2], None, None, None),
    ("truncated",  BROKEN, [None; 2], None, None, None),
];

fn instants(trace: &Trace) -> [Option<Instant>; 6] {
    [
        trace.head,
        trace.first_event,
        trace.first_content,
        trace.first_answer,
        trace.last_content,
        trace.end,
    ]
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Length::from_millis(millis)
}

fn seconds(millis: u64) -> f64 {
    Length::from_millis(millis).as_secs_f64()
}

/// A rate as JSON shows it: its value, its numerator and its denominator.
fn shown(rate: Rate) -> Value {
    let Some((millionths, millis)) = rate else {
        return json!([null, null, null]);
    };
    let value = millionths as f64 * 1e3 / (millis * 1_000_000) as f64;
    json!([value, millionths as f64 / 1e6, seconds(millis)])
}

fn parts(figure: &Value) -> Value {
    json!([
        figure["value"],
        figure["numerator"]["count"],
        figure["interval"]["seconds"]
    ])
}

fn row(trace: Trace) -> Value {
    serde_json::to_value(row_of(trace).0).expect("a row is JSON")
}

fn check(truth: &Truth, trace: Trace) {
    let &(name, times, [billed, visible], generation, e2e, naive) = truth;
    assert_eq!(instants(&trace), times.map(|ms| ms.map(at)), "{name}");
    let row = row(trace);
    let counts = json!([row["billed_tokens"], row["output_tokens"]]);
    assert_eq!(counts, json!([billed, visible]), "{name}");
    let [_, _, first, _, last, _] = times;
    let content = first.zip(last).map(|(first, last)| seconds(last - first));
    assert_eq!(row["content_s"], json!(content), "{name}");
    assert_eq!(
        row["first_content_seen_s"],
        json!(first.map(seconds)),
        "{name}"
    );
    let used = match (generation, e2e) {
        (Some(_), _) => json!("generation_rate"),
        (None, Some(_)) => json!("e2e_rate"),
        (None, None) => Value::Null,
    };
    assert_eq!(row["rate_used"], used, "{name}");
    assert_eq!(parts(&row["rate"]), shown(generation.or(e2e)), "{name}");
    assert_eq!(parts(&row["e2e_rate"]), shown(e2e), "{name}");
    assert_eq!(parts(&row["naive"]), shown(naive), "{name}");
}

#[test]
fn every_instant_and_every_part_of_a_rate_is_the_scripts_own() {
    for truth in TRUTHS {
        check(truth, fed(&ask(truth.0), usize::MAX));
    }
}

#[test]
fn a_steady_stream_of_64_tokens_has_exactly_100_a_second() {
    let row = row(fed(&ask("normal"), usize::MAX));
    assert_eq!(row["rate"]["value"], 100.0);
    assert_eq!(row["gap_max_s"], 0.01);
}

/// Where it ends at the length asked for, no stop token is missing, and the first of 16 chunks
/// leaves open whether it brought 1 token or 8.
#[test]
fn an_answer_of_the_length_asked_for_has_all_its_tokens() {
    let asked = |name: &str| Ask {
        max_tokens: Some(64),
        ..Ask::of(name)
    };
    let made = |name: &str| script(name, &asked(name)).expect("a script of this name");
    let spec4 = row(fed(&made("spec4"), usize::MAX));
    assert_eq!(spec4["flags"], json!(["apportioned", "coalesced"]));
    assert_eq!(parts(&spec4["rate"]), shown(tokens(60, 600)));
    let of = |count: u64| shown(tokens(count, 600))[0].clone();
    assert_eq!(spec4["rate"]["range"], json!([of(56), of(63)]));
    let one = row(fed(&made("onechunk"), usize::MAX));
    let reasons = ["few_chunks", "few_arrivals", "one_burst", "short"];
    assert_eq!(one["reasons"], json!(reasons));
    assert_eq!(parts(&one["rate"]), shown(tokens(64, 690)));
}

#[test]
fn a_page_in_html_breaks_the_protocol() {
    let row = row(fed(&ask("html"), usize::MAX));
    assert_eq!(
        (&row["outcome"], &row["shape"]),
        (&json!("protocol_error"), &Value::Null)
    );
}

#[test]
fn no_cut_changes_the_trace() {
    // A fixed sequence without pattern (Lehmer's generator), so that every run is the same.
    let mut state = 20_261_201_u64;
    let mut dice = move |sides: usize| {
        state = state * 48_271 % 0x7fff_ffff;
        usize::try_from(state).expect("31 bits") % sides
    };
    for (name, ..) in TRUTHS {
        let script = ask(name);
        let whole = fed(&script, usize::MAX);
        for round in 0..50 {
            // Small pieces mostly, or the long ones would leave few cuts.
            let cut = fed_in_pieces(&script, |left| 1 + dice(left.min(1 + round * 8)));
            assert_eq!(cut, whole, "{name}, round {round}");
        }
    }
}

/// What each instant brought: stamp, chunks, characters. Reads of one instant are one here, since
/// how many reads a paused clock's bytes take says nothing.
fn brought(trace: &Trace) -> Vec<(Instant, u32, u32)> {
    let mut found: Vec<(Instant, u32, u32)> = Vec::new();
    for read in &trace.reads {
        match found.last_mut() {
            Some(last) if last.0 == read.at => {
                last.1 += read.chunks;
                last.2 += read.chars;
            }
            _ => found.push((read.at, read.chunks, read.chars)),
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn hyper_hands_over_every_byte_at_its_instant() {
    let chunked = [
        "normal",
        "burst",
        "twoclump",
        "roleburst",
        "firstlate",
        "miderror",
        "truncated",
        "keepalives",
    ];
    for truth in TRUTHS.iter().filter(|truth| chunked.contains(&truth.0)) {
        let name = truth.0;
        let straight = fed(&ask(name), usize::MAX);
        let through = exchanged(ask(name)).await;
        assert_eq!(brought(&through), brought(&straight), "{name}");
        let rest = |trace: &Trace| (trace.bytes, trace.events, trace.comments, trace.stamps);
        assert_eq!(rest(&through), rest(&straight), "{name}");
        check(truth, through);
    }
}
