//! Owns what is asked of a server before a run: which API it speaks and which models it lists.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HOST, HeaderMap, USER_AGENT};
use hyper::{Method, Request};
use measure::api::{Api, clip};
use measure::decode::Progress;
use measure::scrub::Scrub;
use measure::stamp::Stamp;
use measure::time::Length;

use crate::clock::RunClock;
use crate::config::{ASSUMED, CONNECT_TIMEOUT, Config};
use crate::exit::Failure;
use crate::net::connect::connect;
use crate::net::{BodyEnd, Canceller, Sink, Target, Timeouts, Wake};

/// Most bytes of a list of models.
const LIST_LIMIT: usize = 4 << 20;
/// Most bytes of a model's name that is taken from a list unseen: it goes into each request.
const LONGEST_NAME: usize = 1_024;
/// The longest that it may take.
const LIST_TIMEOUT: Length = Length::from_secs(30);

/// What a run needs to know of its endpoint.
pub struct Found {
    /// The endpoint, resolved.
    pub target: Target,
    /// The API.
    pub api: Api,
    /// The model.
    pub model: String,
}

#[derive(Default)]
pub(super) struct Body {
    /// The status.
    pub status: u16,
    bytes: Vec<u8>,
}

impl Sink for Body {
    fn head(&mut self, _: Stamp, status: u16, _: &HeaderMap) {
        self.status = status;
    }

    fn data(&mut self, _: Stamp, bytes: &[u8]) -> Progress {
        self.bytes.extend_from_slice(bytes);
        Progress {
            content: true,
            terminal: false,
            stop: self.bytes.len() > LIST_LIMIT,
        }
    }
}

/// Resolves the endpoint, and asks it for what the flags left open.
///
/// # Errors
/// With code 3 where it cannot be reached, 2 where the user has to choose.
pub async fn discover(config: &Config, clock: RunClock, wake: &Wake) -> Result<Found, Failure> {
    let target = resolve(config, &clock).await?;
    let (api, listed) = match (config.api, &config.model) {
        (Some(api), Some(_)) => (api, Vec::new()),
        (api, _) => ask(config, &target, api, clock, wake).await?,
    };
    let model = match &config.model {
        Some(model) => model.clone(),
        None => only(&listed, &config.scrub)?,
    };
    Ok(Found { target, api, model })
}

/// The endpoint's addresses.
///
/// # Errors
/// With code 3 where its name has none.
pub(super) async fn resolve(config: &Config, clock: &RunClock) -> Result<Target, Failure> {
    let endpoint = &config.endpoint;
    let resolving = Target::resolve(
        endpoint.tls,
        &endpoint.host,
        endpoint.port,
        CONNECT_TIMEOUT,
        clock,
    );
    resolving.await.map_err(|error| {
        Failure::no_result(format!(
            "{error}: check the host's name; nothing was measured"
        ))
    })
}

/// The API that the server speaks, and the models that it lists.
async fn ask(
    config: &Config,
    target: &Target,
    api: Option<Api>,
    clock: RunClock,
    wake: &Wake,
) -> Result<(Api, Vec<String>), Failure> {
    let tried: &[Api] = match &api {
        Some(api) => std::slice::from_ref(api),
        None => &ASKED,
    };
    let mut refusals = Vec::new();
    for api in tried {
        let path = config.endpoint.models_path(*api);
        let body = get(config, target, &path, clock, wake).await?;
        let list = serde_json::from_slice(&body.bytes).ok();
        let listed = list.as_ref().and_then(api.dialect().listed);
        if let (200, Some(listed)) = (body.status, listed) {
            return Ok((*api, listed));
        }
        let shown = config.endpoint.shown(&path);
        refusals.push(format!("{shown} (status {})", body.status));
    }
    let refusals = refusals.join(" and ");
    Err(Failure::no_result(match api {
        Some(_) => format!("no models are listed by {refusals}: name the model with -m"),
        None => format!(
            "no models are listed by {refusals}, so the API cannot be told: give the full path of the endpoint, \
             or name it with --api and the model with -m"
        ),
    }))
}

/// The APIs whose lists are asked for where nothing names one, in this order.
const ASKED: [Api; 2] = [ASSUMED, Api::Ollama];

/// The only model there is.
fn only(listed: &[String], scrub: &Scrub) -> Result<String, Failure> {
    match listed {
        [only] if scrub.finds(only) => Err(Failure::no_result(
            "the server lists a model whose name holds the key itself: name the model with -m",
        )),
        [only] if only.len() > LONGEST_NAME => Err(Failure::no_result(format!(
            "the server lists a model whose name has {} bytes: name the model with -m",
            only.len()
        ))),
        [only] => Ok(only.clone()),
        [] => Err(Failure::usage(
            "the server lists no model: name one with -m",
        )),
        several => {
            let shown = several.iter().take(20).map(|name| clip(name, 80));
            let names: Vec<String> = shown.map(|name| scrub.apply(&name)).collect();
            Err(Failure::usage(format!(
                "the server lists {} models: name one with -m: {}",
                several.len(),
                names.join(", ")
            )))
        }
    }
}

/// Asks for `path`, with the headers that requests have.
///
/// # Errors
/// With code 3 where there is no whole answer.
pub(super) async fn get(
    config: &Config,
    target: &Target,
    path: &str,
    clock: RunClock,
    wake: &Wake,
) -> Result<Body, Failure> {
    let shown = config.endpoint.shown(path);
    let failed = |text: String| {
        let text = config.scrub.apply(&text);
        Failure::no_result(format!(
            "{shown} cannot be asked: {text}: {}",
            config.http.what_to_check()
        ))
    };
    let mut connection = connect(target, &config.connecting(), &clock, wake)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let mut request = Request::builder()
        .method(Method::GET)
        .uri(path)
        .header(HOST, target.host_header())
        .header(USER_AGENT, concat!("denom/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "identity");
    for (name, value) in &config.headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::new()))
        .map_err(|error| failed(error.to_string()))?;
    let limits = Timeouts {
        first_or_idle: LIST_TIMEOUT,
        total: Some(LIST_TIMEOUT),
        linger: Length::from_secs(1),
    };
    let mut body = Body::default();
    let (_canceller, cancel) = Canceller::new();
    let done = connection
        .exchange(request, &limits, &mut body, &cancel)
        .await;
    match done.end {
        Ok(BodyEnd::Complete | BodyEnd::Closed) => Ok(body),
        Ok(BodyEnd::Broken { text, .. }) => Err(failed(text)),
        Ok(BodyEnd::Stopped) => Err(Failure::no_result(format!(
            "{shown} lists models over more than 4 MiB, which is not read: name the model with -m and the API with --api"
        ))),
        Ok(end) => Err(failed(format!("the answer did not end well ({end:?})"))),
        Err(error) => Err(failed(error.text)),
    }
}
