//! Owns what is said when denom itself is at fault, which never holds a secret.

use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::{Arc, OnceLock};

use measure::scrub::Scrub;

use crate::page::escape;

/// What must not be said; empty until the configuration is decided.
static SECRETS: OnceLock<Arc<Scrub>> = OnceLock::new();

/// From now on a message holds nothing that `scrub` takes out.
pub fn never_say(scrub: &Arc<Scrub>) {
    // A process decides one configuration; a further one would hold the same secrets.
    let _ = SECRETS.set(Arc::clone(scrub));
}

/// Makes panics of this process say what they may, in one line on stderr.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let said = said(info, thread.name(), SECRETS.get().map(Arc::as_ref));
        // Where stderr is gone there is nobody to tell, and a second panic would help no one.
        let _ = writeln!(std::io::stderr(), "{said}");
    }));
}

fn said(info: &PanicHookInfo<'_>, thread: Option<&str>, secrets: Option<&Scrub>) -> String {
    let place = info
        .location()
        .map_or("an unknown place".to_owned(), |place| {
            format!("{}:{}", place.file(), place.line())
        });
    let thread = thread.unwrap_or("unnamed");
    let message = match (info.payload_as_str(), secrets) {
        (Some(message), Some(secrets)) => escape::terminal(&secrets.apply(message)),
        // What the secrets are is not known yet, so nothing but the place is safe to say.
        (Some(_), None) => "(not shown: it might hold a key)".to_owned(),
        (None, _) => "(no message)".to_owned(),
    };
    format!(
        "denom: a fault in denom itself, at {place} on thread {thread}: {message}; please report it with this line. Records written so far can be read with denom report"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::config::secret;

    #[test]
    fn a_panic_says_where_it_was_and_no_key() {
        const KEY: &str = "sk-canary-0123456789abcdef";
        let scrub = Scrub::new(secret::forms(KEY));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let mut lines = vec![said(info, Some("worker-1"), Some(&scrub))];
            lines.push(said(info, None, None));
            ears.lock().expect("held by nobody else").extend(lines);
        }));
        let caught =
            std::panic::catch_unwind(|| panic!("no header from {KEY:?}\u{1b}]52;c;x\u{7}"));
        std::panic::set_hook(usual);
        assert!(caught.is_err());
        let lines = heard.lock().expect("held by nobody else");
        let [known, unknown] = lines.as_slice() else {
            panic!("two lines: {lines:?}");
        };
        assert!(
            known.contains("crash.rs:") && known.contains("worker-1"),
            "{known}"
        );
        assert!(
            known.contains("no header from \"[key]\"\\u{1b}]52"),
            "{known}"
        );
        assert!(
            unknown.contains("crash.rs:") && !unknown.contains("canary"),
            "{unknown}"
        );
    }
}
