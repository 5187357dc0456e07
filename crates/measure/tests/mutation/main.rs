//! Owns the proof that no spoilt stream counts as a success: streams of every API, mutated in
//! their events, bytes and ends, judged, and held against a reading that shares no code with the
//! decoder.

#[path = "../conformance/naive.rs"]
mod naive;
#[path = "../sse/seen.rs"]
mod seen;
#[path = "../sse/naive.rs"]
mod whole_string;

mod mutate;
mod oracle;
mod streams;

use std::sync::Arc;

use measure::api::Api;
use measure::decode::{Decoder, Options};
use measure::judge::{Guards, Judged, Outcome, judge};
use measure::scrub::Scrub;
use measure::stamp::{Stamp, StampSource};
use measure::time::{Instant, Length};
use measure::trace::{Trace, Transport};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use seen::Seen;
use streams::Stream;

/// Says how many streams to mutate, where not the usual number.
const VARIABLE: &str = "MUTATIONS";
const USUAL: u64 = 10_000;

fn judged(stream: &Stream, body: &[u8], transport: Transport, rng: &mut ChaCha8Rng) -> Judged {
    let options = Options {
        api: stream.api,
        keep_text: false,
        scrub: Arc::new(Scrub::default()),
    };
    let mut decoder = Decoder::new(options, Trace::begun(0, 0, 0, false, Instant::ORIGIN));
    let mut now = 0;
    let mut stamp = || {
        now += 50_000_000;
        Stamp {
            at: Instant::from_nanos(now),
            source: StampSource::Read,
            lag_low: None,
            lag_high: Length::ZERO,
            clamped: false,
        }
    };
    decoder.head(stamp(), 200, Some(stream.content_type()), None);
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, next) = rest.split_at(rng.random_range(1..400).min(rest.len()));
        decoder.data(stamp(), piece);
        rest = next;
    }
    let trace = decoder.close(transport, None);
    judge(trace, &Guards::default(), stream.api.has_sentinel())
}

fn case(number: u64) -> (Stream, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let api = Api::ALL[number as usize % Api::ALL.len()];
    (streams::valid(api, &mut rng), rng)
}

#[test]
fn whole_streams_are_ok_and_bear_no_flag() {
    for number in 0..2_000 {
        let (stream, mut rng) = case(number);
        let body = stream.bytes();
        let opinion = oracle::opinion(stream.api, stream.form, &body, &Transport::Complete);
        assert!(
            opinion.against.is_empty() && opinion.flags.is_empty(),
            "{opinion:?} {stream:?}"
        );
        let judged = judged(&stream, &body, Transport::Complete, &mut rng);
        assert_eq!(
            (judged.outcome, judged.flags),
            (Outcome::Ok, vec![]),
            "{stream:?}"
        );
    }
}

#[test]
fn no_spoilt_stream_is_ok() {
    let cases = match std::env::var(VARIABLE) {
        Ok(given) => given.parse().expect("MUTATIONS is a number"),
        Err(_) => USUAL,
    };
    let (mut ok, mut unsure, mut spoilt) = (0u64, 0u64, 0u64);
    for number in 0..cases {
        let (mut stream, mut rng) = case(number);
        mutate::events(&mut stream, &mut rng);
        let mut body = stream.bytes();
        mutate::bytes(&mut body, &mut rng);
        let transport = mutate::end(&mut rng);
        let opinion = oracle::opinion(stream.api, stream.form, &body, &transport);
        let judged = judged(&stream, &body, transport, &mut rng);
        unsure += u64::from(opinion.unsure);
        spoilt += u64::from(!opinion.against.is_empty());
        if judged.outcome != Outcome::Ok || opinion.unsure {
            continue;
        }
        ok += 1;
        let said = || {
            format!(
                "case {number}: {opinion:?} {:?}\n{}",
                judged.flags,
                body.escape_ascii()
            )
        };
        assert!(opinion.against.is_empty(), "{}", said());
        assert!(
            opinion.flags.iter().all(|flag| judged.flags.contains(flag)),
            "{}",
            said()
        );
    }
    println!("{cases} mutated streams: {ok} ok, {spoilt} spoilt, {unsure} without an opinion");
    // Otherwise the mutations are too rude, or too gentle, to show anything.
    assert!(ok > cases / 20 && spoilt > cases / 4 && unsure < cases / 100);
}
