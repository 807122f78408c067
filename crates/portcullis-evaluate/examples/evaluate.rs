//! The detectors alone, for those who work on them:
//! `cargo run -p portcullis-evaluate --example evaluate -- PATH...`. The whole product is evaluated by
//! `portcullis evaluate`.

use clap::Parser;
use portcullis_evaluate::{DetectorsAlone, EvaluateError};
use portcullis_semantic::Level;

#[derive(Parser)]
struct Cli {
    /// balanced or strict
    #[arg(long, default_value = "balanced", value_parser = level)]
    level: Level,
    #[command(flatten)]
    args: portcullis_evaluate::Args,
}

fn level(name: &str) -> Result<Level, String> {
    Level::from_name(name).ok_or_else(|| "balanced or strict".to_owned())
}

fn main() -> Result<(), EvaluateError> {
    let cli = Cli::parse();
    print!("{}", portcullis_evaluate::run(&cli.args, &mut DetectorsAlone::new(cli.level))?);
    Ok(())
}
