//! Owns which words belong to which number, and makes the fields of each number.

use std::ops::Range;

use super::entity::{Class, entity_of};
use super::find::{Candidate, Sort};
use super::interval;
use super::lex::Tok;
use super::load::Mention;
use super::machines::Devices;
use super::quantity::Bound;
use super::scope;
use super::wait;
use super::words::{self, word};
use super::{Counted, Fields, Statistic};
use crate::stated::{Scope, Span};

/// The text, cut, with everything found in it.
pub(super) struct Found<'a> {
    pub text: &'a str,
    pub toks: &'a [Tok],
    pub candidates: &'a [Candidate],
    pub mentions: &'a [Mention],
    pub machines: &'a [Devices],
}

/// The tokens that belong to each candidate: together they are the whole text.
pub(super) fn regions(toks: &[Tok], candidates: &[Candidate]) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    for pair in candidates.windows(2) {
        starts.push(boundary(toks, pair[0].to..pair[1].from));
    }
    let ends = starts.iter().skip(1).copied().chain([toks.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(from, to)| from..to)
        .collect()
}

/// Where, between two numbers, the words of the second begin.
fn boundary(toks: &[Tok], gap: Range<usize>) -> usize {
    let sign = |at: usize, signs: &str| toks[at].sign().is_some_and(|s| signs.contains(s));
    let joins = |at: usize| {
        matches!(
            toks[at].word(),
            Some(
                "and"
                    | "or"
                    | "while"
                    | "but"
                    | "versus"
                    | "vs"
                    | "whereas"
                    | "compared"
                    | "against"
                    | "beside"
                    | "alongside"
                    | "then"
                    | "than"
            )
        )
    };
    let of = |test: &dyn Fn(usize) -> bool| gap.clone().rev().find(|at| test(*at)).map(|at| at + 1);
    gap.clone()
        .find(|at| sign(*at, ".!?"))
        .map(|at| at + 1)
        .or_else(|| of(&|at| sign(at, ";|")))
        .or_else(|| of(&joins))
        .or_else(|| of(&|at| sign(at, ",:")))
        .or_else(|| gap.clone().find(|at| sign(*at, "(")))
        .or_else(|| {
            gap.clone()
                .rev()
                .find(|at| toks[*at].word() == Some("with"))
        })
        .unwrap_or(gap.end.min(toks.len()))
}

