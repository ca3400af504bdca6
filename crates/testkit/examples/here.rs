//! Which needs of tests this machine meets: `cargo run -p testkit --example here`.
#![allow(clippy::print_stdout)]

use testkit::needs::Need;

fn main() {
    for need in Need::ALL {
        match need.find() {
            Ok(()) => println!("{:20}  is here", need.name()),
            Err(why) => {
                println!("{:20}  is not here: {why}\n{:20}  {}", need.name(), "", need.how())
            }
        }
    }
}
