//! Owns `--wait-ready`: asking, outside the run, until the server is ready.

use measure::time::Length;

use super::discover::{get, resolve};
use crate::clock::{Clock, RunClock};
use crate::config::{ASSUMED, Config};
use crate::exit::Failure;
use crate::net::{Target, Wake};

/// The time between two looks.
const BETWEEN: Length = Length::from_secs(1);

/// Whether a server is ready, as far as it tells.
enum Look {
    Ready,
    /// Not yet; why.
    NotYet(String),
}

/// Waits until the server answers that it is healthy, or lists its models; how long that took, and
/// how often it was asked.
///
/// # Errors
/// With code 3 where it does not within `limit`.
pub async fn wait_ready(
    config: &Config,
    limit: Length,
    clock: RunClock,
    wake: &Wake,
) -> Result<(Length, u32), Failure> {
    let began = clock.now();
    let mut looks = 0;
    loop {
        looks += 1;
        let seen = look(config, clock, wake).await;
        let spent = clock.now().since_or_zero(began);
        let why = match seen {
            Look::Ready => return Ok((spent, looks)),
            Look::NotYet(why) => why,
        };
        if spent + BETWEEN > limit {
            return Err(Failure::no_result(format!(
                "{} was not ready within {limit}: {}; nothing was measured: see what the server says, or give it longer with --wait-ready=TIME",
                config.endpoint.shown(""),
                config.scrub.apply(&why)
            )));
        }
        tokio::time::sleep(BETWEEN.into()).await;
    }
}

/// `/health` where there is one, else the list of models: a server that answers it is there.
async fn look(config: &Config, clock: RunClock, wake: &Wake) -> Look {
    let target = match resolve(config, &clock).await {
        Ok(target) => target,
        Err(failure) => return Look::NotYet(failure.text),
    };
    match status(config, &target, "/health", clock, wake).await {
        Ok(200..=299) => return Look::Ready,
        Ok(status @ 500..) => return Look::NotYet(format!("/health answers {status}")),
        Ok(_) => {}
        Err(failure) => return Look::NotYet(failure.text),
    }
    let path = config.endpoint.models_path(config.api.unwrap_or(ASSUMED));
    match status(config, &target, &path, clock, wake).await {
        Ok(status @ (429 | 500..)) => Look::NotYet(format!("{path} answers {status}")),
        // What it minds otherwise, the run's first request will tell.
        Ok(_) => Look::Ready,
        Err(failure) => Look::NotYet(failure.text),
    }
}

async fn status(
    config: &Config,
    target: &Target,
    path: &str,
    clock: RunClock,
    wake: &Wake,
) -> Result<u16, Failure> {
    get(config, target, path, clock, wake)
        .await
        .map(|answer| answer.status)
}
