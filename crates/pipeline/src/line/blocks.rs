//! Changes a stage, as you type it, to larger writes.

use super::redirection;

/// Names of tar.
const TAR: [&str; 3] = ["tar", "bsdtar", "gtar"];

/// The option for `bytes` per write call, if the program has one.
pub fn option(program: &str, bytes: u64) -> Option<String> {
    match program {
        tar if TAR.contains(&tar) => Some(format!("-b {}", bytes / 512)),
        "dd" => Some(format!("obs={}k", bytes / 1024)),
        "cpio" => Some(format!("-C {bytes}")),
        _ => None,
    }
}

/// The stage with that option, where Takeup can insert it.
pub fn larger(stage: &str, bytes: u64) -> Option<String> {
    // Words cannot be changed safely within quotes and brackets.
    if stage.contains(['"', '\'', '\\', '`', '$', '(', '{']) {
        return None;
    }
    let (command, target) = match redirection(stage) {
        Some((command, target)) => (command, format!(" {target}")),
        None => (stage, String::new()),
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    let program = words.first()?.rsplit('/').next()?;
    let words = match program {
        tar if TAR.contains(&tar) => tar_words(&words, bytes)?,
        "dd" => dd_words(&words, bytes)?,
        "cpio" => cpio_words(&words, bytes)?,
        _ => return None,
    };
    Some(words.join(" ") + &target)
}

/// The stage followed by a program that collects larger blocks, if its output is redirected.
pub fn collected(stage: &str, bytes: u64) -> Option<String> {
    let (command, target) = redirection(stage)?;
    Some(format!("{command} | takeup pipe --block-size {}k {target}", bytes >> 10))
}

fn tar_words(words: &[&str], bytes: u64) -> Option<Vec<String>> {
    // Behind it everything is a file.
    if words.contains(&"--") {
        return None;
    }
    let factor = (bytes / 512).to_string();
    let mut kept: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    for at in 1..words.len() {
        let word = words[at];
        if word.starts_with("--blocking-factor") || word.starts_with("--record-size") {
            let is_whole = word.contains('=');
            kept[at] = format!("--blocking-factor={factor}");
            if !is_whole {
                words.get(at + 1)?;
                kept.remove(at + 1);
            }
            return Some(kept);
        }
        let Some(letters) = word.strip_prefix('-').filter(|it| !it.starts_with('-')) else {
            // Letters without a dash: their values follow in order, and are not changed.
            if at == 1 && word.contains('b') {
                return None;
            }
            continue;
        };
        let Some(place) = letters.find('b') else { continue };
        let valued = |letter: char| "fCTXIgHLNVK".contains(letter);
        if letters[..place].contains(valued) {
            continue;
        }
        if place + 1 < letters.len() {
            if !letters[place + 1..].bytes().all(|digit| digit.is_ascii_digit()) {
                return None;
            }
            kept[at] = format!("-{}{factor}", &letters[..=place]);
        } else {
            words.get(at + 1)?.parse::<u64>().ok()?;
            kept[at + 1] = factor;
        }
        return Some(kept);
    }
    let is_old = !words.get(1)?.starts_with('-');
    let at = if is_old { kept.len() } else { 1 };
    kept.splice(at..at, ["-b".to_owned(), factor]);
    Some(kept)
}

fn dd_words(words: &[&str], bytes: u64) -> Option<Vec<String>> {
    let size = format!("{}k", bytes / 1024);
    let mut kept = vec![words[0].to_owned(), format!("ibs={size}"), format!("obs={size}")];
    for word in &words[1..] {
        match word.split_once('=')?.0 {
            "bs" | "ibs" | "obs" => {}
            // These count in blocks, whose size changes.
            "count" | "skip" | "seek" | "cbs" => return None,
            "conv" if word.contains("sync,") || word.ends_with("sync") => return None,
            _ => kept.push((*word).to_owned()),
        }
    }
    Some(kept)
}

fn cpio_words(words: &[&str], bytes: u64) -> Option<Vec<String>> {
    let mut kept = Vec::new();
    let mut is_value = false;
    for &word in words {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match word {
            "-C" | "--io-size" | "--block-size" => is_value = true,
            "-B" => {}
            _ if word.starts_with("--io-size=") || word.starts_with("--block-size=") => {}
            _ if word.starts_with("-C") => {}
            // Joined with other letters the option is not changed.
            _ if word.starts_with('-') && !word.starts_with("--") && word.contains(['B', 'C']) => {
                return None;
            }
            _ => kept.push(word.to_owned()),
        }
    }
    kept.splice(1..1, ["-C".to_owned(), bytes.to_string()]);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_made_larger_by_the_option_of_each_program() {
        let check = |stage: &str, expected: Option<&str>| {
            assert_eq!(larger(stage, 64 << 10).as_deref(), expected, "{stage}");
        };
        check("tar -b 20 -cf d/nst0 x", Some("tar -b 128 -cf d/nst0 x"));
        check("tar -b20 -cf d/nst0 x", Some("tar -b128 -cf d/nst0 x"));
        check("tar -cb 20 -f d/nst0 x", Some("tar -cb 128 -f d/nst0 x"));
        check("tar --blocking-factor=20 -cf t x", Some("tar --blocking-factor=128 -cf t x"));
        check("tar --blocking-factor 20 -cf t x", Some("tar --blocking-factor=128 -cf t x"));
        check("tar -cf d/nst0 x", Some("tar -b 128 -cf d/nst0 x"));
        check("tar cf d/nst0 x", Some("tar cf d/nst0 x -b 128"));
        check("tar cf - x > d/nst0", Some("tar cf - x -b 128 > d/nst0"));
        check("tar cbf 20 d/nst0 x", None);
        check("tar cf d/nst0 -- x", None);
        check("tar -cf 'a b' x", None);
        check("dd bs=10k of=d/nst0", Some("dd ibs=64k obs=64k of=d/nst0"));
        check("dd of=d/nst0 obs=4k", Some("dd ibs=64k obs=64k of=d/nst0"));
        check("dd if=x > d/nst0", Some("dd ibs=64k obs=64k if=x > d/nst0"));
        check("dd if=x of=y bs=1k count=9", None);
        check("dd if=x of=y bs=1k conv=sync", None);
        check("cpio -o -H newc > d/nst0", Some("cpio -C 65536 -o -H newc > d/nst0"));
        check("cpio -o -B -O d/nst0", Some("cpio -C 65536 -o -O d/nst0"));
        check("cpio -o -C 5120 -O d/nst0", Some("cpio -C 65536 -o -O d/nst0"));
        check("cpio -oB > d/nst0", None);
        check("gzip -c > d/nst0", None);
        let expected = "gzip -c | takeup pipe --block-size 64k > d/nst0";
        assert_eq!(collected("gzip -c > d/nst0", 64 << 10).as_deref(), Some(expected));
        assert_eq!(option("gzip", 1), None);
    }

    proptest::proptest! {
        #[test]
        fn no_stage_panics(stage in r"(tar|dd|cpio) [a-zBC =0-9/>-]{0,40}") {
            let _ = (larger(&stage, 1 << 16), collected(&stage, 1 << 16));
        }
    }
}
