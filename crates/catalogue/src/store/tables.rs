//! The tables. Nothing outside of `store` knows SQL.
//!
//! A *series* is the row of sets of the same sources whose archives lie in the same folder: an
//! index does not say of which machine it is. Its sets have keys that grow with time. A *version*
//! of a file holds for the sets of its series with keys from `first` to `last`; [`NEWEST`] as
//! `last` means that the newest set has it, whichever that is, so that a set in which nothing
//! changed writes no row.
//!
//! A set whose archive is gone stays as a row with `gone`, a mere key, for as long as a version
//! begins or ends with it. So no version is rewritten when a set leaves: it holds for the sets
//! between its ends that are there.

/// `last` of a version that the newest set has.
pub(super) const NEWEST: i64 = i32::MAX as i64;
/// Keys count seconds from 2020-01-01, so that they take four bytes in a row until 2087.
pub(super) const KEY_EPOCH_SECONDS: i64 = 1_577_836_800;

/// Kinds of objects, as `attributes.kind` has them: those of the index.
pub(super) const KIND_FILE: i64 = 0;
pub(super) const KIND_DIRECTORY: i64 = 1;
pub(super) const KIND_HARD_LINK: i64 = 3;

pub(super) const TABLES: &str = "
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    sources BLOB NOT NULL,          -- as the archives have them, separated by NUL
    folder BLOB NOT NULL,           -- in which the archives were
    UNIQUE (sources, folder)
);
CREATE TABLE sets (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL REFERENCES series,
    key INTEGER NOT NULL,           -- grows from set to set of the series
    content BLOB NOT NULL,          -- hash of what the index lists
    time_seconds INTEGER NOT NULL,  -- since 1970
    place BLOB NOT NULL,            -- path of the archive
    compression TEXT NOT NULL,
    members INTEGER NOT NULL,
    files INTEGER NOT NULL,
    source_bytes INTEGER NOT NULL,
    archive_bytes INTEGER NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0, -- its archive is gone
    UNIQUE (series, key),
    UNIQUE (content, time_seconds)
);
CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE
);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY,
    parent INTEGER NOT NULL,        -- a node; minus the series at its top
    name INTEGER NOT NULL REFERENCES names,
    UNIQUE (parent, name)
);
CREATE TABLE attributes (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    UNIQUE (kind, mode, uid, gid)
);
CREATE TABLE versions (
    node INTEGER NOT NULL REFERENCES nodes,
    first INTEGER NOT NULL,         -- key of a set of the series
    last INTEGER NOT NULL,          -- likewise, or 2147483647: the newest set, too
    attributes INTEGER NOT NULL REFERENCES attributes,
    size INTEGER NOT NULL,
    modified_seconds INTEGER NOT NULL,
    modified_nanoseconds INTEGER NOT NULL,
    hash BLOB,                      -- first 16 bytes of the hash of its content
    stored INTEGER NOT NULL REFERENCES sets,
    place INTEGER NOT NULL,         -- of its header in the archive of that set
    PRIMARY KEY (node, first)
) WITHOUT ROWID;
";

/// Made last where a catalogue is filled for the first time: sorting ten million numbers once takes
/// less time than putting each into its place.
pub(super) const NODES_BY_NAME: &str = "CREATE INDEX nodes_by_name ON nodes (name)";

/// What version 2 has besides, also where a catalogue of version 1 becomes one.
pub(super) const TABLES_OF_2: &str = "
CREATE TABLE looks (
    path BLOB PRIMARY KEY,          -- a file in a folder that is looked at
    bytes INTEGER NOT NULL,
    modified_seconds INTEGER NOT NULL,
    modified_nanoseconds INTEGER NOT NULL,
    archive INTEGER                 -- the set that it has; NULL: it has no index
) WITHOUT ROWID;
CREATE TABLE name_blocks (
    last INTEGER PRIMARY KEY,       -- the last name in it; names behind the block before are in it
    names BLOB NOT NULL             -- see name_blocks.rs
);
";

/// What makes version 2 of version 1, before [`TABLES_OF_2`].
pub(super) const TO_2: &str = "ALTER TABLE sets ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;";
