//! Owns what a file's single requests support: traces rebuilt from its stamps, judged as denom's own.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::form::{Row, Rows, Run, Seen};
use crate::count::{Count, Token};
use crate::figure::Withheld;
use crate::judge::{Flag, Guards, Judged, Outcome, Reason, Shape, judge};
use crate::level::streams;
use crate::quantile::{self, Quantile};
use crate::rate::per_second;
use crate::time::{Instant, Length};
use crate::tokens::Source;
use crate::trace::{Body, Finish, Read, Trace, Transport, Usage};

/// One request of a file, judged as far as its stamps allow.
#[derive(Debug, Clone)]
pub struct Request {
    /// Judged by the same function as denom's own requests.
    pub judged: Judged,
    /// Every chunk has a stamp, so every guard can be asked.
    pub whole: bool,
    /// The guards that failed, of those the file can answer.
    pub reasons: Vec<Reason>,
    /// What the tool wrote of its rate, and what tokens ÷ time make.
    pub stated_rate: Option<f64>,
    /// Time to the first token as written.
    pub ttft: Option<f64>,
    /// Output tokens as written.
    pub output: Option<u64>,
    /// Send to end.
    pub e2e: Option<Length>,
    /// The tool counts it as a success.
    pub ok: bool,
    /// Chunks, where the file tells how many.
    pub chunks: Option<u64>,
}

impl Request {
    /// Whether first-content time and generation rate are supported, or at least not refuted.
    pub fn streams(&self) -> bool {
        let stream = !self.judged.arrivals.is_empty() && self.reasons.is_empty();
        let late = self.judged.flags.contains(&Flag::LateBurst);
        self.judged.outcome == Outcome::Ok && stream && !late
    }

    /// Whether its stream was seen and a guard failed: only the whole was observed.
    pub fn falls_back(&self) -> bool {
        self.judged.outcome == Outcome::Ok && !self.reasons.is_empty()
    }

    /// Tokens ÷ (end − first content): what a formula without guards prints.
    pub fn naive(&self) -> Option<f64> {
        let first = self.ttft.filter(|ttft| *ttft > 0.0)?;
        let tail = self.e2e?.as_secs_f64() - first;
        Some(self.output? as f64 / tail.max(1e-9))
    }

    /// Tokens ÷ latency.
    pub fn e2e_rate(&self) -> Option<f64> {
        let latency = self.e2e.filter(|latency| !latency.is_zero())?;
        Some(self.output? as f64 / latency.as_secs_f64())
    }
}

/// The requests of a run, judged; empty where the file has none.
pub fn requests(run: &Run) -> Vec<Request> {
    match &run.rows {
        Rows::None => Vec::new(),
        Rows::Written(rows) => rows.iter().enumerate().map(written).collect(),
        Rows::Own(judged) => judged.iter().map(own).collect(),
    }
}

fn written((id, row): (usize, &Row)) -> Request {
    let judged = judge(trace(id as u64, row), &Guards::default(), false);
    let whole = matches!(row.seen, Seen::All(_));
    let chunks = match &row.seen {
        Seen::All(stamps) => Some(stamps.len() as u64),
        Seen::Ends { chunks, .. } => Some(*chunks),
        Seen::Nothing => None,
    };
    // Without stamps inside, arrivals and bursts cannot be told; with few chunks, arrivals can.
    let few = chunks.is_some_and(|chunks| chunks < Guards::default().min_chunks);
    let answerable = |reason: &Reason| match reason {
        Reason::FewChunks | Reason::Short => true,
        Reason::FewArrivals => whole || few,
        Reason::OneBurst => whole,
    };
    let reasons = match row.seen {
        Seen::Nothing => Vec::new(),
        _ => judged.reasons.iter().copied().filter(answerable).collect(),
    };
    Request {
        judged,
        whole,
        reasons,
        stated_rate: row.stated_rate,
        ttft: row.ttft,
        output: row.output,
        e2e: row.e2e,
        ok: row.ok,
        chunks,
    }
}

fn own(judged: &Judged) -> Request {
    let trace = &judged.trace;
    let since = |to: Option<Instant>| to?.since(trace.sent?);
    Request {
        whole: true,
        reasons: judged.reasons.clone(),
        stated_rate: None,
        ttft: since(trace.first_content).map(Length::as_secs_f64),
        output: judged.tokens.visible,
        e2e: since(trace.end),
        ok: judged.outcome == Outcome::Ok,
        chunks: Some(judged.arrivals.chunks()),
        judged: judged.clone(),
    }
}

