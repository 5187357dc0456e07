//! Owns the endpoint's address: what the user typed, taken apart, and what of it may be shown.

use hyper::Uri;
use measure::api::{Api, Route};

use super::secret;

/// An endpoint as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Encrypted.
    pub tls: bool,
    /// Host without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path as typed, without a slash at its end; empty for none.
    pub path: String,
    /// Query as typed.
    pub query: Option<String>,
    /// What was taken out before it may be shown.
    pub redactions: Vec<String>,
}

impl Endpoint {
    /// Takes an address apart.
    ///
    /// # Errors
    /// A sentence for the user, without the secret where there is one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((scheme, _)) = text.split_once("://") else {
            return Err("the URL has no scheme: put http:// or https:// in front".to_string());
        };
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("the URL's scheme must be http or https".into()),
        };
        let uri: Uri = text.parse().map_err(|_| {
            "the URL cannot be read: check it for spaces and typing errors".to_owned()
        })?;
        let authority = uri.authority().ok_or("the URL names no host")?;
        if authority.as_str().contains('@') {
            return Err("the URL holds a user name or password: put the key into an environment variable and name it with --api-key-env".into());
        }
        let query = uri.query().map(str::to_owned);
        if query.as_deref().is_some_and(has_key) {
            return Err("the URL's query holds a key, and URLs end up in logs: put the key into an environment variable and name it with --api-key-env".into());
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err("the URL names no host".into());
        }
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Endpoint {
            tls,
            host,
            port,
            path,
            query,
            redactions: Vec::new(),
        })
    }

    /// The API that the path names, if it names one.
    pub fn api(&self) -> Option<Api> {
        let known = Api::ALL.iter().copied();
        // The longest ending counts: one API's path may end another's.
        known
            .filter_map(|api| Some((self.route(api)?.ending().len(), api)))
            .max_by_key(|(length, _)| *length)
            .map(|(_, api)| api)
    }

    /// The model that the path names, in APIs that put it there.
    pub fn model(&self) -> Option<String> {
        let route = self.route(self.api()?)?;
        route.path.contains("{model}").then_some(())?;
        let before = self.path.strip_suffix(route.ending())?;
        let (_, model) = before.rsplit_once('/')?;
        (!model.is_empty()).then(|| model.to_owned())
    }

    /// The route of `api` that the path ends with.
    fn route(&self, api: Api) -> Option<&'static Route> {
        let ends = |route: &&Route| self.path.ends_with(route.ending());
        api.dialect().routes.iter().find(ends)
    }

    /// The path and query that requests of `api` to `model` go to, for streams or whole answers.
    pub fn path_for(&self, api: Api, model: &str, stream: bool) -> String {
        let dialect = api.dialect();
        let fitting = dialect.routes.iter().find(|route| route.gives(stream));
        let Some((first, rest)) = dialect.routes.split_first() else {
            return self.path.clone();
        };
        let wanted = fitting.unwrap_or(rest.first().unwrap_or(first));
        let (path, query) = match self.route(api) {
            Some(typed) if typed.gives(stream) => (self.path.clone(), ""),
            Some(typed) => {
                let base = self.path.strip_suffix(typed.ending()).unwrap_or_default();
                (format!("{base}{}", wanted.ending()), wanted.query)
            }
            None => {
                let base = match self.path.as_str() {
                    "" => dialect.prefix,
                    typed => typed,
                };
                let path = wanted.path.replace("{model}", &in_path(model));
                (format!("{base}{path}"), wanted.query)
            }
        };
        match (&self.query, query) {
            (Some(query), _) => format!("{path}?{query}"),
            (None, "") => path,
            (None, query) => format!("{path}?{query}"),
        }
    }

    /// The path that lists the server's models, beside the routes of `api`.
    pub fn models_path(&self, api: Api) -> String {
        let dialect = api.dialect();
        let base = match self.route(api) {
            Some(route) => {
                let before = self.path.strip_suffix(route.ending()).unwrap_or_default();
                let place = route.path.split('{').next().unwrap_or_default();
                match route.path.contains('{') {
                    true => before.rsplit_once(place).map_or("", |(base, _)| base),
                    false => before,
                }
            }
            None if self.path.is_empty() => dialect.prefix,
            None => self.path.as_str(),
        };
        format!("{base}{}", dialect.models)
    }

    /// The address with `path`, for people.
    pub fn shown(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let usual = if self.tls { 443 } else { 80 };
        match self.port == usual {
            true => format!("{scheme}://{host}{path}"),
            false => format!("{scheme}://{host}:{}{path}", self.port),
        }
    }

    /// Whether it is on this machine, so that a key in plain text stays here.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// A model's name as part of a path: whatever could end the path there, or stand in none, is
