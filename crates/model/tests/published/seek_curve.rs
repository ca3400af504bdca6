//! The seek curve through three times, beside two published curves.
//!
//! The three times are those that a data sheet would give for these drives: the published function
//! over one cylinder, over all of them, and its mean over all pairs of cylinders. Nothing is
//! fitted. `cargo test -p model --test published -- --nocapture seek` prints the table.

use model::disk::SeekCurve;
use serde::Deserialize;

#[derive(Deserialize)]
struct Published {
    drives: Vec<Drive>,
}

#[derive(Deserialize)]
struct Drive {
    name: String,
    cylinders: u64,
    /// Distance in cylinders from which on the line holds.
    border: u64,
    short_ms: f64,
    short_root_ms: f64,
    long_ms: f64,
    long_line_ms: f64,
}

impl Drive {
    fn ms(&self, distance: u64) -> f64 {
        let far = distance as f64;
        if distance < self.border {
            self.short_ms + self.short_root_ms * far.sqrt()
        } else {
            self.long_ms + self.long_line_ms * far
        }
    }

    fn average_ms(&self) -> f64 {
        // Of all pairs of cylinders, 2 (n - d) are d apart.
        let pairs = |distance: u64| 2.0 * (self.cylinders - distance) as f64;
        let total: f64 = (1..self.cylinders).map(|far| pairs(far) * self.ms(far)).sum();
        total / (self.cylinders as f64).powi(2)
    }

    fn through_three_times(&self) -> SeekCurve {
        let full_ms = self.ms(self.cylinders - 1);
        let [single_ns, average_ns, full_ns] =
            [self.ms(1), self.average_ms(), full_ms].map(|ms| (ms * 1e6) as u64);
        SeekCurve { single_ns, average_ns, full_ns }
    }
}

/// The curve is nowhere further off than a fifteenth, or a thirtieth on average.
#[test]
fn the_curve_through_three_times_is_near_published_ones() {
    let published: Published = toml::from_str(include_str!("seek-curves.toml")).unwrap();
    let mut text = "\n### seek time by distance\n\n| drive | cylinders | single ms | average ms | \
                    full ms | mean off | most off | at |\n\
                    |---|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut worst = Vec::new();
    for drive in &published.drives {
        let curve = drive.through_three_times();
        let off = |far: u64| curve.ns(far, drive.cylinders) as f64 / 1e6 / drive.ms(far) - 1.0;
        let distances = || 1..drive.cylinders;
        let mean = distances().map(|far| off(far).abs()).sum::<f64>() / distances().count() as f64;
        let most = distances().max_by(|a, b| off(*a).abs().total_cmp(&off(*b).abs())).unwrap();
        let [single, average, full] =
            [curve.single_ns, curve.average_ns, curve.full_ns].map(|ns| ns as f64 / 1e6);
        text.push_str(&format!(
            "| {} | {} | {single:.2} | {average:.2} | {full:.2} | {:.1} % | {:+.1} % | {most} |\n",
            drive.name,
            drive.cylinders,
            mean * 100.0,
            off(most) * 100.0,
        ));
        worst.push((mean, off(most).abs()));
    }
    print!("{text}");
    assert!(worst.iter().all(|(mean, most)| *mean < 0.03 && *most < 0.07), "{worst:?}");
}
