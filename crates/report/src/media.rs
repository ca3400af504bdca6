//! The tapes that hold sets, for people.

use base::escape::escape;
use base::format::counted;
use service::media::{MediaAnswer, MediumAnswer};

/// A line for each medium, and which are free.
pub fn media(answer: &MediaAnswer) -> String {
    let total = answer.media.len() as u64;
    let free = answer.media.iter().filter(|medium| medium.free).count() as u64;
    if total == 0 {
        return "no tape has a set of a chain that was written here\n".to_owned();
    }
    let tapes = counted(total, "tape holds sets", "tapes hold sets");
    let free = match free {
        0 => "none of them may be written over".to_owned(),
        1 => "1 of them may be written over".to_owned(),
        more => format!("{more} of them may be written over"),
    };
    let mut text = format!("{tapes}, {free}\n");
    answer.media.iter().for_each(|medium| text.push_str(&line(medium)));
    for warning in &answer.warnings {
        text.push_str(&format!("{}\n", escape(warning.as_bytes())));
    }
    text
}

fn line(medium: &MediumAnswer) -> String {
    let of_job = |(job, sets): (&String, &u64)| {
        format!("{} of {}", counted(*sets, "set", "sets"), escape(job.as_bytes()))
    };
    let mut sets: Vec<String> = medium.jobs.iter().map(of_job).collect();
    let others = medium.sets.len() as u64 - medium.jobs.values().sum::<u64>();
    if others > 0 {
        sets.push(counted(others, "other", "others"));
    }
    let state = match (medium.free, medium.kept.as_slice()) {
        (true, _) => "free".to_owned(),
        (false, []) => "kept: it has a set of no job".to_owned(),
        (false, [why]) => format!("kept {}", escape(why.as_bytes())),
        (false, [why, more @ ..]) => {
            format!("kept {}, and {} more", escape(why.as_bytes()), more.len())
        }
    };
    let name = medium.name.as_ref().map(|name| format!("  {}", escape(name.as_bytes())));
    let (id, name) = (&medium.medium[..8], name.unwrap_or_default());
    format!("  {id}{name}  {}  {}; {state}\n", medium.last_used, sets.join(", "))
}
