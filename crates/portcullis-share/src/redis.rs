//! Redis and Valkey: one script for many keys.

use std::io;
use std::time::Duration;

use portcullis_access::Grant;
use redis::{Client, Connection, Value};

use crate::link::{Keeper, PATIENCE, Question};

const LEASE: &str = include_str!("lease.lua");

pub(crate) struct Redis {
    connection: Connection,
    prefix: Vec<u8>,
}

impl Redis {
    pub(crate) fn connect(client: &Client, prefix: &str) -> io::Result<Redis> {
        let connection = client.get_connection_with_timeout(PATIENCE).map_err(io::Error::other)?;
        connection.set_read_timeout(Some(PATIENCE)).map_err(io::Error::other)?;
        connection.set_write_timeout(Some(PATIENCE)).map_err(io::Error::other)?;
        Ok(Redis { connection, prefix: prefix.as_bytes().to_vec() })
    }
}

impl Keeper for Redis {
    fn lease(&mut self, questions: &[Question]) -> io::Result<Vec<Option<Grant>>> {
        let mut command = redis::cmd("EVAL");
        command.arg(LEASE).arg(questions.len());
        for question in questions {
            command.arg([&self.prefix[..], &question.name].concat());
        }
        for Question { interval_us, burst, order, .. } in questions {
            command.arg(*interval_us).arg(*burst).arg(order.debt).arg(order.want);
        }
        let answers: Vec<Value> = command.query(&mut self.connection).map_err(io::Error::other)?;
        if answers.len() != questions.len() {
            return Err(io::Error::other("an answer is missing"));
        }
        // An answer of another type is none, and concerns no other key.
        let grant = |answer: Value| match answer {
            Value::Int(tokens @ 0..) => Some(Grant::Tokens(tokens.unsigned_abs())),
            Value::Int(wait) => Some(Grant::None(Duration::from_micros(wait.unsigned_abs()))),
            _ => None,
        };
        Ok(answers.into_iter().map(grant).collect())
    }

    fn ping(&mut self) -> io::Result<()> {
        redis::cmd("PING").exec(&mut self.connection).map_err(io::Error::other)
    }
}
