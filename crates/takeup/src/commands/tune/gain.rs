//! The gain of a setting, in words and for documents: the recommended level, or why there is none.

use base::rounding::Rounding;
use experiment::judgement::{Advice, Judgement, Paid, RateVerdict};
use experiment::quantities::Unit;
use experiment::record::Level;
use serde_json::{Value, json};

/// The result of runs over the levels of one setting.
#[derive(Debug)]
pub struct Gain<'a> {
    /// The judgement of all runs.
    pub judgement: &'a Judgement,
    /// The advice for the setting.
    pub advice: &'a Advice,
    /// The smallest gain that is worth a change, as a share.
    pub worth: f64,
    /// Formats a level for people.
    pub shown: fn(&Level) -> String,
}

impl Gain<'_> {
    /// The recommended level, possibly the present one; `None` if that is not settled.
    pub fn recommended(&self) -> Option<&Level> {
        self.advice.worth_setting(self.worth)
    }

    /// The recommended level, if it differs from the present one.
    pub fn to_apply(&self) -> Option<&Level> {
        self.recommended().filter(|level| **level != self.advice.present)
    }

    /// For people.
    pub fn words(&self) -> String {
        let gain = self.advice.gain;
        let digits = Rounding::of(gain.interval.map(|interval| (interval.low, interval.high)));
        let interval = gain.interval.map_or("without an interval".to_owned(), |it| {
            format!("95 % interval {} to {}", digits.number(it.low), digits.number(it.high))
        });
        let times = format!("{} times the rate in force, {interval}", digits.number(gain.ratio));
        let compared =
            self.advice.recommended.as_ref().filter(|level| **level != self.advice.present);
        let better = (self.shown)(compared.unwrap_or(&self.advice.fastest));
        match (gain.verdict, self.to_apply()) {
            (RateVerdict::Same, Some(_)) => {
                format!("no gain in rate: {times}; it costs other programs less")
            }
            (_, Some(_)) => times,
            _ if self.advice.fastest == self.advice.present => self.fastest_already(),
            _ if self.advice.gain_most() <= self.worth => {
                format!("little to gain: {better} gives {times}")
            }
            _ => format!("not settled: {better} gives {times}"),
        }
    }

    /// Nothing was faster than the present value: states what the runs cannot rule out.
    fn fastest_already(&self) -> String {
        let hidden = self.judgement.recommended.first().map_or(f64::INFINITY, |own| own.hidden);
        let others = match hidden {
            none if none <= 1.0 => "all others are slower".to_owned(),
            some if some.is_finite() => {
                let digits = Rounding::digits(3);
                format!("no other is more than {} times as fast (95 %)", digits.number(some))
            }
            _ => "single runs cannot show how fast the others are".to_owned(),
        };
        format!("none: the present value is the fastest, and {others}")
    }

    /// For documents.
    pub fn document(&self) -> Value {
        let (advice, text) = (self.advice, self.words());
        let own = self.judgement.recommended.first();
        match own.filter(|_| advice.fastest == advice.present) {
            // The present value has no interval to itself; all others have an upper bound.
            Some(own) => json!({
                "ratio": 1.0,
                "low": Value::Null,
                "high": own.hidden,
                "verdict": own.verdict,
                "text": text,
            }),
            None => json!({
                "ratio": advice.gain.ratio,
                "low": advice.gain.interval.map(|interval| interval.low),
                "high": advice.gain.interval.map(|interval| interval.high),
                "verdict": advice.gain.verdict,
                "text": text,
            }),
        }
    }

    /// A cost in words.
    pub fn cost_words(&self, paid: &Paid) -> String {
        let shown = |value| Unit::of(paid.measure).shown(value);
        let (now, then) = (shown(paid.recommended), shown(paid.present));
        if now == then || self.to_apply().is_none() {
            return format!("{}: {then}", paid.what);
        }
        let settled = if paid.is_settled { "" } else { "; not settled" };
        format!("{}: {now} instead of {then}{settled}", paid.what)
    }
}
