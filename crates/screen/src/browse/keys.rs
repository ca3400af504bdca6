//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use service::failure::Failure;

use super::{BrowseView, BrowseWish, Cursor, Page, TYPED_CHARACTERS_MAX, Typing};

/// Keys, and what they do, for the help page.
pub(super) const KEYS: [(&str, &str); 14] = [
    ("q  Ctrl-C", "end"),
    ("up down  PgUp PgDn  Home End", "choose"),
    ("Enter  right", "open a folder; of a file, its versions"),
    ("Backspace  left", "the folder above"),
    ("[ ]", "the same folder in the set before, or after"),
    ("d", "all sets, to choose one"),
    ("v", "the versions of what is chosen, also of folders"),
    ("space", "mark, or not; marks stay in other sets"),
    ("u", "unmark everything"),
    ("r", "restore what is marked, else what is chosen, from that set"),
    ("/", "only names with the typed text; Esc shows all"),
    ("Ctrl-L", "draw again"),
    ("Ctrl-Z", "suspend; fg in the shell goes on"),
    ("?", "this page, and back"),
];

impl BrowseView<'_> {
    /// Does what a key is for.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Result<BrowseWish, Failure> {
        if key.kind == KeyEventKind::Release {
            return Ok(BrowseWish::None);
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return Ok(match key.code {
                KeyCode::Char('c') => BrowseWish::Quit,
                KeyCode::Char('l') => BrowseWish::Redraw,
                KeyCode::Char('z') => BrowseWish::Stop,
                _ => BrowseWish::None,
            });
        }
        self.note.clear();
        match (self.typing, self.page) {
            (Typing::Filter, _) => {
                self.typed_filter(key.code);
                return Ok(BrowseWish::None);
            }
            (Typing::Into, _) => return self.typed_into(key.code),
            (Typing::Nothing, _) if key.code == KeyCode::Char('q') => return Ok(BrowseWish::Quit),
            (Typing::Nothing, Page::Help) => self.page = self.before_help,
            (Typing::Nothing, _) if key.code == KeyCode::Char('?') => {
                self.before_help = self.page;
                self.page = Page::Help;
            }
            (Typing::Nothing, Page::Folder) => self.press_in_folder(key.code)?,
            (Typing::Nothing, _) => self.press_in_list(key.code)?,
        }
        Ok(BrowseWish::None)
    }

    fn typed_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = Typing::Nothing,
            KeyCode::Esc => {
                self.typing = Typing::Nothing;
                self.filter.clear();
            }
            code => edit(&mut self.filter, code),
        }
        self.in_folder = Cursor::default();
    }

    fn typed_into(&mut self, code: KeyCode) -> Result<BrowseWish, Failure> {
        match code {
            KeyCode::Enter if self.into.is_empty() => {
                self.note = "type the name of a folder; it is made if it is not there".to_owned();
            }
            KeyCode::Enter => return Ok(self.restore()),
            KeyCode::Esc => self.typing = Typing::Nothing,
            code => edit(&mut self.into, code),
        }
        Ok(BrowseWish::None)
    }

    fn press_in_folder(&mut self, code: KeyCode) -> Result<(), Failure> {
        let rows = self.shown().map_or(0, |entries| entries.len());
        if let Some(by) = self.steps(code) {
            self.in_folder.step(by, rows);
            return Ok(());
        }
        match code {
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.enter_folder()?,
            KeyCode::Backspace | KeyCode::Left | KeyCode::Char('h') => self.leave_folder()?,
            KeyCode::Char('[') if self.set > 0 => self.go_to_set(self.set - 1)?,
            KeyCode::Char(']') if self.set + 1 < self.sets().len() => {
                self.go_to_set(self.set + 1)?;
            }
            KeyCode::Char('[') => self.note = "there is no set before".to_owned(),
            KeyCode::Char(']') => self.note = "there is no set after".to_owned(),
            KeyCode::Char('d') => {
                // The newest is at the top.
                self.in_list = Cursor::at(self.sets().len() - 1 - self.set);
                self.page = Page::Days;
            }
            KeyCode::Char('v') => self.show_versions()?,
            KeyCode::Char(' ') => self.mark(),
            KeyCode::Char('u') => self.marks.clear(),
            KeyCode::Char('r') => self.ask_where_to()?,
            KeyCode::Char('/') => self.typing = Typing::Filter,
            KeyCode::Esc => self.filter.clear(),
            _ => {}
        }
        Ok(())
    }

    fn press_in_list(&mut self, code: KeyCode) -> Result<(), Failure> {
        let rows = match self.page {
            Page::Series => self.browser().series().len(),
            Page::Versions => self.versions().len(),
            Page::Days | Page::Folder | Page::Help => self.sets().len(),
        };
        if let Some(by) = self.steps(code) {
            self.in_list.step(by, rows);
            return Ok(());
        }
        match (code, self.page) {
            (KeyCode::Enter | KeyCode::Right, Page::Series) => {
                self.open_series(self.in_list.chosen)?;
            }
            (KeyCode::Enter | KeyCode::Right, Page::Versions) => self.go_to_version()?,
            (KeyCode::Enter | KeyCode::Right, Page::Days) => {
                self.page = Page::Folder;
                self.go_to_set(rows - 1 - self.in_list.chosen)?;
            }
            (KeyCode::Esc | KeyCode::Backspace | KeyCode::Left, Page::Versions | Page::Days) => {
                self.page = Page::Folder;
            }
            _ => {}
        }
        Ok(())
    }

    /// How far a key moves the cursor.
    fn steps(&self, code: KeyCode) -> Option<isize> {
        let page = isize::try_from(self.height.max(1)).unwrap_or(isize::MAX);
        Some(match code {
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::PageUp => -page,
            KeyCode::PageDown => page,
            KeyCode::Home => isize::MIN,
            KeyCode::End => isize::MAX,
            _ => return None,
        })
    }
}

fn edit(text: &mut String, code: KeyCode) {
    match code {
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(letter) if text.chars().count() < TYPED_CHARACTERS_MAX => text.push(letter),
        _ => {}
    }
}
