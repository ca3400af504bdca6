//! Errors printed with all their causes, and locks that survive a panic of their holder.
//!
//! Not here: the errors themselves, which each library defines, and the hints, which the binary
//! adds.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An error and all its causes, joined by colons, without repetitions.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    with_causes_as(error, ToString::to_string)
}

/// Like [`with_causes`]; `say` makes the words of each error.
pub fn with_causes_as(
    error: &(dyn Error + 'static),
    say: impl Fn(&(dyn Error + 'static)) -> String,
) -> String {
    let mut text = say(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = say(error);
        // A transparent error repeats the text of its cause.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Locks, and returns the value even if another thread panicked while it held the lock. The run is
/// being torn down then, and a second panic would hide the first.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|inner| inner as &(dyn Error + 'static))
        }
    }

    #[test]
    fn causes_are_told_once_each() {
        let inner = Layer("no space", None);
        let same = Layer("no space", Some(Box::new(inner)));
        let outer = Layer("cannot write", Some(Box::new(same)));
        assert_eq!(with_causes(&outer), "cannot write: no space");
        let loud = |error: &(dyn Error + 'static)| error.to_string().to_uppercase();
        assert_eq!(with_causes_as(&outer, loud), "CANNOT WRITE: NO SPACE");
    }

    #[test]
    fn a_lock_outlives_its_holder() {
        let mutex = Mutex::new(7);
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = mutex.lock();
                panic!("the holder dies");
            });
            assert!(holder.join().is_err());
        });
        assert_eq!(*lock(&mutex), 7);
    }
}
