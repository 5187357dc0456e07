//! Owns the simulated experiments: servers and paths in virtual time, over many seeds.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Normal};

use super::*;
use crate::time::{Instant, Length};
use crate::trace::{Body, Declared as Timing, Finish, Read, Transport, Usage};

/// What happens to bytes between the server and here.
#[derive(Clone, Copy)]
enum Hop {
    /// Nothing.
    None,
    /// All of them wait for the end.
    HoldsAll,
    /// All but the first event wait for the end.
    HoldsRest,
    /// They wait until a buffer of so many is full.
    Size(u64),
    /// They wait for a timer that fires so often.
    Timer(f64),
    /// The same, late by up to 16 ms, as a kernel's timers are.
    Late(f64),
    /// The sender is late by up to 30 ms now and then, and sends what is due then.
    Starved,
}

/// A server and a path to it. Times in s.
#[derive(Clone, Copy)]
struct World {
    hop: Hop,
    /// From `sent` to the first token.
    first: f64,
    /// For each further token.
    each: f64,
    /// Standard deviation of a request's own speed, as a share.
    speeds: f64,
    /// Standard deviation of each token's time, as a share, at most 1.
    tokens: f64,
    /// Mean of what waiting adds to the first token.
    wait: f64,
    /// What one request more adds to the first token of all later ones.
    drift: f64,
    /// What the first measured request waits for.
    cold: f64,
    /// Tokens whatever is asked for.
    ignores: Option<(u64, u64)>,
    /// States token counts.
    states: bool,
}

/// Bytes after the last content.
const CLOSING: u64 = 900;

const QUIET: World = World {
    hop: Hop::None,
    first: 0.08,
    each: 0.012,
    speeds: 0.0,
    tokens: 0.02,
    wait: 0.002,
    drift: 0.0,
    cold: 0.0,
    ignores: None,
    states: true,
};

fn normal(rng: &mut ChaCha8Rng, deviation: f64) -> f64 {
    Normal::new(0.0, deviation).map_or(0.0, |law| law.sample(rng))
}

fn nanos(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}

impl World {
    /// When each token leaves the server, after `sent`.
    fn made(&self, rng: &mut ChaCha8Rng, turn: usize, tokens: u64) -> Vec<f64> {
        let waits = -self.wait * rng.random_range(1e-9..1.0_f64).ln();
        let cold = if turn == 0 { self.cold } else { 0.0 };
        let mut at = self.first + waits + cold + self.drift * turn as f64;
        let speed = self.each * (1.0 + normal(rng, self.speeds)).max(0.1);
        let mut all = Vec::new();
        for _ in 0..tokens {
            all.push(at);
            let drawn = -rng.random_range(1e-9..1.0_f64).ln();
            at += speed * (1.0 + self.tokens * (drawn - 1.0));
        }
        all
    }

    fn trace(&self, rng: &mut ChaCha8Rng, turn: usize, sent: f64, asked: u64) -> Trace {
        let tokens = match self.ignores {
            Some((least, most)) => rng.random_range(least..=most),
            None => asked,
        };
        let made = self.made(rng, turn, tokens);
        let end = made.last().copied().unwrap_or(0.0) + 0.001;
        let mut trace = Trace::begun(turn as u64, 0, 0, false, Instant::from_nanos(nanos(sent)));
        trace.sent = Some(Instant::from_nanos(nanos(sent)));
        trace.head = Some(Instant::from_nanos(nanos(sent + 0.004)));
        trace.status = Some(200);
        trace.body = Body::Stream;
        trace.transport = Transport::Complete;
        trace.finish_reason = Some(Finish::Length);
        trace.sentinel = true;
        trace.asked_output = Some(asked);
        if self.states {
            trace.usage = Some(Usage {
                output: Some(tokens),
                ..Usage::default()
            });
        }
        trace.declared = Some(Timing {
            output: Some(Length::from_nanos(nanos(end - made[0]))),
            output_tokens: Some(tokens),
            ..Timing::default()
        });
        trace.reads = arrived(self.hop, rng, &made, end)
            .into_iter()
            .map(|(at, bytes, chunks)| read(sent + at, bytes, chunks))
            .collect();
        trace.bytes = trace.reads.iter().map(|read| u64::from(read.bytes)).sum();
        trace.first_event = trace.reads.first().map(|read| read.at);
        trace.first_content = trace.first_event;
        trace.last_content = trace.reads.last().map(|read| read.at);
        trace.end = Some(Instant::from_nanos(nanos(sent + end + 0.000_1)));
        trace
    }

