//! Owns the tests of whole pages.

use insta::assert_snapshot;
use measure::basis::Loop;
use measure::judge::Guards;
use measure::plan::Arrivals;
use measure::record::{Lead, Level};
use measure::report::build;
use measure::schedule::{Fate, Fates};
use measure::time::Length;
use measure::trace::Transport;

use super::make::{Answer, BUFFERED, SHORT, STREAMED, answered, level, of, report, rows_of, run};
use crate::page::{self, Style, rows};

const WIDE: Style = Style {
    color: false,
    width: 100,
};

fn streamed() -> Vec<Level> {
    let slow = Answer {
        first: 600,
        gap: 60,
        ..STREAMED
    };
    vec![level(0, 1, 12, STREAMED), level(1, 16, 6, slow)]
}

fn failing() -> Level {
    let trace = |id| {
        let mut trace = answered(id, 0, 0, 1_000 + id * 2_000, STREAMED);
        if id % 2 == 1 {
            trace.finish_reason = None;
            trace.transport = Transport::Broken {
                text: "connection reset".into(),
            };
        }
        trace
    };
    of(0, 1, (0..8).map(trace).collect(), 18_000)
}

fn every_kind() -> Vec<Vec<Level>> {
    vec![
        streamed(),
        vec![level(0, 1, 12, BUFFERED)],
        vec![level(0, 1, 12, SHORT)],
        vec![failing()],
        vec![level(0, 1, 3, STREAMED)],
        vec![level(0, 1, 1, BUFFERED)],
        vec![of(0, 1, Vec::new(), 0)],
        Vec::new(),
    ]
}

