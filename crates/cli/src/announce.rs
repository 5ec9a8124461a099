//! stub
use crate::failure::Failure;
/// stub
#[derive(clap::Args)]
pub struct Args {}
/// stub
pub fn run(_: &Args) -> Result<(), Failure> {
    Ok(())
}
