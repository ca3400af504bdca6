//! The help page.

/// Keys and their functions.
const KEYS: [(&str, &str); 17] = [
    ("q  Ctrl-C", "end"),
    ("up down  j k  PgUp PgDn", "choose a device"),
    ("Enter", "details of the device, and back"),
    ("/", "show only names with the typed text; Esc shows all"),
    ("s", "sort by kB/s, req/s, await, aqu-sz, %util, or not"),
    ("g", "graph the next of these"),
    ("t", "layers as a tree, or a flat list"),
    ("i", "include idle devices, or not"),
    ("e", "show or hide the sentences"),
    ("space", "pause, or go on"),
    ("left right", "one interval back or forward, in pause"),
    ("[ ]", "60 intervals"),
    ("Home End", "the oldest interval that is kept, and the newest"),
    ("+ -", "play a record faster or slower"),
    ("Ctrl-L", "redraw"),
    ("Ctrl-Z", "suspend; fg in the shell resumes"),
    ("?", "this page, and back"),
];

/// Notes below the keys.
const NOTES: [&str; 3] = [
    "Columns are those of iostat -x; now has the requests in flight.",
    "await: reads and writes together. The top of a graph is in its heading.",
    "Sentences and their limits: docs/watch.md, docs/rules.md.",
];

/// The lines.
pub(crate) fn lines() -> Vec<String> {
    let keys = KEYS.iter().map(|(key, what)| format!("  {key:<24}{what}"));
    let notes = NOTES.iter().map(|note| format!("  {note}"));
    keys.chain([String::new()]).chain(notes).collect()
}
