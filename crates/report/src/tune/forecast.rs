//! How long a measurement takes, and what it can show, in one line.

use base::format::{counted, duration};
use base::rounding::Rounding;
use experiment::power::seen_with;
use service::tune::measuring::{Forecast, REPEATS};

/// The line.
pub fn text(forecast: &Forecast) -> String {
    let Forecast { repeats, needed, scatter, extent, difference, .. } = *forecast;
    let digits = Rounding::digits(2);
    let worth = digits.percent(difference);
    let shown = scatter.map_or("an unknown amount".to_owned(), |scatter| digits.percent(scatter));
    let sees = match scatter.and_then(|scatter| seen_with(scatter, extent.compared, repeats)) {
        Some(_) if forecast.is_enough() => format!(", enough to show a difference of {worth}"),
        Some(seen) => format!(", enough to show a difference of {}", digits.percent(seen)),
        None => ", too few to show anything".to_owned(),
    };
    let takes = |repeats: u64| duration(forecast.repeats_seconds(repeats));
    let budget_for = |repeats: u64| duration(forecast.budget_seconds_for(repeats));
    // Name a sufficient budget, so that the user need not try several.
    let more = match needed {
        _ if forecast.is_enough() => String::new(),
        Some(needed) if REPEATS.contains(&needed) => {
            format!("; {worth} needs a --budget of {}", budget_for(needed))
        }
        Some(needed) if needed > *REPEATS.end() => format!(
            "; {worth} would need {} repeats, {}, but the maximum is {}",
            base::format::count(needed),
            takes(needed),
            REPEATS.end()
        ),
        Some(_) => format!("; a result needs a --budget of {}", budget_for(*REPEATS.start())),
        None => "; a smaller difference would need too many repeats".to_owned(),
    };
    format!(
        "runs differ by {shown} in a first look: {} of {} take about {}{sees}{more}",
        counted(repeats, "repeat", "repeats"),
        counted(extent.settings as u64, "setting", "settings"),
        takes(repeats),
    )
}

#[cfg(test)]
mod tests {
    use experiment::power::{Noise, repeats_for};
    use service::tune::measuring::{MeasuringExtent, TimeBudget};

    use super::*;

    /// A forecast and its line.
    #[derive(Debug)]
    struct Told {
        repeats: u64,
        text: String,
    }

    fn told(scatter: f64, difference: f64, budget_seconds: f64) -> Told {
        behind_a_look(scatter, difference, budget_seconds, 0.0)
    }

    fn behind_a_look(
        scatter: f64,
        difference: f64,
        budget_seconds: f64,
        look_seconds: f64,
    ) -> Told {
        let noise = Noise { scatter, degrees: 4.0, run_seconds: 1.0 };
        let extent = MeasuringExtent { settings: 10, compared: 4, round_seconds: 10.0 };
        let budget = TimeBudget { seconds: budget_seconds, look_seconds };
        let forecast = Forecast::of(Some(&noise), extent, difference, budget);
        Told { repeats: forecast.repeats, text: text(&forecast) }
    }

    #[test]
    fn what_it_takes_is_said_and_what_more_would_take() {
        let quiet = told(0.01, 0.05, 600.0);
        assert_eq!(quiet.repeats, 4);
        assert!(
            quiet.text.ends_with("take about 40.0 s, enough to show a difference of 5.0 %"),
            "{quiet:?}"
        );
        let cut = told(0.03, 0.05, 60.0);
        let needed = repeats_for(0.05, 0.03, 4).unwrap();
        assert!(cut.repeats == 6 && (7..=20).contains(&needed), "{needed}");
        let budget = duration((needed + 1) as f64 * 10.0);
        assert!(cut.text.ends_with(&format!("; 5.0 % needs a --budget of {budget}")), "{cut:?}");
        // With that it is enough.
        assert_eq!(told(0.03, 0.05, (needed + 1) as f64 * 10.0).repeats, needed);
        let never = told(0.3, 0.05, 6000.0).text;
        assert!(never.ends_with("; a smaller difference would need too many repeats"));
        let loud = told(0.075, 0.05, 6000.0);
        assert_eq!(loud.repeats, 20);
        assert!(loud.text.ends_with(", but the maximum is 20"), "{loud:?}");
        let one = told(0.01, 0.05, 1.0);
        assert!(one.repeats == 1 && one.text.contains("too few to show anything"), "{one:?}");
        assert!(one.text.ends_with("needs a --budget of 50.0 s"), "{one:?}");
    }
    /// The first look counts against --budget, so a budget that Takeup suggests includes it.
    #[test]
    fn the_budget_that_is_named_has_room_for_the_first_look() {
        let needed = repeats_for(0.05, 0.03, 4).unwrap();
        let cut = behind_a_look(0.03, 0.05, 60.0, 15.0);
        assert_eq!(cut.repeats, 4, "45 s are left for rounds of 10 s");
        let seconds = (needed + 1) as f64 * 10.0 + 15.0;
        let budget = duration(seconds);
        assert!(cut.text.ends_with(&format!("; 5.0 % needs a --budget of {budget}")), "{cut:?}");
        assert_eq!(behind_a_look(0.03, 0.05, seconds, 15.0).repeats, needed);
        assert_eq!(behind_a_look(0.03, 0.05, 5.0, 15.0).repeats, 1);
    }
}
