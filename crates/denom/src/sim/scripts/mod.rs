//! Owns the scripts by name: what each model of the simulated server does.

mod broken;
pub mod catalog;
mod codings;
mod families;
mod faulty;
mod frames;
mod held;
mod hostile;
mod list;
mod marks;
mod paced;
mod refused;
mod spelled;
#[cfg(test)]
mod tests;

use measure::time::Length;

use super::ask::Ask;
use super::replies;
use super::script::{Script, When};
use super::tape::Pace;
use catalog::Entry;

/// The script for `ask` by the model of this name, in the API of the ask; `None` for a name that is
/// not in [`names`]. A script that the API cannot say is a refusal by status 400, one that needs
/// HTTP/2 and is asked for over HTTP/1.1 by status 505.
///
/// Where no stream is asked for, a streamed script becomes one body with the same output at the
/// time the stream would have ended; one that fails becomes an error, a broken body, or silence.
pub fn script(name: &str, ask: &Ask) -> Option<Script> {
    let entry = catalog::entries().find(|entry| entry.name == name)?;
    if !entry.dialects.contains(&ask.dialect) {
        return Some(elsewhere(entry, ask));
    }
    if entry.http2 && !ask.http2 {
        return Some(needs_http2(entry, ask));
    }
    Some((entry.make)(ask))
}

fn needs_http2(entry: &Entry, ask: &Ask) -> Script {
    let name = entry.name;
    let message = format!("the script {name} needs HTTP/2, and this request came over HTTP/1.1");
    let code = Some("script_of_http2");
    replies::refusal(ask.dialect, 505, &message, "invalid_request_error", code)
}

fn elsewhere(entry: &Entry, ask: &Ask) -> Script {
    let spoken: Vec<&str> = entry.dialects.iter().map(|d| d.name()).collect();
    let (name, here, spoken) = (entry.name, ask.dialect.name(), spoken.join(", "));
    let message = format!("the script {name} cannot be said in {here}: ask for it in {spoken}");
    let code = Some("script_of_another_api");
    replies::refusal(ask.dialect, 400, &message, "invalid_request_error", code)
}

/// Every name with one line about it.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    catalog::entries().map(|entry| (entry.name, entry.about))
}

const fn millis(millis: u64) -> Length {
    Length::from_millis(millis)
}

fn at(pace: Pace, token: u64) -> When {
    When::At(pace.token(token))
}
