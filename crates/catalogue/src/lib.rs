//! What exists where: the index of one archive, and the catalogue of many.
//!
//! The index of an archive lies behind the archive, and [`IndexFile`] finds it from the end of a
//! file. The index of a set on tape is in a file of its own. The [`Catalogue`] is one file on this
//! machine with what the indexes of many sets say, so that a file is found without its media. It
//! is a cache of the indexes: what is lost is read from them again.
//!
//! Not here: the bytes of an index, which are `archive`'s, and reading an index from tape, which is
//! `tapeset`'s.
//!
//! # Map
//!
//! - `index_file`: an index that lies in a file.
//! - `set_records`: what an index says of each object of its set.
//! - `sets_folder`: the sets of chains in a folder of archives.
//! - `places`: the folders whose sets a catalogue is to have.
//! - `sources`: which paths of an archive were its sources.
//! - `store`: the file of the catalogue, opened, made and checked.
//! - `store::tables`: its tables, and what their rows mean.
//! - `store::replace`: one that takes the place of another.
//! - `store::names`: names, each stored once.
//! - `store::name_blocks`: all names in a row, to be compared with a glob.
//! - `store::name_pattern`: a glob of names.
//! - `store::versions`: which version of a file the sets of a series have.
//! - `store::loading`: an index that is put into the catalogue.
//! - `store::sets`: the sets that it knows.
//! - `store::leaving`: sets that leave the catalogue.
//! - `store::looks`: files that were looked at, so that they are not opened again.
//! - `store::usage`: where the bytes of sets are.
//! - `store::objects`: what it says of an object.
//! - `store::find`: files by a glob.
//! - `store::folder`: a folder as a set has it.

mod index_file;
mod places;
mod set_records;
mod sets_folder;
mod sources;
mod store;

pub use index_file::{IndexFile, read_at};
pub use places::{PLACES_MAX, Places, PlacesError};
pub use set_records::set_records;
pub use sets_folder::{
    ChainError, FolderSet, INDEX_COPY_END, SetsFolder, WantedSet, is_index_copy,
    is_named_as_archive, is_named_as_set,
};
pub use sources::Sources;
pub use store::find::{FileVersions, Found, FoundVersion};
pub use store::folder::FolderEntry;
pub use store::loading::{Held, Loaded, SetRecord};
pub use store::looks::{LOOKS_MAX, Look, Stamp};
pub use store::objects::{CataloguedKind, CataloguedObject};
pub use store::sets::{KnownSet, SetDescription};
pub use store::usage::{SeriesUsage, Usage};
pub use store::{CATALOGUE_VERSION, Catalogue, CatalogueError};