    fn experiment(&self, seed: u64) -> Report {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let lengths = Lengths::default();
        let mut sent = 1.0;
        let mut traces = Vec::new();
        for (turn, place) in plan::order(seed).into_iter().enumerate() {
            let trace = self.trace(&mut rng, turn, sent, lengths.tokens()[place]);
            sent = trace.end.map_or(sent, |end| end.nanos() as f64 / 1e9) + 0.01;
            traces.push(trace);
        }
        let side = Side {
            way: Way::Path,
            url: "http://u".into(),
            traces,
        };
        judge(setup(seed), vec![side]).expect("a side")
    }
}

fn setup(seed: u64) -> Setup {
    Setup {
        version: "0".into(),
        model: "m".into(),
        api: "openai-chat",
        sentinel: true,
        lengths: Lengths::default(),
        planned: Lengths::default(),
        seed,
        interrupted: false,
        notes: Vec::new(),
    }
}

fn read(at: f64, bytes: u32, chunks: u32) -> Read {
    Read {
        at: Instant::from_nanos(nanos(at)),
        bytes,
        chunks,
        bare: 0,
        chars: 4 * chunks,
        answer_chunks: chunks,
        answer_chars: 4 * chunks,
        tokens: None,
        lag_low: None,
        lag_high: Length::ZERO,
    }
}

/// Reads as they come here: when, bytes, and events completed.
fn arrived(hop: Hop, rng: &mut ChaCha8Rng, made: &[f64], end: f64) -> Vec<(f64, u32, u32)> {
    let events: Vec<(f64, u32)> = made
        .iter()
        .map(|at| (*at, rng.random_range(196..206)))
        .collect();
    let all = |events: &[(f64, u32)]| {
        let bytes = events.iter().map(|event| event.1).sum();
        (end, bytes, events.len() as u32)
    };
    let one = |(at, bytes): (f64, u32)| (at, bytes, 1);
    match hop {
        Hop::None => events.into_iter().map(one).collect(),
        Hop::HoldsAll => vec![all(&events)],
        Hop::HoldsRest => vec![one(events[0]), all(&events[1..])],
        Hop::Size(size) => by_size(&events, size, end),
        Hop::Timer(each) => by_time(&events, each, end),
        Hop::Late(each) => by_timer(&events, || each + rng.random_range(0.008..0.024), end),
        Hop::Starved => starved(&events, || rng.random_range(0.0..0.03), end),
    }
}

/// A full buffer is let go, in the middle of an event if need be.
fn by_size(events: &[(f64, u32)], size: u64, end: f64) -> Vec<(f64, u32, u32)> {
    let (mut found, mut held, mut complete) = (Vec::new(), 0_u64, 0);
    for (at, bytes) in events {
        held += u64::from(*bytes);
        if held >= size {
            found.push((*at, size as u32, complete + u32::from(held == size)));
            complete = u32::from(held > size);
            held -= size;
        } else {
            complete += 1;
        }
    }
    // The finish reason, the token counts and the sentinel fill the buffer once more.
    held += CLOSING;
    while held >= size {
        found.push((end, size as u32, std::mem::take(&mut complete)));
        held -= size;
    }
    found.push((end, held as u32, complete));
    found
}

/// What has come is let go whenever the timer fires, which the first event starts.
fn by_time(events: &[(f64, u32)], each: f64, end: f64) -> Vec<(f64, u32, u32)> {
    let mut found: Vec<(f64, u32, u32)> = Vec::new();
    for (at, bytes) in events {
        let ticks = ((at - events[0].0) / each).ceil();
        let gone = (events[0].0 + ticks * each).min(end);
        match found.last_mut() {
            Some(last) if (last.0 - gone).abs() < 1e-6 => {
                last.1 += bytes;
                last.2 += 1;
            }
            _ => found.push((gone, *bytes, 1)),
        }
    }
    found
}

