//! Owns the endpoint's address: what the user typed, taken apart, and what of it may be shown.

use hyper::Uri;
use measure::api::Api;

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

/// Query names that vendors put keys under.
const KEY_NAMES: [&str; 6] = [
    "key",
    "api_key",
    "apikey",
    "api-key",
    "access_token",
    "token",
];

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
        Api::ALL
            .into_iter()
            .find(|api| self.path.ends_with(api.path()))
    }

    /// The path that requests of `api` go to.
    pub fn path_for(&self, api: Api) -> String {
        let path = match self.path.as_str() {
            path if path.ends_with(api.path()) => path.to_owned(),
            "" => format!("/v1{}", api.path()),
            path => format!("{path}{}", api.path()),
        };
        match &self.query {
            Some(query) => format!("{path}?{query}"),
            None => path,
        }
    }

    /// The path that lists the server's models, beside the path of `api`.
    pub fn models_path(&self, api: Api) -> String {
        let path = self.path_for(api);
        let path = path.split('?').next().unwrap_or_default();
        format!("{}/models", path.strip_suffix(api.path()).unwrap_or("/v1"))
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

fn has_key(query: &str) -> bool {
    query
        .split('&')
        .filter_map(|pair| pair.split('=').next())
        .any(|name| KEY_NAMES.contains(&name.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> String {
        let endpoint = Endpoint::parse(url).expect(url);
        endpoint.shown(&endpoint.path_for(Api::OpenaiChat))
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
    fn what_cannot_be_used_is_refused_in_a_sentence_without_its_secret() {
        for (url, word) in [
            ("localhost:8000/v1", "scheme"),
            ("ftp://x", "http"),
            ("http://", "URL"),
            ("http://user:sk-secret@x/v1", "--api-key-env"),
            ("https://x/v1?key=sk-secret", "--api-key-env"),
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
