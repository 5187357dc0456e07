//! Owns token counts: what the server's sums mean, which tokens arrived, and with which arrival.

use serde::Serialize;

use crate::arrival::Arrival;
use crate::count::Count;
use crate::trace::{Finish, Trace, Usage};

/// Where a count of tokens came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The server said so.
    Server,
    /// Counted here, after the run, by a named vocabulary.
    Tokenizer,
    /// Nobody counted: the unit is the chunk.
    None,
}

/// The tokens of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Who counted.
    pub source: Source,
    /// All output tokens, arrived or not.
    pub billed: Option<u64>,
    /// Those that arrived here.
    pub visible: Option<u64>,
    /// Those that are billed and never arrived, the stop token apart.
    pub hidden: Option<u64>,
    /// Prompt tokens.
    pub input: Option<u64>,
    /// Prompt tokens from a cache.
    pub cached: Option<u64>,
    /// Why the counts cannot be believed, with both numbers.
    pub inconsistent: Option<String>,
    /// They were spread over arrivals by characters.
    pub apportioned: bool,
    /// One billed token is the stop token, which never arrives.
    pub stop_token: bool,
}

const NONE: Tokens = Tokens {
    source: Source::None,
    billed: None,
    visible: None,
    hidden: None,
    input: None,
    cached: None,
    inconsistent: None,
    apportioned: false,
    stop_token: false,
};

/// Counts the tokens of a request and writes each arrival's share into it.
pub fn count(trace: &Trace, arrivals: &mut [Arrival], ok: bool) -> Tokens {
    let mut tokens = match &trace.usage {
        Some(usage) => settle(usage, trace),
        None => NONE,
    };
    if tokens.source == Source::None && tokens.inconsistent.is_none() {
        if let (Some(counted), true) = (trace.counted, ok) {
            return by_vocabulary(counted, trace, arrivals, tokens);
        }
        if trace.usage.is_none() {
            place_stated(trace, arrivals);
            return NONE;
        }
    }
    if !ok {
        // A total belongs to a whole answer; of a cut one only what each chunk stated counts.
        place_stated(trace, arrivals);
        return Tokens {
            visible: None,
            ..tokens
        };
    }
    if tokens.inconsistent.is_none() {
        place(trace, arrivals, &mut tokens);
    }
    tokens
}

/// Tokens counted here over the text that arrived: all of them are visible, none is a stop token,
/// and what never arrived is not known.
fn by_vocabulary(counted: u64, trace: &Trace, arrivals: &mut [Arrival], before: Tokens) -> Tokens {
    let chars = arrivals.iter().map(|arrival| arrival.chars).sum();
    let chunks: u64 = arrivals.iter().map(|arrival| arrival.chunks).sum();
    let mut tokens = Tokens {
        source: Source::Tokenizer,
        visible: Some(counted),
        inconsistent: implausible(counted, chars),
        ..before
    };
    if tokens.inconsistent.is_some() {
        return tokens;
    }
    if chunks == counted && trace.reads.iter().all(|read| read.bare == 0) {
        for arrival in arrivals {
            arrival.tokens = Some(Count::whole(arrival.chunks));
        }
    } else {
        tokens.apportioned = true;
        apportion(counted, arrivals, chars, false);
    }
    tokens
}