/// A timer that is set anew whenever it has fired, each time to another length.
fn by_timer(
    events: &[(f64, u32)],
    mut each: impl FnMut() -> f64,
    end: f64,
) -> Vec<(f64, u32, u32)> {
    let mut found: Vec<(f64, u32, u32)> = Vec::new();
    let mut due = f64::MIN;
    for (at, bytes) in events {
        if *at > due {
            due = if due < 0.0 { *at } else { due };
            while due < *at {
                due += each();
            }
            found.push((due.min(end), 0, 0));
        }
        if let Some(last) = found.last_mut() {
            last.1 += bytes;
            last.2 += 1;
        }
    }
    found
}

/// Every second event or so waits for a processor, and those due meanwhile go with it.
fn starved(events: &[(f64, u32)], mut late: impl FnMut() -> f64, end: f64) -> Vec<(f64, u32, u32)> {
    let mut found: Vec<(f64, u32, u32)> = Vec::new();
    let mut free = 0.0;
    for (at, bytes) in events {
        match found.last_mut() {
            Some(last) if *at <= free => {
                last.1 += bytes;
                last.2 += 1;
            }
            _ => {
                free = (at + (late() - 0.015).max(0.0)).min(end);
                found.push((free, *bytes, 1));
            }
        }
    }
    found
}

fn kinds(world: World, seeds: u64) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for seed in 0..seeds {
        *all.entry(world.experiment(seed).verdict.name())
            .or_default() += 1;
    }
    all
}

fn only(world: World, kind: Kind) {
    assert_eq!(kinds(world, 30), BTreeMap::from([(kind.name(), 30)]));
}

fn with(hop: Hop) -> World {
    World { hop, ..QUIET }
}

#[test]
fn each_way_of_holding_back_is_told() {
    only(with(Hop::None), Kind::Streams);
    only(with(Hop::HoldsAll), Kind::Buffers);
    only(with(Hop::HoldsRest), Kind::Buffers);
    only(with(Hop::Timer(0.2)), Kind::BundlesByTime);
    only(with(Hop::Late(0.2)), Kind::BundlesByTime);
    only(with(Hop::Starved), Kind::Streams);
    for size in [4_096, 8_192, 16_384] {
        only(with(Hop::Size(size)), Kind::BundlesBySize);
    }
}

#[test]
fn a_buffer_of_a_few_events_is_told_at_a_steady_pace() {
    for size in [1_024, 1_536, 2_048] {
        let steady = World {
            each: 0.01,
            tokens: 0.0,
            wait: 0.0,
            ..with(Hop::Size(size))
        };
        only(steady, Kind::BundlesBySize);
        let bytes = steady.experiment(1).paths[0].verdict.bundle_bytes;
        assert_eq!(bytes, Some(size as f64));
    }
    for timer in [0.05, 0.08, 0.1] {
        let steady = World {
            each: 0.01,
            tokens: 0.0,
            wait: 0.0,
            ..with(Hop::Timer(timer))
        };
        only(steady, Kind::BundlesByTime);
    }
}

#[test]
fn a_server_whose_speed_varies_by_half_is_told_all_the_same() {
    for (hop, kind) in [(Hop::None, "streams"), (Hop::HoldsAll, "buffers")] {
        let wild = World {
            speeds: 0.5,
            wait: 0.05,
            ..with(hop)
        };
        let found = kinds(wild, 30);
        assert!(found.get(kind) >= Some(&28), "{found:?}");
        let other = found
            .keys()
            .all(|name| [kind, "cannot_tell"].contains(name));
        assert!(other, "{found:?}");
    }
}

#[test]
fn bundles_have_their_size_and_their_time() {
    let sized = with(Hop::Size(4_096)).experiment(3);
    let bytes = sized.paths[0].verdict.bundle_bytes.expect("a size");
    assert!((bytes - 4_096.0).abs() < 1.0, "{bytes}");
    let timed = with(Hop::Timer(0.2)).experiment(3);
    let seconds = timed.paths[0].verdict.bundle_seconds.expect("a time");
    assert!((seconds - 0.2).abs() < 0.002, "{seconds}");
}

#[test]
fn a_steady_pace_that_divides_the_timer_is_still_bundled_by_time() {
    let steady = World {
        each: 0.02,
        tokens: 0.0,
        wait: 0.0,
        ..with(Hop::Timer(0.2))
    };
    only(steady, Kind::BundlesByTime);
}

