//! The page of keys.

/// Keys, and what they do.
const KEYS: [(&str, &str); 17] = [
    ("q  Ctrl-C", "end"),
    ("up down  j k  PgUp PgDn", "choose a device"),
    ("Enter", "all that is known of it, and back"),
    ("/", "show names with what is typed; Esc shows all again"),
    ("s", "sort by kB/s, req/s, await, aqu-sz, %util, or not"),
    ("g", "graph of the next of these"),
    ("t", "layers below what lies on them, or all side by side"),
    ("i", "devices that have done nothing, too"),
    ("e", "with or without the sentences"),
    ("space", "pause, or go on"),
    ("left right", "one interval back or forward, in pause"),
    ("[ ]", "60 intervals"),
    ("Home End", "the oldest interval that is kept, and the newest"),
    ("+ -", "play a record faster or slower"),
    ("Ctrl-L", "draw all anew"),
    ("Ctrl-Z", "stop; the shell's fg goes on"),
    ("?", "this page, and back"),
];

/// What is no key.
const NOTES: [&str; 3] = [
    "Columns are those of iostat -x; now has the requests in flight.",
    "await: reads and writes together. Full height of all graphs stands over them.",
    "Sentences and the numbers at which they speak: docs/watch.md, docs/rules.md.",
];

/// The lines.
pub(crate) fn lines() -> Vec<String> {
    let keys = KEYS.iter().map(|(key, what)| format!("  {key:<24}{what}"));
    let notes = NOTES.iter().map(|note| format!("  {note}"));
    keys.chain([String::new()]).chain(notes).collect()
}