/// percent-encoded.
fn in_path(model: &str) -> String {
    let each = |byte: u8| match byte {
        b'A'..=b'Z'
        | b'a'..=b'z'
        | b'0'..=b'9'
        | b'-'
        | b'_'
        | b'.'
        | b'~'
        | b'/'
        | b':'
        | b'@' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    model.bytes().map(each).collect()
}

fn has_key(query: &str) -> bool {
    query
        .split('&')
        .filter_map(|pair| pair.split('=').next())
        .any(secret::is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> String {
        let endpoint = Endpoint::parse(url).expect(url);
        endpoint.shown(&endpoint.path_for(Api::OpenaiChat, "m", true))
    }

    #[test]
    fn what_the_user_has_becomes_the_full_path() {
        let full = "http://localhost:8000/v1/chat/completions";
        for url in [
            "http://localhost:8000",
            "http://localhost:8000/",
            "http://localhost:8000/v1",
            "http://localhost:8000/v1/",
            full,
        ] {
            assert_eq!(path(url), full, "{url}");
        }
        assert_eq!(
            path("https://x.example/openai/v1"),
            "https://x.example/openai/v1/chat/completions"
        );
        assert_eq!(
            path("https://x.example/deployments/d/chat/completions?api-version=2024-10-21"),
            "https://x.example/deployments/d/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(path("http://[::1]:9"), "http://[::1]:9/v1/chat/completions");
        let endpoint = Endpoint::parse(full).expect("reads");
        assert_eq!(endpoint.models_path(Api::OpenaiChat), "/v1/models");
    }

    #[test]
    fn each_api_is_found_by_its_path_and_completes_it() {
        let full = |url: &str, api, stream| {
            let endpoint = Endpoint::parse(url).expect(url);
            endpoint.path_for(api, "m", stream)
        };
        for (path, api) in [
            ("/v1/chat/completions", Api::OpenaiChat),
            ("/v1/completions", Api::OpenaiCompletions),
            ("/v1/responses", Api::OpenaiResponses),
            ("/v1/messages", Api::Anthropic),
            ("/v1beta/models/m:streamGenerateContent", Api::Gemini),
            ("/api/chat", Api::Ollama),
            ("/api/generate", Api::Ollama),
            ("/generate_stream", Api::Tgi),
        ] {
            let url = format!("http://h{path}");
            assert_eq!(
                Endpoint::parse(&url).expect("reads").api(),
                Some(api),
                "{path}"
            );
            assert_eq!(full(&url, api, true), path);
        }
        assert_eq!(Endpoint::parse("http://h/v1").expect("reads").api(), None);
        assert_eq!(
            full("http://h", Api::Gemini, true),
            "/v1beta/models/m:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            full("http://h", Api::Gemini, false),
            "/v1beta/models/m:generateContent"
        );
        assert_eq!(
            full(
                "http://h/x/models/g:streamGenerateContent",
                Api::Gemini,
                false
            ),
            "/x/models/g:generateContent"
        );
        assert_eq!(
            Endpoint::parse("http://h")
                .expect("reads")
                .path_for(Api::Gemini, "a b?\u{1b}é", true),
            "/v1beta/models/a%20b%3F%1B%C3%A9:streamGenerateContent?alt=sse"
        );
        assert_eq!(full("http://h", Api::Ollama, true), "/api/chat");
        assert_eq!(full("http://h", Api::Tgi, false), "/generate");
        assert_eq!(full("http://h/v1", Api::Anthropic, true), "/v1/messages");
    }

    #[test]
    fn models_are_listed_beside_the_routes_and_one_may_stand_in_the_path() {
        let of = |url: &str, api| Endpoint::parse(url).expect(url).models_path(api);
        assert_eq!(of("http://h", Api::Gemini), "/v1beta/models");
        let full = "http://h/v1beta/models/g:streamGenerateContent?alt=sse";
        assert_eq!(of(full, Api::Gemini), "/v1beta/models");
        let endpoint = Endpoint::parse(full).expect("reads");
        assert_eq!(endpoint.model().as_deref(), Some("g"));
        assert_eq!(of("http://h/api/generate", Api::Ollama), "/api/tags");
        assert_eq!(of("http://h/v1/messages", Api::Anthropic), "/v1/models");
        assert_eq!(
            Endpoint::parse("http://h/v1/messages")
                .expect("reads")
                .model(),
            None
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused_in_a_sentence_without_its_secret() {
        for (url, word) in [
            ("localhost:8000/v1", "scheme"),
            ("ftp://x", "http"),
            ("http://", "URL"),
            ("http://user:sk-secret@x/v1", "--api-key-env"),
            ("https://x/v1?key=sk-secret", "--api-key-env"),
            (
                "https://x/v1?a=b&X-Amz-Signature=sk-secret",
                "--api-key-env",
            ),
        ] {
            let error = Endpoint::parse(url).expect_err(url);
            assert!(error.contains(word), "{url}: {error}");
            assert!(!error.contains("sk-secret"), "{error}");
        }
    }

    #[test]
    fn loopback_is_this_machine_only() {
        let local = |url| Endpoint::parse(url).expect(url).is_loopback();
        assert!(
            local("http://127.0.0.1:1") && local("http://localhost") && local("http://[::1]:2")
        );
        assert!(!local("http://10.0.0.1") && !local("http://localhost.example"));
    }
}
