//! `portcullis evaluate` without the rest of the product, for those who work on detectors:
//! `cargo run -p portcullis-evaluate --example evaluate -- PATH...`

use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: portcullis_evaluate::Args,
}

fn main() -> Result<(), portcullis_evaluate::EvaluateError> {
    print!("{}", portcullis_evaluate::run(&Cli::parse().args)?);
    Ok(())
}