/// The inferred time per token over seeds: shown, within 5 %, and interval over the truth.
fn inferred(world: World, seeds: u64) -> (u64, u64, u64) {
    let (mut shown, mut near, mut covered) = (0, 0, 0);
    for seed in 0..seeds {
        let report = world.experiment(seed);
        let figure = &report.inferred.time_per_token;
        assert_eq!(figure.evidence(), crate::figure::Evidence::Inferred);
        assert_eq!(figure.value().is_none(), figure.reason().is_some());
        if let (Some(value), Some([low, high])) = (figure.value(), figure.interval95()) {
            shown += 1;
            near += u64::from((value / world.each - 1.0).abs() <= 0.05);
            covered += u64::from(low <= world.each && world.each <= high);
        }
    }
    (shown, near, covered)
}

#[test]
fn the_speed_behind_a_path_that_holds_everything_is_within_5_percent() {
    for each in [0.001, 0.012, 0.05] {
        let world = World {
            each,
            ..with(Hop::HoldsAll)
        };
        let (shown, near, covered) = inferred(world, 60);
        assert_eq!(shown, 60, "at {each}");
        assert!(near >= 57, "{near} of 60 at {each}");
        assert!(covered >= 54, "{covered} of 60 at {each}");
    }
}

#[test]
fn with_the_jitter_of_a_busy_server_it_is_as_near_or_withheld() {
    for (speeds, tokens, wait) in [
        (0.02, 0.1, 0.05),
        (0.05, 0.1, 0.02),
        (0.07, 0.0, 0.02),
        (0.1, 0.3, 0.1),
        (0.3, 0.5, 0.5),
        (0.0, 1.0, 0.1),
    ] {
        let world = World {
            speeds,
            tokens,
            wait,
            ..with(Hop::HoldsAll)
        };
        let (shown, near, covered) = inferred(world, 100);
        let (far, missed) = (shown - near, shown - covered);
        assert!(
            far <= 5,
            "{far} of 100 more than 5 % off at {speeds} {tokens} {wait}"
        );
        assert!(
            missed <= 10,
            "{missed} of 100 intervals miss at {speeds} {tokens} {wait}"
        );
    }
}

#[test]
fn short_fast_answers_that_stream_are_never_called_held_back() {
    // 200 tokens in 0.15 s, and a server that jitters as much as the answer takes.
    for wait in [0.0, 0.002, 0.02, 0.2] {
        let fast = World {
            each: 0.000_75,
            wait,
            ..QUIET
        };
        let found = kinds(fast, 50);
        let held: u64 = ["buffers", "bundles_by_size", "bundles_by_time"]
            .iter()
            .filter_map(|kind| found.get(kind))
            .sum();
        assert_eq!(held, 0, "{found:?}");
        if wait <= 0.002 {
            assert_eq!(found.get("streams"), Some(&50), "{found:?}");
        }
    }
}

#[test]
fn neither_a_drift_nor_a_cold_start_fakes_a_slope() {
    for (drift, cold) in [
        (0.02, 0.0),
        (0.3, 0.0),
        (-0.02, 0.0),
        (0.0, 5.0),
        (0.0, 60.0),
    ] {
        let world = World {
            first: 0.5,
            drift,
            cold,
            ..QUIET
        };
        let found = kinds(world, 50);
        assert_eq!(found.get("buffers"), None, "{drift} {cold}: {found:?}");
        let streams = found.get("streams").copied().unwrap_or(0);
        let cannot = found.get("cannot_tell").copied().unwrap_or(0);
        assert_eq!(streams + cannot, 50, "{drift} {cold}: {found:?}");
        if drift.abs() < 0.1 {
            assert!(streams >= 48, "{drift} {cold}: {found:?}");
        }
    }
}

#[test]
fn a_drift_is_shown_with_its_size() {
    let drifting = World {
        drift: 0.1,
        ..QUIET
    };
    let report = drifting.experiment(5);
    let found = report.evidence.iter().find(|one| one.code == "drift");
    assert!(
        found.is_some_and(|one| one.values["tau"] > 0.5),
        "{:?}",
        report.evidence
    );
    assert!(report.inferred.time_per_token.value().is_none());
}

