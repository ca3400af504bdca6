//! `takeup list`: lists the members of an archive.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::process::ExitCode;

use arguments::list::ListArgs;
use base::escape::{Printable, escape, escape_path};
use flow::cancel::Cancel;
use report::list::{long_line, shown_path};
use runs::list::Listed;
use service::failure::{Failure, with_causes};
use service::folder_sets::{FolderSetsRequest, folder_sets};
use service::list::{ListDone, ListEnd, MemberLine, MemberSink, SetsRequest, list, sets};
use service::outcome::Outcome;

use crate::change::Changer;
use crate::outcome::{SummaryPlace, finish, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::Terminal;

/// How a member is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Name,
    NameAndNul,
    Long,
    Json,
}

impl Form {
    fn of(arguments: &ListArgs) -> Form {
        match (arguments.common.json, arguments.long, arguments.null) {
            (true, ..) => Form::Json,
            (_, true, _) => Form::Long,
            (_, _, true) => Form::NameAndNul,
            _ => Form::Name,
        }
    }
}

/// Runs the command.
pub fn run(arguments: &ListArgs) -> ExitCode {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let form = Form::of(arguments);
    let result = match (arguments.folder_request(), arguments.sets_request()) {
        (Some(request), _) => match arguments.not_for_sets() {
            Some(option) => Err(super::verify::not_for_sets(option)),
            None => list_folder(&request, form),
        },
        (None, Some(request)) => list_sets(&request, form, &cancel),
        (None, None) => list_members(arguments, &cancel),
    };
    finish(result, "list", &arguments.common, SummaryPlace::Output)
}

fn list_members(arguments: &ListArgs, cancel: &Cancel) -> Result<Outcome, Failure> {
    let form = Form::of(arguments);
    let mut terminal = Terminal::new(&arguments.common);
    let mut printer = Printer::new(form);
    let changer = Changer::asking(cancel);
    let result = list(&arguments.request(), &terminal, cancel, changer, &mut printer);
    drop(printer);
    terminal.close();
    match result? {
        ListEnd::Whole(done) => print_end(&done, form),
        // A reader that ends early (`| head`) ends the list. That is not a failure.
        ListEnd::NotTaken(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Outcome::Done),
        ListEnd::NotTaken(error) => {
            let text = format!("cannot write standard output: {}", with_causes(&error));
            Err(Failure::of(text, None))
        }
    }
}

fn print_end(done: &ListDone, form: Form) -> Result<Outcome, Failure> {
    to_standard_error(&report::run::near_hints(&done.report.not_found));
    if form == Form::Json {
        to_standard_output(done.answer().to_line().as_bytes())?;
    } else {
        to_standard_error(&report::run::bad_verdict(&done.summary.verdict));
    }
    Ok(done.outcome())
}

/// Lists the sets of a folder.
fn list_folder(request: &FolderSetsRequest, form: Form) -> Result<Outcome, Failure> {
    let done = folder_sets(request)?;
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&done.answer())),
        _ => report::jobs::folder_sets(&done),
    };
    to_standard_output(text.as_bytes())?;
    Ok(done.outcome())
}

/// Lists the sets of the volume in a drive.
fn list_sets(request: &SetsRequest, form: Form, cancel: &Cancel) -> Result<Outcome, Failure> {
    let done = sets(request, cancel, Changer::asking(cancel))?;
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&done.answer())),
        _ => report::list::sets(&done.sets),
    };
    to_standard_output(text.as_bytes())?;
    let told = done.reported.iter().map(|text| ("note", text));
    for (kind, text) in told.chain(done.still_loaded.iter().map(|text| ("warning", text))) {
        let [device, text] = [escape_path(&request.from), escape(text.as_bytes())];
        to_standard_error(&format!("takeup: {kind}: {device}: {text}\n"));
    }
    Ok(done.outcome())
}

/// Writes the list.
struct Printer {
    form: Form,
    output: BufWriter<StdoutLock<'static>>,
}

impl Printer {
    fn new(form: Form) -> Printer {
        Printer { form, output: BufWriter::with_capacity(1 << 16, io::stdout().lock()) }
    }
}

impl MemberSink for Printer {
    fn member(&mut self, listed: &Listed<'_>) -> io::Result<()> {
        let member = listed.member;
        match self.form {
            Form::Name => writeln!(self.output, "{}", shown_path(member)),
            Form::NameAndNul => {
                self.output.write_all(&member.path)?;
                self.output.write_all(b"\0")
            }
            Form::Long => writeln!(self.output, "{}", long_line(member)),
            Form::Json => {
                let line = MemberLine::from(listed).to_line();
                self.output.write_all(Printable::of(line.as_bytes()).as_bytes())
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
