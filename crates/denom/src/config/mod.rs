//! Owns the configuration: what the flags mean once decided, with every contradiction refused.

pub mod prompts;
pub mod secret;
pub mod url;
pub mod values;
pub mod vendor;

use std::path::PathBuf;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use measure::api::{Api, Key, Owner};
use measure::basis::Loop;
use measure::judge::Guards;
use measure::plan::{self, Arrivals, Closed, LevelPlan, Open, Stop};
use measure::prompt::{Lengths, Source};
use measure::record::{Lead, StampMode};
use measure::schedule;
use measure::scrub::Scrub;
use measure::time::Length;
use serde_json::{Map, Value};

use crate::cli::{ArrivalsName, Format, HttpName, LeadName, On429, RunArgs, StampName};
use crate::crash;
use crate::exit::Failure;
use crate::net::tls::{self, TlsOptions};
use crate::net::{ConnectOptions, HttpVersion};
use crate::tokenizer::Vocabulary;
use secret::Secret;
use url::Endpoint;

/// The longest that opening a connection may take.
pub const CONNECT_TIMEOUT: Length = Length::from_secs(30);
/// How long requests may go on after the run was told to end.
pub const GRACE: Length = Length::from_secs(30);

/// A run, decided.
#[derive(Debug, Clone)]
pub struct Config {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The API, where flag or path name it.
    pub api: Option<Api>,
    /// The model, where it was given.
    pub model: Option<String>,
    /// The levels.
    pub levels: Vec<LevelPlan>,
    /// Where prompts come from.
    pub source: Source,
    /// Output tokens to ask for.
    pub output_tokens: Lengths,
    /// Tokens of a shared prefix.
    pub prefix_tokens: u64,
    /// The seed.
    pub seed: u64,
    /// Merged into each body.
    pub body: Map<String, Value>,
    /// A stream is asked for.
    pub stream: bool,
    /// Headers of each request, key included.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Takes secrets out of server texts.
    pub scrub: Arc<Scrub>,
    /// How TLS is done, where the endpoint has it.
    pub tls: Option<Arc<tokio_rustls::rustls::ClientConfig>>,
    /// The version of HTTP that is spoken.
    pub http: HttpVersion,
    /// Certificates are not verified.
    pub insecure: bool,
    /// The longest without content.
    pub timeout: Length,
    /// The longest of a whole request.
    pub max_time: Option<Length>,
    /// How long to wait for the server to be ready, before the run.
    pub wait_ready: Option<Length>,
    /// Pause all requests when a server asks for it with a 429.
    pub pauses: bool,
    /// The guards.
    pub guards: Guards,
    /// How arrivals are stamped.
    pub stamp: StampMode,
    /// Whether the client's own ceiling is measured before a large level.
    pub self_check: bool,
    /// Which rate leads.
    pub lead: Lead,
    /// Keep prompts and answers.
    pub keep_text: bool,
    /// Counts tokens after the run.
    pub vocabulary: Option<Vocabulary>,
    /// Record file as named by the user.
    pub output: Option<PathBuf>,
    /// Overwrite it.
    pub force: bool,
    /// How to print the page.
    pub format: Format,
    /// Send nothing.
    pub dry_run: bool,
    /// No progress.
    pub quiet: bool,
}

impl Config {
    /// How connections are opened.
    pub fn connecting(&self) -> ConnectOptions {
        ConnectOptions {
            stamp: self.stamp,
            timeout: CONNECT_TIMEOUT,
            tls: self.tls.clone(),
            http: self.http,
            greeting: self.timeout,
        }
    }

