//! A ping to a monitoring service, as healthchecks and Uptime Kuma take it.
//!
//! `curl` sends it: an address may need certificates, a proxy or a password, which it knows. It
//! reads the address from its standard input, since other users can see arguments.

use std::io::Write as _;
use std::process::{Child, Stdio};

/// A place that is told when a run starts and ends.
pub(super) struct Ping {
    url: String,
    begun: Option<Child>,
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Success,
    Failure,
}

/// Seconds that `curl` may take; a run waits for no more at its end.
const LIMIT: &str = "10";

impl Ping {
    pub(super) fn to(url: String) -> Ping {
        Ping { url, begun: None }
    }

    /// Tells the start, and does not wait: an answer, or none, changes nothing.
    pub(super) fn begin(&mut self) {
        self.begun = start_url(&self.url).and_then(|url| send(&url).ok());
    }

    /// Tells the end, and waits for the answer.
    pub(super) fn end(mut self, state: State, exit_code: u8) -> Result<(), String> {
        if let Some(mut begun) = self.begun.take() {
            // Its own limit ends it.
            let _ = begun.wait();
        }
        let untold = |why: String| Err(format!("the end of the run was not told to --ping: {why}"));
        let sent = send(&end_url(&self.url, state, exit_code));
        match sent.and_then(Child::wait_with_output) {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                untold(said.lines().next().unwrap_or("curl failed").to_owned())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                untold("curl is not installed".to_owned())
            }
            Err(error) => untold(error.to_string()),
        }
    }
}

/// Where Uptime Kuma takes pings, which has no start.
const KUMA: &str = "/api/push/";

fn start_url(url: &str) -> Option<String> {
    (!url.contains(KUMA)).then(|| with_path(url, "start"))
}

fn end_url(url: &str, state: State, exit_code: u8) -> String {
    match (url.contains(KUMA), state) {
        (true, State::Success) => with_query(url, "status=up&msg=OK"),
        (true, State::Failure) => {
            with_query(url, &format!("status=down&msg=exit%20code%20{exit_code}"))
        }
        (false, State::Success) => url.to_owned(),
        (false, State::Failure) => with_path(url, "fail"),
    }
}

/// The path one step longer, in front of a query.
fn with_path(url: &str, step: &str) -> String {
    let (path, query) = url.split_once('?').map_or((url, None), |(a, b)| (a, Some(b)));
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{}/{step}{query}", path.trim_end_matches('/'))
}

/// The address with these values; those of the same names that it had are replaced.
fn with_query(url: &str, values: &str) -> String {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let own = |value: &&str| {
        !value.is_empty() && !["status=", "msg="].iter().any(|name| value.starts_with(name))
    };
    let rest: Vec<&str> = query.split('&').filter(own).collect();
    let rest = rest.iter().map(|value| format!("&{value}")).collect::<String>();
    format!("{path}?{values}{rest}")
}

fn send(url: &str) -> std::io::Result<Child> {
    let mut command = machine::programs::command("curl")?;
    // Without the file of the user's own options, which has to be the first.
    command.args(["-q", "--globoff", "--silent", "--show-error", "--fail", "--location"]);
    command.args(["--max-time", LIMIT, "--proto", "=http,https"]);
    command.args(["--output", "/dev/null", "--config", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        let escaped = url.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], "");
        // A curl that ended early says why itself.
        let _ = writeln!(input, "url = \"{escaped}\"");
    }
    Ok(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_services_are_told_what_they_take() {
        let of = |url: &str| {
            let end = |state, code| end_url(url, state, code);
            (start_url(url), end(State::Success, 0), end(State::Failure, 2))
        };
        let own = |text: &str| text.to_owned();
        assert_eq!(
            of("https://hc.example/uuid"),
            (
                Some(own("https://hc.example/uuid/start")),
                own("https://hc.example/uuid"),
                own("https://hc.example/uuid/fail")
            )
        );
        assert_eq!(
            of("https://hc.example/uuid/?create=1").0,
            Some(own("https://hc.example/uuid/start?create=1"))
        );
        assert_eq!(
            of("https://kuma.example/api/push/abc?status=up&msg=OK&ping="),
            (
                None,
                own("https://kuma.example/api/push/abc?status=up&msg=OK&ping="),
                own("https://kuma.example/api/push/abc?status=down&msg=exit%20code%202&ping=")
            )
        );
    }
}
