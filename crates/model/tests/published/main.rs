//! The models compared with published measurements of others.
//!
//! Each series is one file of rows, copied with its source. A few free parameters are fitted on
//! about half of its rows, and the other rows are predicted. A table shows measured and predicted
//! values side by side: `cargo test -p sim --test published -- --nocapture`. A row that does not
//! fit stays in the table, and a test states that it does not fit and what is missing.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod block_size;
mod double_buffer;
mod fit;
mod read_ahead;
mod seek_curve;

/// Largest error of a prediction.
const TOLERANCE: f64 = 0.15;

/// The role of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Fitted,
    Predicted,
}

/// A row of a table: the measured value and the model's.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    role: Role,
    measured_s: f64,
    model_s: f64,
    note: String,
}

impl Row {
    fn off(&self) -> f64 {
        self.model_s / self.measured_s - 1.0
    }

    fn fits(&self) -> bool {
        self.off().abs() <= TOLERANCE
    }
}

/// Prints a table as Markdown, in one write, so that the output of parallel tests does not mix.
fn show(title: &str, lines: &[String], rows: &[Row]) {
    let mut text = format!("\n### {title}\n\n");
    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text.push_str(
        "\n| row | role | measured s | model s | off | |\n|---|---|---:|---:|---:|---|\n",
    );
    for row in rows {
        let role = match row.role {
            Role::Fitted => "fitted",
            Role::Predicted => "predicted",
        };
        let (measured, model, off) = (row.measured_s, row.model_s, row.off() * 100.0);
        let outside = if row.fits() { "" } else { "does not fit " };
        text.push_str(&format!(
            "| {} | {role} | {measured:.1} | {model:.1} | {off:+.1} % | {outside}{} |\n",
            row.name.replace('|', "\\|"),
            row.note
        ));
    }
    println!("{text}");
}