impl Found<'_> {
    /// The fields of candidate `index`, whose tokens are `region`.
    pub fn fields(&self, index: usize, region: &Range<usize>) -> Fields {
        let candidate = &self.candidates[index];
        let mut fields = self.number(candidate);
        let of_unit = candidate.unit.as_ref().and_then(|unit| unit.per);
        let rate = candidate.from..candidate.to;
        let said = scope::said(self.toks, region, &rate, of_unit);
        (fields.per, fields.scope) = (said.per, said.scope);
        self.load(candidate, region, &mut fields);
        let tokens = candidate.unit.as_ref().is_some_and(|unit| unit.is_tokens());
        if tokens {
            let of_count = || match candidate.sort {
                Sort::CountOver => words::counted_in_unit(self.toks, &candidate.unit_at),
                _ => None,
            };
            fields.counted = words::counted(self.toks, region)
                .or_else(of_count)
                .map(|c| c.name().to_owned());
            fields.ttft_included = wait::ttft_included(self.toks, region);
        } else {
            fields.counted = candidate
                .unit
                .as_ref()
                .filter(|_| candidate.sort != Sort::Latency)
                .map(|unit| spelled(&unit.noun).to_owned());
            if candidate
                .unit
                .as_ref()
                .is_some_and(|unit| unit.noun != "req")
            {
                self.machine_as_worker(&mut fields);
            }
        }
        self.around(candidate, region, &mut fields);
        fields
    }

    fn slice(&self, range: &Range<usize>) -> Option<String> {
        let first = self.toks.get(range.start)?;
        let last = self.toks.get(range.end.checked_sub(1)?)?;
        self.text.get(first.start..last.end).map(str::to_owned)
    }

    /// Value, bound and unit.
    fn number(&self, candidate: &Candidate) -> Fields {
        let quantity = &candidate.quantity;
        let (low, high) = (quantity.low, quantity.high);
        let mut fields = Fields {
            value: Some(low),
            value_to: (quantity.bound == Bound::Range).then_some(high),
            bound: Some(quantity.bound),
            unit_text: (!candidate.unit_at.is_empty())
                .then(|| self.slice(&candidate.unit_at))
                .flatten(),
            ..Fields::default()
        };
        match candidate.sort {
            Sort::Ratio => {
                let percent = self.toks[candidate.unit_at.start].sign() == Some('%')
                    || word(self.toks, candidate.unit_at.start) == Some("percent");
                fields.unit = Some(if percent { "%" } else { "x" }.into());
            }
            Sort::CountOver => {
                self.computed(candidate, &mut fields);
            }
            _ => {
                let time = candidate.unit.as_ref().and_then(|unit| unit.time);
                fields.unit = candidate.unit.as_ref().map(|unit| unit.short());
                fields.time_base = time;
                fields.per_second = time.map(|time| low / time.seconds);
            }
        }
        fields
    }

    /// The rate of a count over a time: a second's, or, of hours and more, in their base.
    fn computed(&self, candidate: &Candidate, fields: &mut Fields) {
        let Some((stated, count)) = candidate.over else {
            return;
        };
        let base = match stated.seconds >= 3_600.0 {
            true => Some(stated),
            false => super::entity::time_of("s"),
        };
        let noun = candidate.unit.as_ref().map_or("", |unit| &unit.noun);
        let seconds = count * stated.seconds;
        let over = seconds / base.map_or(1.0, |base| base.seconds);
        fields.per_second = fields.value.map(|value| value / seconds);
        fields.value = fields.value.map(|value| value / over);
        fields.value_to = fields.value_to.map(|high| high / over);
        fields.unit = base.map(|base| format!("{noun}/{}", base.short));
        fields.interval_s = Some(seconds);
        fields.interval = self
            .slice(&(candidate.unit_at.end..candidate.to))
            .map(|text| last_phrase(&text));
        fields.time_base = base;
    }

    /// Concurrency and machines.
    fn load(&self, candidate: &Candidate, region: &Range<usize>, fields: &mut Fields) {
        let streams = self
            .mention(candidate, region)
            .and_then(|mention| self.over_machines(mention));
        fields.concurrency = streams.and_then(Span::point);
        fields.concurrency_range = streams.filter(|span| span.point().is_none());
        fields.held_concurrency = self.held().filter(|_| streams.is_none());
        let per = fields.per.filter(|per| per.class == Class::Machine);
        // Of "two nodes of eight GPUs", the kind that the number is per.
        let same = |machine: &&Devices| per.is_none_or(|per| per.name == machine.name);
        let machine = self.machines.iter().find(same);
        fields.devices = machine.map(|machine| machine.count);
        fields.device = machine.map(|machine| machine.name);
    }

    /// How many at once in all: of "2 servers with 8 users each" and "100 users per GPU", times
    /// the machines; none where those are not counted.
    fn over_machines(&self, mention: &Mention) -> Option<Span> {
        let toks = self.toks;
        let streams = mention.streams?;
        let per = match word(toks, mention.to) {
            Some("per") => entity_of(word(toks, mention.to + 1)?),
            Some("each") => {
                let with = |at: usize| matches!(word(toks, at), Some("with" | "of" | "at" | "for"));
                let owner = self
                    .machines
                    .iter()
                    .find(|m| mention.from == m.to || mention.from == m.to + 1 && with(m.to));
                owner.and_then(|m| entity_of(word(toks, m.to - 1)?))
            }
            _ => None,
        };
        match per.filter(|per| per.class == Class::Machine) {
            None => Some(streams),
            Some(per) => {
                let machine = self.machines.iter().find(|m| m.name == per.name)?;
                streams.times(machine.count)
            }
        }
    }

    /// Held concurrency by Little's law, where the text gives a rate of requests and their mean
    /// latency.
    fn held(&self) -> Option<f64> {
        let latency = interval::mean_latency(self.toks)?;
        let requests = self.candidates.iter().find_map(|candidate| {
            let unit = candidate.unit.as_ref()?;
            let time = unit.time?;
            let requests = matches!(unit.noun.as_str(), "req" | "samples") && unit.per.is_none();
            requests.then_some(candidate.quantity.low / time.seconds)
        })?;
        crate::stated::little(requests, latency).and_then(Span::point)
    }

    /// The mention of concurrency that goes with a candidate: the nearest of its own words, else
    /// the nearest of the text where that cannot be another number's.
    pub fn mention(&self, candidate: &Candidate, region: &Range<usize>) -> Option<&Mention> {
        // "10 users and 20 users: 300 and 450 tok/s respectively": the order tells, if at all.
        let in_order = !words::find(self.toks, &(0..self.toks.len()), &["respectively"]).is_empty();
        if in_order && self.mentions.len() > 1 {
            let index = self.candidates.iter().position(|c| c == candidate)?;
            let paired = self.mentions.len() == self.candidates.len();
            return self.mentions.get(index).filter(|_| paired);
        }
        let distance = |mention: &&Mention| match mention.from >= candidate.to {
            true => mention.from - candidate.to,
            false => candidate.from.saturating_sub(mention.to),
        };
        let own = self
            .mentions
            .iter()
            .filter(|m| region.contains(&m.from))
            .min_by_key(distance);
        let first = self.candidates.first().map_or(0, |first| first.from);
        let leads = self
            .mentions
            .iter()
            .filter(|m| m.to <= first)
            .min_by_key(distance);
        let alone = self.candidates.len() == 1 || self.two_scopes_at_one_load();
        let any = || self.mentions.iter().filter(|_| alone).min_by_key(distance);
        own.or(leads).or_else(any)
    }

    /// A system rate beside a per-stream rate and one concurrency: they are of one run, unless
    /// words of extremes say that each is the best of its own.
    fn two_scopes_at_one_load(&self) -> bool {
        let whole = 0..self.toks.len();
        self.mentions.len() == 1
            && self.mentions[0].streams != Span::exactly(1.0)
            && words::statistic(self.toks, &whole, 0, &[]) != Some(Statistic::Peak)
            && self
                .candidates
                .iter()
                .all(|c| c.quantity.bound == Bound::Point)
    }

    /// Pages per GPU on sixteen GPUs: the machines are the workers, as many as there are. Tokens
    /// and requests are served by a machine to several at once.
    fn machine_as_worker(&self, fields: &mut Fields) {
        let per_machine = fields.per.is_some_and(|per| per.class == Class::Machine);
        let said = fields.concurrency.is_some() || fields.concurrency_range.is_some();
        if per_machine && !said && fields.time_base.is_some() {
            fields.scope = Some(Scope::PerStream);
            fields.concurrency = fields.devices;
        }
    }

    /// Interval, statistic and softeners.
    fn around(&self, candidate: &Candidate, region: &Range<usize>, fields: &mut Fields) {
        let toks = self.toks;
        let load: Vec<_> = self.mentions.iter().map(|m| m.from..m.to).collect();
        fields.statistic = words::statistic(toks, region, candidate.from, &load);
        fields.softeners = words::softeners(toks, region);
        if fields.interval.is_some() {
            return;
        }
        let mut taken: Vec<Range<usize>> = self.candidates.iter().map(|c| c.from..c.to).collect();
        taken.extend(self.mentions.iter().map(|m| m.from..m.to));
        if let Some(timed) = interval::interval(toks, region, &taken) {
            fields.interval = self.slice(&timed.tokens);
            fields.interval_s = timed.seconds;
        }
    }
}

/// "in 4.3 minutes" of "from one archive in 4.3 minutes".
fn last_phrase(text: &str) -> String {
    let at = ["in ", "within ", "over ", "during ", "every "]
        .iter()
        .filter_map(|word| text.rfind(word))
        .max();
    text[at.unwrap_or(0)..].to_owned()
}

/// A counted thing by its word, where its unit is an abbreviation.
fn spelled(noun: &str) -> &str {
    match noun {
        "req" => "requests",
        "chunk" => "chunks",
        "h" => "hours",
        "min" => "minutes",
        "s" => "seconds",
        "day" => "days",
        other => other,
    }
}

impl Counted {
    /// `output`, `input`, `total`.
    pub fn name(self) -> &'static str {
        match self {
            Counted::Output => "output",
            Counted::Input => "input",
            Counted::Total => "total",
        }
    }
}
