//! Redis and Valkey: one script for many keys.

use std::io;
use std::time::Duration;

use portcullis_access::Grant;
use portcullis_resp::{Client, Command, Connection, Limits, Reply};

use crate::link::{Keeper, PATIENCE, Question};

const LEASE: &str = include_str!("lease.lua");
/// A number for each key, and no texts but a status.
const LIMITS: Limits = Limits { bytes_max: 4096, values_max: 1024 };

pub(crate) struct Redis {
    connection: Connection,
    prefix: Vec<u8>,
}

impl Redis {
    pub(crate) fn connect(client: &Client, prefix: &str) -> io::Result<Redis> {
        let connection = client.connect(PATIENCE, LIMITS)?;
        Ok(Redis { connection, prefix: prefix.as_bytes().to_vec() })
    }
}

impl Keeper for Redis {
    fn lease(&mut self, questions: &[Question]) -> io::Result<Vec<Option<Grant>>> {
        let mut command = Command::new("EVAL").arg(LEASE.as_bytes()).number(questions.len() as u64);
        for question in questions {
            command.push(&[&self.prefix[..], &question.name].concat());
        }
        for Question { interval_us, burst, order, .. } in questions {
            command = command.number(*interval_us).number(*burst).number(order.debt).number(order.want);
        }
        let answers = self.connection.ask(&command, PATIENCE)?.items();
        if answers.len() != questions.len() {
            return Err(io::Error::other("an answer is missing"));
        }
        // An answer of another type is none, and concerns no other key.
        let grant = |answer: Reply| match answer {
            Reply::Int(tokens @ 0..) => Some(Grant::Tokens(tokens.unsigned_abs())),
            Reply::Int(wait) => Some(Grant::None(Duration::from_micros(wait.unsigned_abs()))),
            Reply::Nil | Reply::Text(_) | Reply::List(_) | Reply::Refused(_) => None,
        };
        Ok(answers.into_iter().map(grant).collect())
    }

    fn ping(&mut self) -> io::Result<()> {
        self.connection.ask(&Command::new("PING"), PATIENCE).map(drop)
    }
}
