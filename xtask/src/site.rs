//! The documents as a site: `docs/` and what it leads to, by mdBook, with every link checked.
//!
//! The pages keep their places relative to each other, so that their links lead where they lead in
//! a checkout. A link to a file of the source leads to a copy; one to a folder becomes plain words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Args;

/// Arguments of the chore.
#[derive(Args)]
pub struct SiteArguments {
    /// Where the site goes; what is there is replaced
    #[arg(long, default_value = "target/site")]
    out: PathBuf,
    /// The program of mdBook
    #[arg(long, default_value = "mdbook")]
    mdbook: PathBuf,
}

/// The contents, in their order.
pub const SUMMARY: &str = "docs/SUMMARY.md";
/// Marks a folder that may be replaced.
const MADE_HERE: &str = ".made-by-xtask-site";

/// Builds the site and checks its links.
pub fn run(arguments: &SiteArguments) -> Result<ExitCode> {
    let root = crate::folders::repository();
    let out = std::path::absolute(&arguments.out)?;
    if out.exists() && !out.join(MADE_HERE).exists() {
        bail!("{} has files that are not of a site: name an empty folder", out.display());
    }
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(out.join("src"))?;
    fs::write(out.join(MADE_HERE), "")?;
    for file in ["book.toml", "takeup.css"] {
        let from = root.join("contrib/site").join(file);
        fs::copy(&from, out.join(file)).with_context(|| from.display().to_string())?;
    }
    let summary = fs::read_to_string(root.join(SUMMARY))?;
    let pages = pages(&summary);
    write(&out.join("src/SUMMARY.md"), &moved(&summary, Path::new("docs")))?;
    for page in &pages {
        let text =
            fs::read_to_string(root.join(page)).with_context(|| page.display().to_string())?;
        let (text, files) = on_the_site(&text, page, &pages, &root);
        write(&out.join("src").join(page), &text)?;
        for file in files {
            let to = out.join("src").join(&file);
            fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            fs::copy(root.join(&file), to).with_context(|| file.display().to_string())?;
        }
    }
    let status = Command::new(&arguments.mdbook)
        .arg("build")
        .arg("--dest-dir")
        .arg(out.join("html"))
        .arg(&out)
        .status()
        .with_context(|| format!("{} cannot be started", arguments.mdbook.display()))?;
    if !status.success() {
        bail!("mdBook failed");
    }
    let broken = broken(&out.join("html"))?;
    for link in &broken {
        eprintln!("{link}");
    }
    if !broken.is_empty() {
        bail!("{} links lead nowhere", broken.len());
    }
    println!("{} pages: {}", pages.len(), out.join("html/index.html").display());
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// The pages of the contents, by their paths in the checkout.
pub fn pages(summary: &str) -> BTreeSet<PathBuf> {
    let targets = links(summary).into_iter().map(|(_, target)| target);
    targets.map(|target| resolved(Path::new("docs"), &target)).collect()
}

/// The contents with paths as they are from the folder above `from`.
fn moved(summary: &str, from: &Path) -> String {
    let mut text = summary.to_owned();
    for (whole, target) in links(summary) {
        let path = resolved(from, &target).display().to_string();
        let new = whole.replace(&format!("({target})"), &format!("({path})"));
        text = text.replacen(&whole, &new, 1);
    }
    text
}

/// A path from a folder, without `..`.
fn resolved(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// Links of Markdown outside of fenced code, whole and their targets.
fn links(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let mut rest = line;
        while !is_code && let Some(at) = rest.find("](") {
            let open = rest[..at].rfind('[').unwrap_or(at);
            let Some(close) = rest[at..].find(')') else { break };
            let target = rest[at + 2..at + close].to_owned();
            found.push((rest[open..=at + close].to_owned(), target));
            rest = &rest[at + close + 1..];
        }
    }
    found
}

/// A page as the site has it, and the files of the checkout that it needs.
fn on_the_site(
    text: &str,
    page: &Path,
    pages: &BTreeSet<PathBuf>,
    root: &Path,
) -> (String, BTreeSet<PathBuf>) {
    let folder = page.parent().unwrap_or(Path::new(""));
    let (mut out, mut files) = (text.to_owned(), BTreeSet::new());
    let html = ["src=\"", "srcset=\""].iter().flat_map(|name| values(text, name));
    let plain = links(text).into_iter().chain(html.map(|target| (String::new(), target)));
    for (whole, target) in plain {
        let path = target.split('#').next().unwrap_or_default();
        if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let place = resolved(folder, path);
        if pages.contains(&place) {
            // mdBook makes `index.html` of README.md, and leaves links to it as they are.
            if place.ends_with("README.md") {
                out = out.replace(&whole, &whole.replace("README.md", "index.md"));
            }
            continue;
        }
        let is_text = place.extension().is_some_and(|it| it == "md");
        if root.join(&place).is_file() && !is_text {
            files.insert(place);
        } else if let Some(words) = whole.strip_suffix(&format!("]({target})")) {
            // mdBook makes pages of the contents alone.
            out = out.replacen(&whole, words.trim_start_matches('['), 1);
        }
    }
    (out, files)
}

/// Values of an attribute in HTML.
fn values(text: &str, name: &str) -> Vec<String> {
    let parts = text.split(name).skip(1);
    parts.filter_map(|part| part.split_once('"').map(|(value, _)| value.to_owned())).collect()
}

/// Links of the pages that lead nowhere.
fn broken(html: &Path) -> Result<Vec<String>> {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    read_pages(html, &mut pages)?;
    let mut broken = Vec::new();
    for (page, text) in &pages {
        // Its links begin at the root of the server.
        if page.ends_with("404.html") {
            continue;
        }
        let folder = page.parent().unwrap_or(html);
        let names = [" href=\"", " src=\"", " srcset=\""];
        for target in names.iter().flat_map(|name| values(text, name)) {
            let is_far = target.contains("://") || target.starts_with("mailto:");
            if !is_far && !leads_somewhere(&pages, page, folder, &target) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    Ok(broken)
}

fn leads_somewhere(
    pages: &BTreeMap<PathBuf, String>,
    page: &Path,
    folder: &Path,
    target: &str,
) -> bool {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = path.split('?').next().unwrap_or_default();
    let place = if path.is_empty() { page.to_owned() } else { resolved(folder, path) };
    match pages.get(&place) {
        Some(text) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
        None => place.exists(),
    }
}

fn read_pages(folder: &Path, into: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_pages(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            into.insert(path.clone(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_contents() {
        let summary = "- [A](a.md)\n- [Home](../README.md)\n  - [D](design/d.md)\n";
        let expected = ["README.md", "docs/a.md", "docs/design/d.md"];
        assert_eq!(pages(summary), expected.iter().map(PathBuf::from).collect());
        let expected = "- [A](docs/a.md)\n- [Home](README.md)\n  - [D](docs/design/d.md)\n";
        assert_eq!(moved(summary, Path::new("docs")), expected);
    }

    #[test]
    fn files_are_copied_and_folders_become_words() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("crates/x")).unwrap();
        fs::write(folder.path().join("crates/x/lib.rs"), "").unwrap();
        fs::write(folder.path().join("other.md"), "").unwrap();
        let pages: BTreeSet<PathBuf> = ["docs/a.md", "docs/R/README.md"].map(PathBuf::from).into();
        let text = "[a](a.md#b), [x](../crates/x/lib.rs), [folder](../crates), [o](../other.md)\n\
                    [r](R/README.md#x)\n\
                    ```\n[code](../crates)\n```\n";
        let (found, files) = on_the_site(text, Path::new("docs/a.md"), &pages, folder.path());
        let expected = "[a](a.md#b), [x](../crates/x/lib.rs), folder, o\n\
                        [r](R/index.md#x)\n\
                        ```\n[code](../crates)\n```\n";
        assert_eq!(found, expected);
        assert_eq!(files, [PathBuf::from("crates/x/lib.rs")].into());
    }

    #[test]
    fn links_that_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let page = r##"<h2 id="here"></h2><a href="#here"></a> <a href="#gone"></a>
            <a href="https://example.org/x"></a> <img src="p.png"> <a href="b.html?highlight=x">"##;
        fs::write(folder.path().join("a.html"), page).unwrap();
        fs::write(folder.path().join("b.html"), r#"<a href="a.html#here"></a>"#).unwrap();
        let found = broken(folder.path()).unwrap();
        let ends: Vec<&str> =
            found.iter().filter_map(|it| it.split_once(": ")).map(|it| it.1).collect();
        assert_eq!(ends, ["#gone", "p.png"]);
    }
}