/// The trace that a row tells, no finer than its stamps.
fn trace(id: u64, row: &Row) -> Trace {
    let sent = Instant::ORIGIN + row.start.unwrap_or(Length::ZERO);
    let mut trace = Trace::begun(id, 0, 0, false, sent);
    trace.sent = Some(sent);
    trace.body = Body::Stream;
    trace.reads = match &row.seen {
        Seen::All(stamps) => stamps.iter().map(|at| read(sent + *at, 1)).collect(),
        Seen::Ends {
            first,
            last,
            chunks,
        } => {
            let rest = u32::try_from(chunks.saturating_sub(1)).unwrap_or(u32::MAX);
            let mut both = vec![read(sent + *first, 1)];
            both.extend((rest > 0).then(|| read(sent + *last, rest)));
            both
        }
        Seen::Nothing => Vec::new(),
    };
    trace.first_content = trace.reads.first().map(|read| read.at);
    trace.first_answer = trace.first_content;
    trace.last_content = trace.reads.last().map(|read| read.at);
    trace.end = row.e2e.map(|e2e| sent + e2e);
    trace.finish = trace.end.unwrap_or(sent);
    let empty = row.output == Some(0);
    if row.ok {
        trace.transport = Transport::Complete;
        trace.finish_reason = Some(Finish::Length);
        // A success without stamps was still answered; one without tokens was not.
        trace.first_content = trace.first_content.or(trace.end).filter(|_| !empty);
    } else {
        trace.transport = Transport::NoResponse {
            text: "the file counts it as failed".into(),
        };
    }
    trace.usage = row
        .output
        .filter(|_| row.source != Source::None)
        .map(|output| Usage {
            output: Some(output),
            ..Usage::default()
        });
    trace
}

fn read(at: Instant, chunks: u32) -> Read {
    Read {
        at,
        bytes: 0,
        chunks,
        bare: 0,
        chars: 0,
        answer_chunks: chunks,
        answer_chars: 0,
        tokens: None,
        lag_low: None,
        lag_high: Length::ZERO,
    }
}

/// What the requests of a file support: counts, and distributions where there are any.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Which of the file's runs.
    pub run: Option<String>,
    /// Requests in the file.
    pub requests: u64,
    /// Of these, successes by the model's rule: with output.
    pub ok: u64,
    /// Successes by shape; `unproven` where the file's stamps refute no guard and prove none.
    pub shapes: BTreeMap<&'static str, u64>,
    /// Buffered ones by reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Requests in flight on average, from starts and ends, where the file has them.
    pub held: Option<f64>,
    /// Figures.
    pub figures: Vec<ObservedFigure>,
}

/// One distribution over a file's requests, with its basis.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedFigure {
    /// The metric's name in denom.
    pub metric: &'static str,
    /// `s` or `tok/s`.
    pub unit: &'static str,
    /// The interval's rule.
    pub rule: &'static str,
    /// Requests used, of all ok ones.
    pub kept: u64,
    /// Of how many.
    pub of: u64,
    /// Streams at once: as configured and as held.
    pub concurrency: (Option<f64>, Option<f64>),
    /// Why there are no values.
    pub withheld: Option<Withheld>,
    sorted: Vec<f64>,
}

impl ObservedFigure {
    /// The quantile, where n supports it.
    pub fn point(&self, q: Quantile) -> Option<f64> {
        let ranks = quantile::ranks(q, self.sorted.len() as u64).ok()?;
        let index = usize::try_from(ranks.point.saturating_sub(1)).ok()?;
        self.sorted.get(index).copied()
    }

    /// The median, where n supports it.
    pub fn median(&self) -> Option<f64> {
        self.point(Quantile::MEDIAN)
    }

    /// Smallest and largest.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.sorted
            .first()
            .copied()
            .zip(self.sorted.last().copied())
    }
}

impl Serialize for ObservedFigure {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("metric", self.metric)?;
        map.serialize_entry("unit", self.unit)?;
        map.serialize_entry("scope", "per_stream")?;
        map.serialize_entry("evidence", "observed")?;
        map.serialize_entry("interval", &serde_json::json!({ "rule": self.rule }))?;
        let population =
            serde_json::json!({ "kept": self.kept, "of": self.of, "what": "ok requests" });
        map.serialize_entry("population", &population)?;
        let (target, held) = self.concurrency;
        let concurrency = serde_json::json!({ "target": target, "held": held });
        map.serialize_entry("concurrency", &concurrency)?;
        map.serialize_entry("withheld", &self.withheld)?;
        map.serialize_entry("n", &self.sorted.len())?;
        for q in Quantile::ALL {
            map.serialize_entry(&q.name(), &self.point(q))?;
        }
        map.serialize_entry("min", &self.ends().map(|ends| ends.0))?;
        map.serialize_entry("max", &self.ends().map(|ends| ends.1))?;
        map.end()
    }
}