    /// Decides what `args` mean.
    ///
    /// # Errors
    /// With code 2 for what cannot be used. Nothing was sent.
    pub fn decide(args: RunArgs) -> Result<Self, Failure> {
        let endpoint = Endpoint::parse(&args.url).map_err(Failure::usage)?;
        let api = args
            .endpoint
            .api
            .or(endpoint.api())
            .or(vendor::api(&endpoint.host));
        let model = args.endpoint.model.clone().or(endpoint.model());
        let levels = levels(&args)?;
        let source = match &args.endpoint.prompts {
            Some(file) => Source::File(prompts::read(file)?),
            None => Source::Words(args.endpoint.input_tokens),
        };
        let body = args
            .endpoint
            .body
            .as_deref()
            .map(prompts::read_body)
            .transpose()?
            .unwrap_or_default();
        refuse_contradictions(&args, &body)?;
        let vocabulary = args
            .tokenizer
            .as_deref()
            .map(Vocabulary::open)
            .transpose()?;
        let (headers, scrub) = headers(&args, &endpoint, api.unwrap_or(ASSUMED), &body)?;
        let scrub = Arc::new(scrub);
        crash::never_say(&scrub);
        let options = TlsOptions {
            extra_ca: args.endpoint.connection.cacert.clone(),
            insecure: args.endpoint.connection.insecure,
        };
        let http = match args.endpoint.connection.http {
            HttpName::One => HttpVersion::One,
            HttpName::Two => HttpVersion::Two,
        };
        let tls = match endpoint.tls {
            true => Some(
                tls::client_config(&options, http)
                    .map_err(|error| Failure::usage(error.to_string()))?,
            ),
            false => None,
        };
        Ok(Config {
            endpoint,
            api,
            model,
            levels,
            source,
            output_tokens: args.endpoint.output_tokens,
            prefix_tokens: args.endpoint.prefix_tokens,
            seed: args.endpoint.seed,
            body,
            stream: !args.endpoint.no_stream,
            headers,
            scrub,
            tls,
            http,
            insecure: args.endpoint.connection.insecure,
            timeout: args.endpoint.timeout.0,
            max_time: args.endpoint.max_time.map(|time| time.0),
            wait_ready: args.endpoint.wait_ready.map(|time| time.0),
            pauses: args.endpoint.on_429 == On429::Pause,
            guards: Guards {
                min_chunks: args.endpoint.min_chunks,
                min_interval: args.endpoint.min_interval.0,
            },
            self_check: !args.no_self_check,
            stamp: match args.endpoint.connection.stamp {
                StampName::Kernel => StampMode::Kernel,
                StampName::Read => StampMode::Read,
            },
            lead: match args.lead {
                LeadName::System => Lead::System,
                LeadName::PerStream => Lead::PerStream,
            },
            keep_text: args.keep_text,
            vocabulary,
            output: args.output,
            force: args.force,
            format: args.format,
            dry_run: args.dry_run,
            quiet: args.quiet,
        })
    }

    /// The most streams of any level.
    pub fn most_streams(&self) -> u64 {
        self.levels
            .iter()
            .map(|level| u64::from(level.streams))
            .max()
            .unwrap_or(0)
    }
}

/// Levels of concurrency, or of rates after the one at concurrency 1.
fn levels(args: &RunArgs) -> Result<Vec<LevelPlan>, Failure> {
    let by_requests = args.requests.map(|n| Stop::Requests(n.0));
    let stop = by_requests.or(args.duration.map(|time| Stop::Duration(time.0)));
    let warmup = args.warmup.map(|warmup| warmup.0);
    let mut levels = plan::closed(&Closed {
        concurrency: match args.rate {
            Some(_) => Vec::new(),
            None => args.concurrency.0.clone(),
        },
        baseline: !args.no_baseline,
        baseline_requests: args.baseline_requests.0,
        stop,
        warmup,
    });
    if let Some(rates) = &args.rate {
        levels.extend(plan::open(&Open {
            rates_milli: rates.0.clone(),
            arrivals: match args.arrivals {
                ArrivalsName::Poisson => Arrivals::Poisson,
                ArrivalsName::Constant => Arrivals::Constant,
            },
            most_in_flight: args.max_in_flight.0,
            stop,
            warmup,
            first_index: u32::try_from(levels.len()).unwrap_or(0),
        }));
    }
    let long = |level: &&LevelPlan| {
        level.kind == Loop::Open && schedule::expected(level) > schedule::MOST_PLANNED
    };
    match levels.iter().find(long) {
        None => Ok(levels),
        Some(level) => Err(Failure::usage(format!(
            "--rate {} for that long is more than the {} requests that a level may plan: give a shorter --duration or fewer --requests",
            level.target_milli as f64 / 1e3,
            schedule::MOST_PLANNED
        ))),
    }
}

/// The member of `body` that a flag sets, in whichever API, and that flag.
fn owned(body: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
    let all = Api::ALL.iter().flat_map(|api| api.dialect().owns);
    let (pointer, owner) = all.copied().find(|(pointer, _)| has(body, pointer))?;
    let flag = match owner {
        Owner::Model => "-m",
        Owner::Limit => "--output-tokens",
        Owner::Prompt => "--prompts and --input-tokens",
    };
    Some((pointer, flag))
}

fn has(body: &Map<String, Value>, pointer: &str) -> bool {
    let mut names = pointer.trim_start_matches('/').split('/');
    let first = names.next().and_then(|name| body.get(name));
    names
        .try_fold(first, |found, name| found.map(|value| value.get(name)))
        .flatten()
        .is_some()
}