/// What the stated counts mean: the sums tell whether the output includes the reasoning.
fn settle(usage: &Usage, trace: &Trace) -> Tokens {
    let mut tokens = Tokens {
        input: usage.input,
        cached: usage.cached,
        ..NONE
    };
    if usage.bad {
        tokens.inconsistent = Some("a stated token count is no count".into());
    }
    let Some(output) = usage.output else {
        return tokens;
    };
    if let Some(most) = trace.output_fell_from {
        tokens.inconsistent = Some(format!(
            "usage states {output} output tokens, and stated {most} before: a running count fell"
        ));
    }
    let reasoning = usage.reasoning.unwrap_or(0);
    let billed = match (usage.input, usage.total) {
        (Some(input), Some(total)) if input.checked_add(output) != Some(total) => {
            // In more bits than the counts have: no sum may stop short of what it is.
            let sum = u128::from(input) + u128::from(output);
            if sum + u128::from(reasoning) != u128::from(total) {
                tokens.inconsistent = Some(format!(
                    "usage states {total} tokens in all, and {input} of input and {output} of output make {sum}"
                ));
            }
            output.saturating_add(reasoning)
        }
        _ => output,
    };
    let seen = trace
        .reads
        .iter()
        .any(|read| read.answer_chars < read.chars);
    let unseen = if !seen || trace.reasoning_summary {
        reasoning
    } else {
        0
    };
    let hidden = unseen.saturating_add(usage.rejected.unwrap_or(0));
    tokens.source = Source::Server;
    tokens.billed = Some(billed);
    tokens.hidden = Some(hidden);
    tokens.visible = billed.checked_sub(hidden);
    if tokens.visible.is_none() {
        tokens.inconsistent = Some(format!(
            "usage states {hidden} hidden tokens of {billed} output tokens"
        ));
    }
    tokens
}

/// Tokens as stated per chunk, where every chunk had them.
fn place_stated(trace: &Trace, arrivals: &mut [Arrival]) -> Option<u64> {
    // Where a running count fell, its steps are no counts.
    let runs = trace.output_fell_from.is_none();
    if !runs || trace.stated_chunks == 0 || trace.stated_chunks != trace.chunks() {
        return None;
    }
    let total = arrivals
        .iter()
        .map(|arrival| arrival.stated)
        .sum::<Option<u64>>()?;
    for arrival in arrivals {
        arrival.tokens = arrival.stated.map(Count::whole);
    }
    Some(total)
}

/// The chunks and characters of an arrival that its visible tokens lie in.
fn weights(arrival: &Arrival, answers_only: bool) -> (u64, u64) {
    match answers_only {
        true => (
            arrival.answer_chunks - arrival.bare.min(arrival.answer_chunks),
            arrival.answer_chars,
        ),
        false => (
            arrival.chunks - arrival.bare.min(arrival.chunks),
            arrival.chars,
        ),
    }
}

fn place(trace: &Trace, arrivals: &mut [Arrival], tokens: &mut Tokens) {
    let Some(total) = tokens.visible else { return };
    let answers = trace.reasoning_summary;
    let (chunks, chars) = arrivals
        .iter()
        .map(|arrival| weights(arrival, answers))
        .fold((0, 0), |(chunks, chars), (more_chunks, more_chars)| {
            (chunks + more_chunks, chars + more_chars)
        });
    if let Some(text) = implausible(total, chars) {
        tokens.inconsistent = Some(text);
        return;
    }
    // The sum of what the chunks stated must be the total, or the statement was of another kind.
    if trace.stated_chunks == trace.chunks() && trace.stated_chunks > 0 {
        let stated = arrivals
            .iter()
            .map(|arrival| arrival.stated)
            .sum::<Option<u64>>();
        let stopped = trace.finish_reason == Some(Finish::Stop);
        if stated == Some(total) || (stopped && stated.is_some_and(|sum| sum + 1 == total)) {
            tokens.stop_token = stated != Some(total);
            tokens.visible = stated;
            place_stated(trace, arrivals);
            return;
        }
    }
    let stopped = trace.finish_reason == Some(Finish::Stop);
    if chunks == total || (stopped && chunks + 1 == total) {
        tokens.stop_token = chunks != total;
        tokens.visible = Some(chunks);
        for arrival in arrivals {
            arrival.tokens = Some(Count::whole(weights(arrival, answers).0));
        }
        return;
    }
    // Content arrived, so a total of one is not the stop token.
    let unsent = u64::from(stopped && total > 1);
    let arrived = total - unsent;
    tokens.stop_token = unsent > 0;
    tokens.visible = Some(arrived);
    tokens.apportioned = true;
    apportion(arrived, arrivals, chars, answers);
}

