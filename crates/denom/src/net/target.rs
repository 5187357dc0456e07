//! Owns where a run sends its requests: one host, resolved once, its addresses pinned.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::thread::Builder;

use measure::time::Length;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::connect::{ConnectError, Phase};
use crate::clock::Clock;

/// One host and port, with the addresses that every connection of the run goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whether connections are encrypted.
    pub tls: bool,
    /// The host as given, an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The addresses of the host, in the system's order; never empty. Connections try them in turn.
    pub addrs: Vec<SocketAddr>,
    /// How long resolving took; `None` where the host is an address and nothing was asked.
    pub dns: Option<Length>,
}

impl Target {
    /// Resolves `host` once, within `limit`. A changed answer later in the run changes nothing.
    ///
    /// # Errors
    /// In phase `Dns` when the name does not resolve, resolves to nothing, or takes longer.
    pub async fn resolve<C: Clock>(
        tls: bool,
        host: &str,
        port: u16,
        limit: Length,
        clock: &C,
    ) -> Result<Target, ConnectError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let (addrs, dns) = match host.parse::<IpAddr>() {
            Ok(ip) => (vec![SocketAddr::new(ip, port)], None),
            Err(_) => {
                let began = clock.now();
                let addrs = look_up(host, port, limit).await?;
                (addrs, Some(clock.now().since_or_zero(began)))
            }
        };
        let host = host.to_owned();
        Ok(Target {
            tls,
            host,
            port,
            addrs,
            dns,
        })
    }

    /// The `Host` header for this target: the port only where it is not the scheme's own.
    pub fn host_header(&self) -> String {
        let host = match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => format!("[{}]", self.host),
            _ => self.host.clone(),
        };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

/// Asks the system's resolver, on a thread of its own: a resolver that hangs holds up neither the
/// worker nor, as a runtime's blocking pool would, the end of the program.
async fn look_up(host: &str, port: u16, limit: Length) -> Result<Vec<SocketAddr>, ConnectError> {
    let name = host.to_owned();
    let system = move || (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
    look_up_by(system, host, limit).await
}

async fn look_up_by(
    resolver: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
    host: &str,
    limit: Length,
) -> Result<Vec<SocketAddr>, ConnectError> {
    let (give, take) = oneshot::channel();
    let ask = move || {
        // Who asked may have stopped waiting.
        give.send(resolver()).ok();
    };
    let what = format!("cannot resolve {host}");
    let fail = |error: io::Error| ConnectError::from_io(Phase::Dns, &error, what.clone());
    Builder::new()
        .name("resolver".to_owned())
        .spawn(ask)
        .map_err(fail)?;
    let addrs = match timeout(limit.into(), take).await {
        Ok(Ok(found)) => found.map_err(fail)?,
        Ok(Err(_)) => Vec::new(),
        Err(_) => {
            let text = format!("resolving {host} took longer than {limit}");
            return Err(ConnectError::timed_out(Phase::Dns, text));
        }
    };
    if addrs.is_empty() {
        let text = format!("{host} resolves to no address");
        return Err(ConnectError::failed(Phase::Dns, text));
    }
    Ok(addrs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    async fn resolve(tls: bool, host: &str, port: u16) -> Target {
        let clock = VirtualClock::start();
        Target::resolve(tls, host, port, Length::from_secs(10), &clock)
            .await
            .expect("an address resolves")
    }

    #[tokio::test]
    async fn an_address_is_taken_as_it_is() {
        let target = resolve(false, "127.0.0.1", 8080).await;
        assert_eq!(target.addrs, ["127.0.0.1:8080".parse().unwrap()]);
        assert_eq!(target.dns, None);
        assert_eq!(target.host_header(), "127.0.0.1:8080");
    }

    #[tokio::test]
    async fn an_ipv6_address_has_brackets_in_the_header_only() {
        let target = resolve(true, "[::1]", 443).await;
        assert_eq!(target.host, "::1");
        assert_eq!(target.host_header(), "[::1]");
        assert_eq!(resolve(true, "::1", 80).await.host_header(), "[::1]:80");
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_is_an_error_of_the_first_phase() {
        let clock = VirtualClock::start();
        let limit = Length::from_secs(60);
        // Longer than a label may be: refused without a network.
        let name = "x".repeat(70);
        let error = Target::resolve(false, &name, 80, limit, &clock).await;
        let error = error.expect_err("no such name");
        assert_eq!((error.phase, error.timeout), (Phase::Dns, false));
        assert!(error.text.contains("cannot resolve"), "{}", error.text);
    }

    #[tokio::test(start_paused = true)]
    async fn row_31_a_resolver_that_hangs_is_a_timeout_of_its_phase() {
        let (release, hangs) = std::sync::mpsc::channel::<()>();
        let resolver = move || {
            // Ends once the test lets go of its end.
            hangs.recv().ok();
            Ok(Vec::new())
        };
        let began = tokio::time::Instant::now();
        let error = look_up_by(resolver, "slow.example", Length::from_secs(30)).await;
        let error = error.expect_err("it hangs");
        assert_eq!((error.phase, error.timeout), (Phase::Dns, true));
        assert!(
            error.text.contains("slow.example took longer than 30.0 s"),
            "{}",
            error.text
        );
        assert_eq!(began.elapsed().as_secs(), 30);
        drop(release);
    }

    #[tokio::test]
    async fn a_name_is_looked_up_and_the_answer_kept() {
        let target = resolve(false, "localhost", 80).await;
        assert!(target.addrs.iter().all(|addr| addr.ip().is_loopback()));
        assert!(target.dns.is_some());
        assert_eq!(target.host_header(), "localhost");
    }
}