/// What clap cannot see: flags against the contents of files, and values against each other.
fn refuse_contradictions(args: &RunArgs, body: &Map<String, Value>) -> Result<(), Failure> {
    let clash = |one: &str, other: &str, why: &str| {
        Err(Failure::usage(format!("{one} contradicts {other}: {why}")))
    };
    if let Some(stream) = body.get("stream").and_then(Value::as_bool)
        && stream == args.endpoint.no_stream
    {
        let flag = if args.endpoint.no_stream {
            "--no-stream"
        } else {
            "the absence of --no-stream"
        };
        return clash("\"stream\" in the --body file", flag, "give one of them");
    }
    if body.get("echo").and_then(Value::as_bool) == Some(true) {
        return Err(Failure::usage(
            "\"echo\" in the --body file would count the prompt as output: leave it out",
        ));
    }
    if let Some((pointer, flag)) = owned(body) {
        let name = pointer.trim_start_matches('/').replace('/', ".");
        return clash(
            &format!("\"{name}\" in the --body file"),
            flag,
            "the page would name what was not sent: leave it out of the file",
        );
    }
    if let (Some(limit), timeout) = (args.endpoint.max_time, args.endpoint.timeout)
        && limit.0 < timeout.0
        && timeout.0 != Length::from_secs(60)
    {
        return clash(
            "--max-time",
            "--timeout",
            "the whole request may not be shorter than a wait in it",
        );
    }
    if args.rate.is_some() && args.endpoint.on_429 == On429::Pause {
        return clash(
            "--on-429 pause",
            "--rate",
            "an open loop keeps to its plan whatever the server answers",
        );
    }
    if let Some(Stop::Duration(length)) = args.duration.map(|time| Stop::Duration(time.0))
        && length.is_zero()
    {
        return Err(Failure::usage(
            "--duration 0s measures nothing: give some time",
        ));
    }
    if args.endpoint.min_chunks < 2 {
        return Err(Failure::usage(
            "--min-chunks must be 2 or more: one chunk spans no time",
        ));
    }
    if args.endpoint.timeout.0.is_zero() {
        return Err(Failure::usage(
            "--timeout 0s would end every request: give some time",
        ));
    }
    Ok(())
}

/// The API that a server is first asked for where nothing names one.
pub const ASSUMED: Api = Api::OpenaiChat;

/// Headers that the client sets itself.
const OWN: [&str; 5] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept-encoding",
];

fn headers(
    args: &RunArgs,
    endpoint: &Endpoint,
    api: Api,
    body: &Map<String, Value>,
) -> Result<(Vec<(HeaderName, HeaderValue)>, Scrub), Failure> {
    let mut headers = Vec::new();
    let in_body = secret::in_body(body);
    let mut forms: Vec<String> = in_body
        .iter()
        .flat_map(|text| secret::forms(text))
        .collect();
    for given in &args.endpoint.connection.header {
        let (name, value) = given
            .split_once(':')
            .ok_or_else(|| Failure::usage("--header needs 'Name: value' with a colon"))?;
        let name: HeaderName = name
            .trim()
            .parse()
            .map_err(|_| Failure::usage("--header: the name is no header's name"))?;
        if OWN.contains(&name.as_str()) {
            return Err(Failure::usage(format!(
                "--header '{name}' is set by denom itself: leave it out"
            )));
        }
        let value = value.trim();
        if secret::is_name(name.as_str()) {
            let parts = secret::in_header(name.as_str(), value);
            forms.extend(parts.iter().flat_map(|part| secret::forms(part)));
        }
        headers.push((name, secret::header(value).map_err(Failure::usage)?));
    }
    let place = vendor::key(&endpoint.host, api);
    let given = headers
        .iter()
        .any(|(name, _)| name == AUTHORIZATION || name == place.header);
    if let Some(key) = key(args, &place, given)? {
        forms.extend(key.forms());
        let value = key.header(place.scheme).map_err(Failure::usage)?;
        headers.push((HeaderName::from_static(place.header), value));
    }
    for (name, value) in api.dialect().headers {
        if !headers.iter().any(|(given, _)| given == name) {
            headers.push((
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            ));
        }
    }
    let in_header = headers
        .iter()
        .any(|(name, _)| secret::is_name(name.as_str()));
    if (in_header || !in_body.is_empty())
        && !endpoint.tls
        && !endpoint.is_loopback()
        && !args.endpoint.connection.allow_plaintext_key
    {
        return Err(Failure::usage(format!(
            "a key would go to {} over http, readable on the way: use https, or --allow-plaintext-key if you mean it; nothing was sent",
            endpoint.host
        )));
    }
    Ok((headers, Scrub::new(forms)))
}

fn key(args: &RunArgs, place: &Key, given: bool) -> Result<Option<Secret>, Failure> {
    let held = |name: &str| std::env::var(name).ok().and_then(Secret::new);
    match (&args.endpoint.connection.api_key_env, given) {
        (Some(_), true) => Err(Failure::usage(format!(
            "--api-key-env contradicts --header '{}: …': give one of them",
            place.header
        ))),
        (None, true) => Ok(None),
        // What was given is not repeated: it may be the key itself, put here by mistake.
        (Some(name), false) => held(name).map(Some).ok_or_else(|| {
            Failure::usage(
                "the environment variable named by --api-key-env is not set or empty: the flag takes the name of a variable, not the key; nothing was sent",
            )
        }),
        (None, false) => Ok(place.variables.iter().find_map(|name| held(name))),
    }
}
