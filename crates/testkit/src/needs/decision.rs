//! What happens to a test with missing needs. Depends on the environment, not on the machine.

use crate::needs::need::Need;

/// The environment's rules for missing needs.
pub struct Rules {
    /// Whether a missing need fails a test.
    pub missing: Missing,
    /// Names of waived needs.
    pub waived: Vec<String>,
}

/// The effect of a missing need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// On a developer's machine: the test is left out.
    LeavesOut,
    /// In CI, where everything must be tested: the test fails.
    Fails,
}

/// What happens to a test.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Run,
    /// It is left out because this is missing.
    LeaveOut(Need, String),
    /// It fails with this text.
    Fail(String),
}

impl Rules {
    /// The rules that `CI` and `TAKEUP_TESTS_WITHOUT` set.
    ///
    /// # Panics
    /// When a need is waived that does not exist.
    pub fn of_this_run() -> Rules {
        let text = |name| std::env::var(name).unwrap_or_default();
        Rules::new(&text("CI"), &text("TAKEUP_TESTS_WITHOUT"))
    }

    fn new(ci: &str, without: &str) -> Rules {
        let missing = match ci {
            "" | "0" | "false" => Missing::LeavesOut,
            _ => Missing::Fails,
        };
        let waived: Vec<String> =
            without.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        for name in &waived {
            let known = Need::ALL.iter().any(|need| need.name() == name);
            let names: Vec<&str> = Need::ALL.iter().map(|need| need.name()).collect();
            assert!(known, "TAKEUP_TESTS_WITHOUT: no need is called {name}; known are {names:?}");
        }
        Rules { missing, waived }
    }

    /// The decision on a test that lacks these needs, each with the reason.
    pub fn answer(&self, lacking: &[(Need, String)]) -> Answer {
        let is_waived = |need: Need| self.waived.iter().any(|name| name == need.name());
        let refused =
            lacking.iter().find(|(need, _)| self.missing == Missing::Fails && !is_waived(*need));
        match (refused, lacking.first()) {
            (Some((need, why)), _) => {
                let (name, how) = (need.name(), need.how());
                Answer::Fail(format!(
                    "this test needs {name}, which is not here: {why}\nhint: {how}; or waive it: \
                     TAKEUP_TESTS_WITHOUT={name}"
                ))
            }
            (None, Some((need, why))) => Answer::LeaveOut(*need, why.clone()),
            (None, None) => Answer::Run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ci: &str, without: &str, lacking: &[Need], expected: &str) {
        let lacking: Vec<_> = lacking.iter().map(|need| (*need, "why".to_owned())).collect();
        let answer = match Rules::new(ci, without).answer(&lacking) {
            Answer::Run => "run".to_owned(),
            Answer::LeaveOut(need, _) => format!("without {}", need.name()),
            Answer::Fail(text) => text.split(',').next().unwrap().to_owned(),
        };
        assert_eq!(answer, expected, "{ci:?} {without:?} {lacking:?}");
    }

    #[test]
    fn what_is_missing_fails_where_it_must_be_there() {
        let both = [Need::Fuse, Need::Chromium];
        check("", "", &[], "run");
        check("true", "fuse", &[], "run");
        for ci in ["", "false", "0"] {
            check(ci, "", &both, "without fuse");
        }
        check("true", "", &both, "this test needs fuse");
        check("1", "fuse", &both, "this test needs chromium");
        check("true", "chromium,fuse", &both, "without fuse");
        check("true", "chromium fuse", &both[1..], "without chromium");
    }

    #[test]
    #[should_panic(expected = "no need is called chrome; known are")]
    fn a_need_that_does_not_exist_cannot_be_waived() {
        Rules::new("true", "chrome");
    }
}
