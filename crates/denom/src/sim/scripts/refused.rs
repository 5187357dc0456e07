//! Owns the scripts that refuse, by status or by a body that is no answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use measure::time::Length;

use super::paced::normal;
use crate::sim::ask::Ask;
use crate::sim::replies::{self, refusal};
use crate::sim::script::Script;

/// Requests that a server refuses while it loads its model, unless its parameter says otherwise.
const LOADING: u64 = 3;
/// Where a redirect leads without a parameter: a port that nothing listens on.
const NOWHERE: &str = "http://127.0.0.1:9/";

pub(super) fn html(_: &Ask) -> Script {
    const PAGE: &str = "<!doctype html>\n<title>Sign in</title>\n\
                        <p>This network asks you to sign in first.</p>\n";
    replies::body(200, "text/html; charset=utf-8", PAGE.into(), Length::ZERO)
}

/// Servers do echo the key they refuse.
fn keyed(ask: &Ask, status: u16, spell: fn(&str) -> String) -> Script {
    let key = ask.key.as_deref().map_or("(none)".to_owned(), spell);
    let message = format!("this key is not accepted: {key}");
    let code = Some("invalid_api_key");
    refusal(ask.dialect, status, &message, "invalid_request_error", code)
}

pub(super) fn http401(ask: &Ask) -> Script {
    keyed(ask, 401, str::to_owned)
}

pub(super) fn http401_base64(ask: &Ask) -> Script {
    keyed(ask, 401, |key| STANDARD.encode(key))
}

pub(super) fn http401_percent(ask: &Ask) -> Script {
    keyed(ask, 401, |key| {
        key.bytes().map(|byte| format!("%{byte:02X}")).collect()
    })
}

pub(super) fn http403(ask: &Ask) -> Script {
    keyed(ask, 403, str::to_owned)
}

pub(super) fn http422(ask: &Ask) -> Script {
    keyed(ask, 422, str::to_owned)
}

pub(super) fn http404(ask: &Ask) -> Script {
    replies::unknown_model(ask.dialect, &ask.model)
}

fn limited(ask: &Ask, after: &str) -> Script {
    let message = "too many requests: try again in a while";
    let code = Some("rate_limit_exceeded");
    let mut script = refusal(ask.dialect, 429, message, "rate_limit_error", code);
    let header = ("retry-after".to_owned(), after.to_owned());
    script.headers.push(header);
    script
}

pub(super) fn http429(ask: &Ask) -> Script {
    limited(ask, "7")
}

pub(super) fn http429_date(ask: &Ask) -> Script {
    limited(ask, "Fri, 31 Dec 2027 23:59:59 GMT")
}

pub(super) fn http429_junk(ask: &Ask) -> Script {
    limited(ask, "soon")
}

pub(super) fn http429_huge(ask: &Ask) -> Script {
    limited(ask, "1000000000")
}

pub(super) fn http500(ask: &Ask) -> Script {
    let message = "the engine is not running";
    refusal(ask.dialect, 500, message, "server_error", None)
}

/// As llama.cpp while it reads the model; then as `normal`.
pub(super) fn loading(ask: &Ask) -> Script {
    let refused = ask.parameter().and_then(|count| count.parse().ok());
    if ask.before >= refused.unwrap_or(LOADING) {
        return normal(ask);
    }
    let message = "Loading model";
    refusal(ask.dialect, 503, message, "unavailable_error", None)
}

pub(super) fn http307(ask: &Ask) -> Script {
    let target = ask.parameter().unwrap_or(NOWHERE);
    // A line end in a header would make two of it.
    let target = target.replace(|sign: char| sign.is_control(), "");
    let mut script = replies::body(307, "text/plain", b"moved\n".to_vec(), Length::ZERO);
    script.headers.push(("location".to_owned(), target));
    script
}

pub(super) fn no_stream_options(ask: &Ask) -> Script {
    if ask.stream_options {
        return replies::parameter(
            "stream_options",
            "stream_options is not known to this server",
        );
    }
    normal(ask)
}

pub(super) fn no_max_tokens(ask: &Ask) -> Script {
    if ask.legacy_max_tokens {
        let message = "max_tokens is not known to this server: use max_completion_tokens";
        return replies::parameter("max_tokens", message);
    }
    normal(ask)
}
