//! Folders of a catalogue as of a day, on the whole terminal: what the user sees and what keys do.
//!
//! A [`BrowseView`] holds what was chosen; `draw` makes a picture of it; [`run::browse`] connects
//! it with a terminal. Nothing is restored here: what the user wants back is the end of the loop.

mod draw;
mod keys;
pub mod run;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use base::format::counted;
use catalogue::{FolderEntry, FoundVersion, KnownSet};
use service::catalog::{Browser, RestoreFrom};
use service::failure::Failure;

/// Longest text that is typed.
const TYPED_CHARACTERS_MAX: usize = 4096;

/// What is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// What was backed up, where there are sets of several sources.
    Series,
    /// What is in one.
    Folder,
    /// The sets of the series.
    Days,
    /// The versions of what was chosen in the folder.
    Versions,
    Help,
}

/// What is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    Nothing,
    /// A part of the names that are shown.
    Filter,
    /// The folder to restore into.
    Into,
}

/// What the user wants back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseRestore {
    pub from: RestoreFrom,
    pub into: PathBuf,
    /// As the archives have them; none: all that the set has.
    pub paths: Vec<PathBuf>,
}

/// What a key asks of the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BrowseWish {
    None,
    Quit,
    Redraw,
    Stop,
    Restore(BrowseRestore),
}

/// A place in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) chosen: usize,
    pub(crate) scrolled: usize,
}

impl Cursor {
    fn at(chosen: usize) -> Cursor {
        Cursor { chosen, scrolled: 0 }
    }

    fn step(&mut self, by: isize, rows: usize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(rows.saturating_sub(1));
    }

    /// Scrolls so that the chosen row is among those that fit.
    fn fit(&mut self, rows: usize, height: usize) {
        let least = (self.chosen + 1).saturating_sub(height);
        let most = rows.saturating_sub(height);
        self.scrolled = self.scrolled.clamp(least, self.chosen.max(least)).min(most.max(least));
    }
}

/// What the user has chosen to see.
pub(crate) struct BrowseView<'b> {
    browser: &'b Browser,
    pub(crate) page: Page,
    /// The page below the help.
    before_help: Page,
    pub(crate) series: usize,
    pub(crate) set: usize,
    pub(crate) path: Vec<u8>,
    /// What the set has there; `None` if it has no such folder.
    entries: Option<Vec<FolderEntry>>,
    versions: Vec<FoundVersion>,
    /// In the folder, and in any other list.
    pub(crate) in_folder: Cursor,
    pub(crate) in_list: Cursor,
    /// Paths.
    pub(crate) marks: BTreeSet<Vec<u8>>,
    pub(crate) filter: String,
    pub(crate) typing: Typing,
    pub(crate) into: String,
    /// What is to be restored, while the folder is typed.
    wanted: Vec<Vec<u8>>,
    /// What was just found out.
    pub(crate) note: String,
    /// Rows that fit, as of the last picture.
    pub(crate) height: usize,
}

impl<'b> BrowseView<'b> {
    /// Of a catalogue that has at least one set.
    pub(crate) fn new(browser: &'b Browser) -> Result<BrowseView<'b>, Failure> {
        let mut view = BrowseView {
            browser,
            page: Page::Series,
            before_help: Page::Series,
            series: 0,
            set: 0,
            path: Vec::new(),
            entries: None,
            versions: Vec::new(),
            in_folder: Cursor::default(),
            in_list: Cursor::default(),
            marks: BTreeSet::new(),
            filter: String::new(),
            typing: Typing::Nothing,
            into: "restored".to_owned(),
            wanted: Vec::new(),
            note: String::new(),
            height: 10,
        };
        if browser.series().len() == 1 {
            view.open_series(0)?;
        }
        Ok(view)
    }

    pub(crate) fn browser(&self) -> &'b Browser {
        self.browser
    }