/// Spreads `total` by characters, or by chunks where the content has none, by running sums, so
/// that the shares add up to it exactly.
fn apportion(total: u64, arrivals: &mut [Arrival], chars: u64, answers: bool) {
    let all = Count::whole(total);
    let weight = |arrival: &Arrival| match chars {
        0 => arrival.chunks,
        _ => weights(arrival, answers).1,
    };
    let whole: u64 = arrivals.iter().map(weight).sum();
    let (mut before, mut seen) = (Count::ZERO, 0);
    for arrival in arrivals {
        seen += weight(arrival);
        let Some(upto) = all.share(seen, whole) else {
            return;
        };
        arrival.tokens = upto.less(before);
        before = upto;
    }
}

/// Fewer than 0.2 or more than 12 characters a token: the count is not of this text.
fn implausible(total: u64, chars: u64) -> Option<String> {
    if chars == 0 && total > 0 {
        return None;
    }
    let plausible =
        total > 0 && chars.saturating_mul(5) >= total && chars <= total.saturating_mul(12);
    (!plausible).then(|| {
        format!(
            "usage states {total} visible output tokens for {chars} characters of text that arrived"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::join;
    use crate::time::{Instant, Length};
    use crate::trace::Read;

    fn reads(chunks: &[(u32, u32)]) -> Vec<Read> {
        let each = |(i, &(chunks, chars)): (usize, &(u32, u32))| Read {
            at: Instant::from_nanos(i as u64 * 10_000_000),
            bytes: chars,
            chunks,
            bare: 0,
            chars,
            answer_chunks: chunks,
            answer_chars: chars,
            tokens: None,
            lag_low: None,
            lag_high: Length::ZERO,
        };
        chunks.iter().enumerate().map(each).collect()
    }

    #[test]
    fn a_count_made_here_is_all_visible_and_gives_way_to_the_servers() {
        let mut trace = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
        trace.reads = reads(&[(1, 4), (1, 12), (1, 8)]);
        trace.counted = Some(6);
        trace.finish_reason = Some(Finish::Stop);
        let mut found = join(&trace.reads);
        let tokens = count(&trace, &mut found, true);
        assert_eq!(tokens.source, Source::Tokenizer);
        assert_eq!((tokens.visible, tokens.billed), (Some(6), None));
        assert!(tokens.apportioned && !tokens.stop_token);
        let shares: Vec<_> = found.iter().map(|a| a.tokens).collect();
        assert_eq!(shares, [1, 3, 2].map(|n| Some(Count::whole(n))));
        assert_eq!(count(&trace, &mut found, false).source, Source::None);
        trace.usage = Some(Usage {
            output: Some(4),
            ..Usage::default()
        });
        assert_eq!(count(&trace, &mut found, true).source, Source::Server);
    }

    fn counted(reads: Vec<Read>, usage: Usage, finish: Finish) -> (Tokens, Vec<f64>) {
        let mut trace = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
        trace.reads = reads;
        trace.usage = Some(usage);
        trace.finish_reason = Some(finish);
        let mut found = join(&trace.reads);
        let tokens = count(&trace, &mut found, true);
        (
            tokens,
            found
                .iter()
                .filter_map(|a| a.tokens)
                .map(Count::as_f64)
                .collect(),
        )
    }

    fn output(output: u64) -> Usage {
        Usage {
            input: Some(9),
            output: Some(output),
            total: Some(9 + output),
            ..Usage::default()
        }
    }

    #[test]
    fn one_a_chunk_where_chunks_equal_the_total_or_all_but_the_stop_token() {
        let (tokens, shares) = counted(reads(&[(1, 4), (1, 5)]), output(2), Finish::Stop);
        assert_eq!(
            (tokens.visible, tokens.stop_token, shares),
            (Some(2), false, vec![1.0, 1.0])
        );
        let (tokens, shares) = counted(reads(&[(1, 4), (1, 5)]), output(3), Finish::Stop);
        assert_eq!(
            (tokens.visible, tokens.billed, tokens.stop_token),
            (Some(2), Some(3), true)
        );
        assert_eq!(shares, [1.0, 1.0]);
    }

    #[test]
    fn else_the_total_is_spread_by_characters_and_adds_up() {
        let (tokens, shares) = counted(reads(&[(1, 3), (1, 9)]), output(4), Finish::Length);
        assert_eq!(
            (tokens.visible, tokens.apportioned, tokens.stop_token),
            (Some(4), true, false)
        );
        assert_eq!(shares, [1.0, 3.0]);
        let (tokens, shares) = counted(reads(&[(1, 3), (1, 9)]), output(5), Finish::Stop);
        assert_eq!(
            (
                tokens.visible,
                tokens.stop_token,
                shares.iter().sum::<f64>()
            ),
            (Some(4), true, 4.0)
        );
    }

    #[test]
    fn hidden_reasoning_is_billed_and_not_visible_whichever_way_it_is_summed() {
        let usage = Usage {
            reasoning: Some(64),
            ..output(78)
        };
        let (tokens, _) = counted(reads(&[(7, 30), (7, 30)]), usage, Finish::Length);
        assert_eq!(
            (tokens.billed, tokens.hidden, tokens.visible),
            (Some(78), Some(64), Some(14))
        );
        let apart = Usage {
            reasoning: Some(40),
            total: Some(9 + 2 + 40),
            ..output(2)
        };
        let (tokens, _) = counted(reads(&[(1, 4), (1, 4)]), apart, Finish::Length);
        assert_eq!(
            (tokens.billed, tokens.hidden, tokens.visible),
            (Some(42), Some(40), Some(2))
        );
    }

    #[test]
    fn counts_that_contradict_the_sum_or_the_text_are_not_used() {
        let (tokens, shares) = counted(
            reads(&[(200, 1_000), (200, 1_000)]),
            output(5),
            Finish::Stop,
        );
        assert!(
            tokens
                .inconsistent
                .as_deref()
                .is_some_and(|s| s.contains('5') && s.contains("2000"))
        );
        assert!(shares.is_empty());
        let usage = Usage {
            total: Some(100),
            ..output(2)
        };
        assert!(
            counted(reads(&[(1, 4), (1, 4)]), usage, Finish::Stop)
                .0
                .inconsistent
                .is_some()
        );
        assert!(
            counted(reads(&[(1, 4)]), output(0), Finish::Stop)
                .0
                .inconsistent
                .is_some()
        );
    }

    #[test]
    fn a_count_that_is_none_spoils_those_beside_it() {
        let usage = Usage {
            bad: true,
            ..output(2)
        };
        let (tokens, shares) = counted(reads(&[(1, 4), (1, 5)]), usage, Finish::Stop);
        assert!(tokens.inconsistent.is_some() && shares.is_empty());
    }

    #[test]
    fn a_running_count_that_falls_spoils_the_last_one() {
        let mut trace = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
        trace.reads = reads(&[(1, 4), (1, 5), (1, 3)]);
        trace.finish_reason = Some(Finish::Stop);
        for counts in [[1, 2, 3], [1, 1, 3], [1, 3, 2], [30, 2, 3]] {
            (trace.usage, trace.output_fell_from) = (None, None);
            for count in counts {
                trace.update_usage(output(count), true);
            }
            let tokens = count(&trace, &mut join(&trace.reads), true);
            let fell = !counts.is_sorted();
            assert_eq!(tokens.inconsistent.is_some(), fell, "{counts:?}");
        }
        trace.output_fell_from = None;
        trace.update_usage(output(1), false);
        assert_eq!(trace.output_fell_from, None, "counts of several choices");
    }

    #[test]
    fn the_limits_of_characters_a_token_are_inclusive() {
        assert_eq!(implausible(10, 2), None);
        assert!(implausible(11, 2).is_some());
        assert_eq!(implausible(10, 120), None);
        assert!(implausible(10, 121).is_some());
    }

    #[test]
    fn tokens_stated_per_chunk_are_taken_when_they_sum_to_the_total() {
        let mut trace = Trace::begun(0, 0, 0, false, Instant::ORIGIN);
        trace.reads = reads(&[(1, 9), (1, 9)]);
        trace.reads[0].tokens = Some(3);
        trace.reads[1].tokens = Some(1);
        trace.stated_chunks = 2;
        trace.usage = Some(output(4));
        trace.finish_reason = Some(Finish::Length);
        let mut found = join(&trace.reads);
        let tokens = count(&trace, &mut found, true);
        assert!(!tokens.apportioned);
        assert_eq!(found[0].tokens, Some(Count::whole(3)));
    }
}