#[test]
fn one_stream_beside_sixteen() {
    assert_snapshot!(page::text(&report(streamed()), WIDE), @r"
    http://localhost:8000/v1/chat/completions · tiny · openai-chat · closed loop
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    target /     ok /    system  per stream   slow tail   share of 1  TTFT p50 s  TTFT tail   e2e p50 s
    held         failed  tok/s   tok/s                                            s
    ════════════════════════════════════════════════════════════════════════════════════════════════════
    1 / 0.999    12 / 0  43.8    50.0         min of 12:  base        0.200       max of 12:  1.46
                                              50.0                                0.200
    16 / 16.0    96 / 0  231     16.4         p05 16.1    33 %        0.600       p95 0.600   4.44
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    tokens      counted by the server
    shapes      at 1: 12 streamed; at 16: 96 streamed
    guards      a stream has at least 3 chunks in as many arrivals, over at least 0.200 s
    per stream in flight: at 1: 43.8 tok/s; at 16: 14.4 tok/s (system rate over held concurrency)
    input       512 tokens a request
    stopped by  at 1: 12 length; at 16: 96 length

    window      at 1: 16.1 s, steady window (from 2.46 to 18.5 s); at 16: 21.7 s, steady window (from
                5.55 to 27.3 s)
    client lag  at least p99 30.0 µs, at most p99 80.0 µs
    verdict     at 1: valid
                at 16: valid
    ");
}

#[test]
fn all_buffered() {
    let levels = vec![level(0, 1, 12, STREAMED), level(1, 4, 6, BUFFERED)];
    assert_snapshot!(page::text(&report(levels), WIDE), @r"
    http://localhost:8000/v1/chat/completions · tiny · openai-chat · closed loop
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    target /     ok /    system  per stream   slow tail   share of 1  TTFT p50 s  TTFT tail   e2e p50 s
    held         failed  tok/s   tok/s                                            s
    ════════════════════════════════════════════════════════════════════════════════════════════════════
    1 / 0.999    12 / 0  43.8    50.0         min of 12:  base        0.200       max of 12:  1.46
                                              50.0                                0.200
    4 / 4.00     24 / 0  155     – [1]                    104 % e2e   – [1]                   1.40
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    [1] the content arrived here in one piece or nearly so (few_arrivals, one_burst, short): when it was
        made cannot be seen
    tokens      counted by the server
    shapes      at 1: 12 streamed; at 4: 24 buffered
    guards      a stream has at least 3 chunks in as many arrivals, over at least 0.200 s
    per stream in flight: at 1: 43.8 tok/s; at 4: 38.9 tok/s (system rate over held concurrency)
    input       512 tokens a request
    stopped by  at 1: 12 length; at 4: 24 length

    end-to-end: only the whole of these requests was observed
    ───────────────────────────────────────────────────────────────────────────
    target  requests     why       e2e tok/s  slow tail  e2e p50 s  e2e tail s
    ═══════════════════════════════════════════════════════════════════════════
    4       24 of 24 ok  buffered  45.7       p25 45.7   1.40       p75 1.40
    ───────────────────────────────────────────────────────────────────────────
    Tokens ÷ (total time − time to first content) would have printed 64,000 tok/s (median) at 4. That is
    false: its denominator is only the time the delivery took, not the time the tokens took to make.

    window      at 1: 16.1 s, steady window (from 2.46 to 18.5 s); at 4: 7.00 s, steady window (from
                2.41 to 9.41 s)
    client lag  at 1: at least p99 30.0 µs, at most p99 80.0 µs; at 4: at least p75 30.0 µs, at most p75
                80.0 µs
    warning     at 4: answers arrived in bursts at the window's edges: the system rate may be 17 % too
                low → more requests a stream make the edges matter less
    verdict     at 1: valid
                at 4: valid
    ");
}

#[test]
fn short_answers_are_never_called_buffered() {
    let levels = vec![level(0, 1, 12, SHORT)];
    let page = page::text(&report(levels), WIDE);
    assert!(!page.contains("buffered"), "{page}");
    assert_snapshot!(page, @r"
    http://localhost:8000/v1/chat/completions · tiny · openai-chat · closed loop
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    target /     ok /    system  per stream   slow tail  share of 1   TTFT p50 s  TTFT tail   e2e p50 s
    held         failed  tok/s   tok/s                                            s
    ════════════════════════════════════════════════════════════════════════════════════════════════════
    1 / 0.999    12 / 0  60.8    – [1]                   base         – [1]                   1.05
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    [1] too short to tell (0.15 s of content at most): about 103 output tokens would do
    tokens      counted by the server
    shapes      12 too short to tell
    guards      a stream has at least 3 chunks in as many arrivals, over at least 0.200 s
    per stream in flight: 60.9 tok/s (system rate over held concurrency)
    input       512 tokens a request
    stopped by  12 length

    end-to-end: only the whole of these requests was observed
    ───────────────────────────────────────────────────────────────────────────────────────────────
    target  requests     why                e2e tok/s  slow tail        e2e p50 s  e2e tail s
    ═══════════════════════════════════════════════════════════════════════════════════════════════
    1       12 of 12 ok  too short to tell  60.9       min of 12: 60.9  1.05       max of 12: 1.05
                         (0.150 s)
    ───────────────────────────────────────────────────────────────────────────────────────────────
    Tokens ÷ (total time − time to first content) would have printed 424 tok/s (median) at 1. Nothing
    here supports it: so short a denominator may be only the time the delivery took.

    window      11.6 s, steady window (from 2.05 to 13.6 s)
    client lag  at least p95 30.0 µs, at most p95 80.0 µs
    verdict     at 1: valid
    next        denom probe http://localhost:8000/v1/chat/completions -m tiny tells whether the path
                holds answers back, and how fast the model behind it is
    ");
}

#[test]
fn failures_in_a_run_that_was_stopped() {
    let mut stopped = run(vec![failing()]);
    stopped.header.tls = "insecure".into();
    stopped.footer = None;
    let report = build(&stopped, Guards::default());
    assert_snapshot!(page::text(&report, WIDE), @r"
    http://localhost:8000/v1/chat/completions · tiny · openai-chat · closed loop
    !! INSECURE TLS: the server's certificate was not checked !!
    !! CUT SHORT: the record file ends before the run does !!
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    target /    ok /    system      per stream  slow tail  share of 1  TTFT p50 s  TTFT tail  e2e p50 s
    held        failed                                                             s
    ════════════════════════════════════════════════════════════════════════════════════════════════════
    1 / 0.730   4 / 4   32.0        50.0                   base        0.200, n 4             1.46, n 4
                        chunk/s     tok/s, n 4
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    tokens      counted by the server
    shapes      4 streamed
    guards      a stream has at least 3 chunks in as many arrivals, over at least 0.200 s
    per stream in flight: 43.8 chunk/s (system rate over held concurrency)
    input       512 tokens a request
    stopped by  4 length

    window      14.0 s, steady window (from 2.46 to 16.5 s)
    client lag  at least p99 30.0 µs, at most p99 80.0 µs
    failures    4 truncated: “truncated: connection reset”
    warning     at 1: 4 of 8 requests failed: 4 truncated → denom report --rows shows each; figures with
                failed requests as the worst stand beside
    verdict     at 1: INVALID because 0.73 requests were in flight on average and 1 were wanted: below
                90 %; and 4 requests ended ok, and a level needs 6
    ");
}

#[test]
fn single_requests() {
    let slowest = rows::select(rows_of(&failing()), rows::Order::Slowest(5));
    assert_snapshot!(rows::text(&slowest, WIDE), @r"
    ────────────────────────────────────────────────────────────────────────────────────────────────
    id  at  outcome    shape     rate        TTFT s  content s  max gap ms  e2e s  chunks /  tokens
                                                                                   arrivals
    ════════════════════════════════════════════════════════════════════════════════════════════════
    0   1   ok         streamed  50.0 tok/s  0.200   1.26       20.0        1.46   64 / 64   64
    2   1   ok         streamed  50.0 tok/s  0.200   1.26       20.0        1.46   64 / 64   64
    4   1   ok         streamed  50.0 tok/s  0.200   1.26       20.0        1.46   64 / 64   64
    6   1   ok         streamed  50.0 tok/s  0.200   1.26       20.0        1.46   64 / 64   64
    1   1   truncated  –         –           –       1.26       –           –      64 / 64   –
    ────────────────────────────────────────────────────────────────────────────────────────────────
    request 1: truncated: connection reset
    ");
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [80, 100] {
        for levels in every_kind() {
            let text = page::text(
                &report(levels),
                Style {
                    color: false,
                    width,
                },
            );
            for line in text.lines() {
                assert!(
                    unicode_width::UnicodeWidthStr::width(line) <= width,
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn no_page_holds_what_is_no_number() {
    for levels in every_kind() {
        let rows: Vec<_> = levels.iter().flat_map(rows_of).collect();
        let report = report(levels);
        let pages = [
            page::text(&report, WIDE),
            page::markdown(&report),
            page::csv(&report),
            page::json(&report),
            rows::text(&rows, WIDE),
            rows::markdown(&rows),
            rows::csv(&rows),
            rows::json(&rows),
        ];
        for page in pages {
            let mut words = page.split(|c: char| !c.is_alphanumeric());
            assert!(
                !words.any(|word| matches!(word, "NaN" | "inf" | "Infinity")),
                "{page}"
            );
        }
    }
}

#[test]
fn bold_is_for_color_only_and_the_lead_comes_first() {
    let mut led = run(streamed());
    led.header.lead = Lead::PerStream;
    let report = build(&led, Guards::default());
    let plain = page::text(&report, WIDE);
    assert!(!plain.contains('\u{1b}'));
    assert!(plain.find(" 16.4 ") < plain.find(" 231 "), "{plain}");
    let bold = page::text(
        &report,
        Style {
            color: true,
            ..WIDE
        },
    );
    assert!(bold.contains("\u{1b}[1m231\u{1b}["), "{bold}");
}

#[test]
fn csv_rows_are_as_long_as_their_header() {
    let page = page::csv(&report(streamed()));
    let lengths: Vec<_> = page.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(lengths.len(), 3);
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{page}");
}

#[test]
fn rows_without_a_rate_come_last_and_the_rest_by_rate() {
    let all = rows_of(&level(0, 3, 2, STREAMED));
    let rates = |order| -> Vec<f64> {
        let chosen = rows::select(all.clone(), order).into_iter();
        chosen.filter_map(|row| row.rate?.value()).collect()
    };
    let (slowest, fastest) = (
        rates(rows::Order::Slowest(3)),
        rates(rows::Order::Fastest(3)),
    );
    assert!(slowest.is_sorted() && fastest.is_sorted_by(|a, b| a >= b));
    assert!(slowest[0] < fastest[0]);
    let mixed = rows::select(rows_of(&failing()), rows::Order::Slowest(8));
    let known: Vec<_> = mixed.iter().map(|row| row.rate.is_some()).collect();
    assert!(known.is_sorted_by(|a, b| a >= b), "{known:?}");
}

#[test]
fn an_open_loop_shows_its_plan_and_times_from_it() {
    let planned = |id: u64| {
        let mut trace = answered(id, 0, 0, 1_000 + id * 100, STREAMED);
        trace.planned = trace.start - Length::from_micros(400);
        trace
    };
    let mut level = of(0, 50, (0..40).map(planned).collect(), 6_000);
    level.plan.kind = Loop::Open;
    level.plan.arrivals = Some(Arrivals::Poisson);
    level.plan.target_milli = 10_000;
    let measured = Fate {
        planned: 44,
        started: 40,
        in_flight_limit: 3,
        stopped: 1,
    };
    if let Some(end) = &mut level.end {
        end.planned = Some(Fates {
            measured,
            ..Fates::default()
        });
    }
    assert_snapshot!(page::text(&report(vec![level]), WIDE), @r"
    http://localhost:8000/v1/chat/completions · tiny · openai-chat · open loop
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    target /     ok /    system  per stream   slow tail  share of 1   TTFT p50 s  TTFT tail   e2e p50 s
    held         failed  tok/s   tok/s                                            s
    ════════════════════════════════════════════════════════════════════════════════════════════════════
    10 req/s /   40 / 0  478     50.0         p10 50.0   – [1]        0.200       p90 0.200   1.46
    10.9
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    [1] there is no level at concurrency 1 to compare with
    tokens      counted by the server
    shapes      40 streamed
    guards      a stream has at least 3 chunks in as many arrivals, over at least 0.200 s
    per stream in flight: 43.8 tok/s (system rate over held concurrency)
    input       512 tokens a request
    stopped by  40 length

    window      5.36 s, whole run, ramp and drain included (from 1.00 to 6.36 s)
    plan        poisson arrivals, 40 of 44 planned requests started, not started: 3 in_flight_limit, 1
                stopped; sent after its instant: p90 0.400 ms
    from plan   TTFT p50 0.200 s, p90 0.200 s; end to end p50 1.46 s, p90 1.46 s
    client lag  at least p99 30.0 µs, at most p99 80.0 µs
    warning     at 10 req/s: there is no steady window: system figures are over the whole run, ramp and
                drain included → --requests 45 would do
    verdict     at 10 req/s: INVALID because 40 of 43 planned requests were started, below 99 %: 3 came
                while as many as allowed (50) were in flight
    ");
}
