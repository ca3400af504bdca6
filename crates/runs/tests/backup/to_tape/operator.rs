//! Who changes cartridges.

use std::sync::{Arc, Mutex};

use sim::tape::Library;
use tapeset::{ChangeError, VolumeChanger, VolumeRequest};

/// Loads one cartridge after the other into the drive.
#[derive(Clone)]
pub struct Operator {
    library: Library,
    pub requests: Arc<Mutex<Vec<VolumeRequest>>>,
}

impl Operator {
    pub fn of(library: &Library) -> Operator {
        Operator { library: library.clone(), requests: Arc::default() }
    }
}

impl VolumeChanger for Operator {
    fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
        self.requests.lock().unwrap().push(request.clone());
        match self.library.load_next() {
            Some(_) => Ok(()),
            None => Err(ChangeError::Declined { text: "no cartridge is left".into() }),
        }
    }
}