    pub(crate) fn sets(&self) -> &'b [KnownSet] {
        let browser: &'b Browser = self.browser;
        &browser.series()[self.series].sets
    }

    pub(crate) fn shown_set(&self) -> &'b KnownSet {
        &self.sets()[self.set]
    }

    pub(crate) fn versions(&self) -> &[FoundVersion] {
        &self.versions
    }

    /// What is in the folder and has the filter in its name; `None` if the set has no such folder.
    pub(crate) fn shown(&self) -> Option<Vec<&FolderEntry>> {
        let wanted = self.filter.to_lowercase();
        let fits = |entry: &&FolderEntry| {
            String::from_utf8_lossy(&entry.name).to_lowercase().contains(&wanted)
        };
        Some(self.entries.as_ref()?.iter().filter(fits).collect())
    }

    fn chosen(&self) -> Option<&FolderEntry> {
        self.shown()?.get(self.in_folder.chosen).copied()
    }

    fn chosen_path(&self) -> Option<Vec<u8>> {
        self.chosen().map(|entry| self.path_of(&entry.name))
    }

    pub(crate) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let slash: &[u8] = if self.path.is_empty() { b"" } else { b"/" };
        [&self.path, slash, name].concat()
    }

    /// Opens the newest set of a series, in the folder where its sources part.
    fn open_series(&mut self, series: usize) -> Result<(), Failure> {
        self.series = series;
        self.set = self.sets().len() - 1;
        self.path.clear();
        self.marks.clear();
        self.page = Page::Folder;
        self.load(None)?;
        while let Some([only]) = self.entries.as_deref()
            && only.is_folder()
        {
            let path = self.path_of(&only.name);
            let below = self.browser.folder(self.shown_set(), &path)?;
            if below.as_ref().is_none_or(|below| !below.iter().any(FolderEntry::is_folder)) {
                break;
            }
            (self.path, self.entries) = (path, below);
        }
        Ok(())
    }

    /// Reads the folder as the set has it, and puts the cursor on a name.
    fn load(&mut self, name: Option<&[u8]>) -> Result<(), Failure> {
        self.filter.clear();
        self.entries = self.browser.folder(self.shown_set(), &self.path)?;
        let at = self
            .shown()
            .and_then(|entries| entries.iter().position(|entry| Some(&*entry.name) == name));
        self.in_folder = Cursor::at(at.unwrap_or(0));
        Ok(())
    }

    fn enter_folder(&mut self) -> Result<(), Failure> {
        let Some(entry) = self.chosen() else { return Ok(()) };
        if !entry.is_folder() {
            return self.show_versions();
        }
        self.path = self.path_of(&entry.name);
        self.load(None)
    }

    fn leave_folder(&mut self) -> Result<(), Failure> {
        if self.path.is_empty() {
            if self.browser.series().len() > 1 {
                self.page = Page::Series;
                self.in_list = Cursor::at(self.series);
            }
            return Ok(());
        }
        let slash = self.path.iter().rposition(|byte| *byte == b'/');
        let name = self.path[slash.map_or(0, |slash| slash + 1)..].to_vec();
        self.path.truncate(slash.unwrap_or(0));
        self.load(Some(&name))
    }

    /// Shows the same folder in another set.
    fn go_to_set(&mut self, set: usize) -> Result<(), Failure> {
        let name = self.chosen().map(|entry| entry.name.clone());
        let filter = std::mem::take(&mut self.filter);
        self.set = set;
        self.load(name.as_deref())?;
        if !filter.is_empty() {
            self.filter = filter;
            self.in_folder = Cursor::default();
        }
        Ok(())
    }

    fn mark(&mut self) {
        let Some(path) = self.chosen_path() else { return };
        if !self.marks.remove(&path) {
            self.marks.insert(path);
        }
        let rows = self.shown().map_or(0, |entries| entries.len());
        self.in_folder.step(1, rows);
    }

    fn show_versions(&mut self) -> Result<(), Failure> {
        let Some(path) = self.chosen_path() else { return Ok(()) };
        self.versions = self.browser.versions(self.shown_set(), &path)?;
        self.versions.reverse();
        if self.versions.is_empty() {
            self.note = "no archive has this folder itself".to_owned();
            return Ok(());
        }
        let shown = self.shown_set().number;
        let at = self.versions.iter().position(|version| version.sets.contains(&shown));
        self.in_list = Cursor::at(at.unwrap_or(0));
        self.page = Page::Versions;
        Ok(())
    }

    /// Goes to the last set that has the chosen version.
    fn go_to_version(&mut self) -> Result<(), Failure> {
        let number = self.versions.get(self.in_list.chosen).and_then(|it| it.sets.last());
        let set = self.sets().iter().position(|set| Some(&set.number) == number);
        self.page = Page::Folder;
        set.map_or(Ok(()), |set| self.go_to_set(set))
    }

    /// The marked paths that the shown set has, else the chosen one.
    fn wanted(&self) -> Result<Vec<Vec<u8>>, Failure> {
        if self.marks.is_empty() {
            return Ok(self.chosen_path().into_iter().collect());
        }
        let mut wanted = Vec::new();
        for path in &self.marks {
            if self.browser.has(self.shown_set(), path)? {
                wanted.push(path.clone());
            }
        }
        Ok(wanted)
    }

    fn ask_where_to(&mut self) -> Result<(), Failure> {
        self.wanted = self.wanted()?;
        let marked = self.marks.len();
        self.note = match (self.wanted.len(), RestoreFrom::of(self.shown_set())) {
            (_, None) => "of this set only the index is here".to_owned(),
            (0, _) if marked > 0 => "this set has nothing that is marked".to_owned(),
            (0, _) => "nothing is chosen".to_owned(),
            (_, Some(_)) => {
                self.typing = Typing::Into;
                String::new()
            }
        };
        Ok(())
    }

    /// The question for the folder to restore into.
    pub(crate) fn question(&self) -> String {
        let wanted = self.wanted.len() as u64;
        let marked = self.marks.len() as u64;
        let objects = counted(wanted, "object", "objects");
        let of = if marked > wanted {
            format!(" (this set has only these of {marked} marked)")
        } else {
            String::new()
        };
        format!("restore {objects}{of} into: {}_", self.into)
    }

    fn restore(&self) -> BrowseWish {
        let Some(from) = RestoreFrom::of(self.shown_set()) else { return BrowseWish::None };
        let path = |path: &Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(path.clone()));
        let paths = self.wanted.iter().map(path).collect();
        BrowseWish::Restore(BrowseRestore { from, into: PathBuf::from(&self.into), paths })
    }
}