/// What the requests of a run support; none where its file has none.
pub fn observed(run: &Run, requests: &[Request]) -> Option<Observed> {
    if requests.is_empty() {
        return None;
    }
    let ok: Vec<&Request> = requests
        .iter()
        .filter(|request| request.judged.outcome == Outcome::Ok)
        .collect();
    let (mut shapes, mut reasons) = (BTreeMap::new(), BTreeMap::new());
    for request in &ok {
        *shapes.entry(shape(request)).or_insert(0) += 1;
        for reason in &request.reasons {
            *reasons.entry(reason.name()).or_insert(0) += 1;
        }
    }
    let held = held(run);
    Some(Observed {
        run: run.label.clone(),
        requests: requests.len() as u64,
        ok: ok.len() as u64,
        shapes,
        reasons,
        held,
        figures: figures(run, &ok, held),
    })
}

fn shape(request: &Request) -> &'static str {
    match (request.falls_back(), request.chunks, request.whole) {
        (true, _, _) => Shape::Buffered.name(),
        (_, None, _) => "not_in_file",
        (_, _, false) => "unproven",
        _ => request.judged.shape.map_or("unproven", Shape::name),
    }
}

/// Time in flight, summed over requests, ÷ first send to last end.
fn held(run: &Run) -> Option<f64> {
    let spans: Vec<(u64, u64)> = match &run.rows {
        Rows::Written(rows) => rows
            .iter()
            .filter(|row| row.e2e.is_some())
            .map(|row| Some((row.start?.nanos(), row.start?.nanos() + row.e2e?.nanos())))
            .collect::<Option<_>>()?,
        Rows::Own(judged) => judged
            .iter()
            .filter_map(|r| Some((r.trace.sent?.nanos(), r.trace.end?.nanos())))
            .collect(),
        Rows::None => Vec::new(),
    };
    let start = spans.iter().map(|span| span.0).min()?;
    let end = spans.iter().map(|span| span.1).max()?;
    let inside: u128 = spans.iter().map(|(from, to)| u128::from(to - from)).sum();
    (end > start && spans.len() > 1).then(|| inside as f64 / (end - start) as f64)
}

fn figures(run: &Run, ok: &[&Request], held: Option<f64>) -> Vec<ObservedFigure> {
    let figure = |metric, unit, rule, mut values: Vec<f64>, why: &str| {
        values.sort_by(f64::total_cmp);
        ObservedFigure {
            metric,
            unit,
            rule,
            kept: values.len() as u64,
            of: ok.len() as u64,
            concurrency: (run.config.concurrency, held),
            withheld: values
                .is_empty()
                .then(|| Withheld::new("not_supported", why)),
            sorted: values,
        }
    };
    let of = |value: &dyn Fn(&Request) -> Option<f64>| -> Vec<f64> {
        ok.iter().filter_map(|request| value(request)).collect()
    };
    let streamed = |request: &Request| request.streams();
    vec![
        figure(
            "ttft",
            "s",
            "sent_to_first_content",
            of(&|request| request.ttft.filter(|_| streamed(request))),
            "no request of the file is known to have streamed",
        ),
        figure(
            "generation_rate",
            "tok/s",
            "first_to_last_content",
            of(&|request| generation(request).filter(|_| streamed(request))),
            "no request of the file is known to have streamed with tokens counted",
        ),
        figure(
            "e2e",
            "s",
            "sent_to_end",
            of(&|request| {
                request
                    .e2e
                    .filter(|e2e| !e2e.is_zero())
                    .map(Length::as_secs_f64)
            }),
            "no request of the file has an end",
        ),
        figure(
            "e2e_rate",
            "tok/s",
            "sent_to_end",
            of(&|request| request.e2e_rate()),
            "no request of the file has tokens and an end",
        ),
    ]
}

/// Tokens after the first arrival ÷ first to last content. Where stamps inside are missing, the
/// first chunk's share is one of its chunks.
fn generation(request: &Request) -> Option<f64> {
    if request.whole {
        let found = streams::generated::<Token>(&request.judged)?;
        return Some(per_second(
            found.count.millionths(),
            found.interval.length().nanos(),
        ));
    }
    let (first, last) = request.judged.arrivals.ends()?;
    let interval = last.since(first).filter(|span| !span.is_zero())?;
    let all = Count::<Token>::whole(request.output?);
    let chunks = request.chunks.filter(|chunks| *chunks > 1)?;
    let after = all.share(chunks - 1, chunks)?;
    Some(per_second(after.millionths(), interval.nanos()))
}