#[test]
fn a_server_that_ignores_the_length_cannot_be_told_and_says_so() {
    for states in [true, false] {
        for ignores in [(100, 100), (40, 200)] {
            for hop in [Hop::None, Hop::HoldsAll] {
                let world = World {
                    ignores: Some(ignores),
                    states,
                    ..with(hop)
                };
                for seed in 0..15 {
                    let report = world.experiment(seed);
                    let verdict = &report.paths[0].verdict;
                    if !states && matches!(hop, Hop::HoldsAll) {
                        assert_ne!(verdict.kind, Kind::Streams);
                    }
                    assert_eq!(verdict.kind, Kind::CannotTell, "{verdict:?}");
                    assert_eq!(verdict.reason, Some("length_ignored"));
                    assert!(verdict.needed.is_some());
                    let speed = &report.inferred.time_per_token;
                    assert_eq!(speed.reason().map(|why| why.code), Some("length_ignored"));
                }
            }
        }
    }
}

#[test]
fn chunks_stand_for_tokens_where_nobody_counts_them() {
    let silent = World {
        states: false,
        ..QUIET
    };
    let report = silent.experiment(1);
    assert_eq!(report.verdict, Kind::Streams);
    let speed = &report.inferred.time_per_token;
    assert_eq!((speed.unit(), speed.value().is_some()), ("s/chunk", true));
}

#[test]
fn what_the_server_declares_stands_beside_what_is_inferred() {
    let report = with(Hop::HoldsAll).experiment(9);
    let declared = report.declared.expect("declared").generation;
    let declared = serde_json::to_value(&declared).expect("writes");
    assert_eq!(declared["evidence"], "declared");
    let inferred = report.inferred.generation.value().expect("inferred");
    let declared = declared["p50"]["value"].as_f64().expect("a median");
    assert!(
        (inferred / declared - 1.0).abs() < 0.1,
        "{inferred} {declared}"
    );
}

#[test]
fn too_few_answers_of_a_length_say_nothing() {
    let mut report = QUIET;
    report.hop = Hop::HoldsAll;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let traces: Vec<Trace> = [16, 16, 16, 64, 64, 64, 256, 256]
        .iter()
        .enumerate()
        .map(|(turn, asked)| report.trace(&mut rng, turn, 5.0 * turn as f64, *asked))
        .collect();
    let side = Side {
        way: Way::Path,
        url: "http://u".into(),
        traces,
    };
    let report = judge(setup(1), vec![side]).expect("a side");
    assert_eq!(report.paths[0].verdict.reason, Some("too_few"));
}

#[test]
fn nothing_at_all_is_no_result_and_no_panic() {
    let side = Side {
        way: Way::Path,
        url: "http://u".into(),
        traces: Vec::new(),
    };
    let report = judge(setup(1), vec![side]).expect("a side");
    assert_eq!(report.paths[0].verdict.reason, Some("too_few"));
    assert!(judge(setup(1), Vec::new()).is_none());
    assert!(serde_json::to_string(&report).is_ok_and(|text| !text.contains("NaN")));
}

#[test]
fn two_sides_in_turn_say_which_changes_the_shape() {
    let direct = QUIET;
    let through = with(Hop::HoldsAll);
    let sides = |other: World| {
        let of = |world: World, way| {
            let mut rng = ChaCha8Rng::seed_from_u64(4);
            let lengths = Lengths::default().tokens();
            let traces = plan::order(4)
                .into_iter()
                .enumerate()
                .map(|(turn, place)| world.trace(&mut rng, turn, 9.0 * turn as f64, lengths[place]))
                .collect();
            Side {
                way,
                url: "http://d".into(),
                traces,
            }
        };
        judge(
            setup(4),
            vec![of(through, Way::Path), of(other, Way::Direct)],
        )
        .expect("sides")
    };
    let report = sides(direct);
    let compared = &report.comparisons[0];
    assert!(
        compared.differs && compared.text.contains("what stands between"),
        "{}",
        compared.text
    );
    let longest = compared.changes[2].first_content_s.expect("pairs");
    assert!((longest.median - 255.0 * 0.012).abs() < 0.2, "{longest:?}");
    assert!(longest.ci95.is_some() && longest.n == 6);
    let same = sides(through);
    assert!(!same.comparisons[0].differs);
}
