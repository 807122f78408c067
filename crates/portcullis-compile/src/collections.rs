//! `initcol`, `setsid`, `setuid`, `setrsc`, `expirevar`, `deprecatevar`.

use portcullis_engine::{Act, Open, Part};
use portcullis_seclang::ast::VariableKey;
use portcullis_types::{Shape, Variable};

use crate::lower::Lowering;

type Lowered = Result<Act, String>;

fn persistent(collection: Variable) -> Result<(), String> {
    if let Shape::Persistent = collection.shape() {
        Ok(())
    } else {
        Err(format!("{} is not a persistent collection", collection.name()))
    }
}

/// `initcol` knows no applications: its records are shared by all of them.
pub(crate) fn init(lowering: &mut Lowering<'_>, collection: Variable, key: &[u8]) -> Lowered {
    persistent(collection)?;
    let name = collection.name().to_ascii_lowercase().into_bytes().into();
    let mut key = lowering.text(key);
    if !lowering.plan.settings.modsecurity3 {
        // ModSecurity 2 folds what is written, not what macros stand for (msre_action_initcol_validate).
        for part in &mut key.parts {
            if let Part::Literal(text) = part {
                text.make_ascii_lowercase();
            }
        }
    }
    Ok(Act::Open(Open { collection, name, key, identity: None }))
}

/// Records of one application (`SecWebAppId`).
pub(crate) fn of_application(lowering: &mut Lowering<'_>, collection: Variable, key: &[u8]) -> Lowered {
    let identity = if let Variable::Session = collection {
        Some(Variable::Sessionid)
    } else if let Variable::User = collection {
        Some(Variable::Userid)
    } else {
        None
    };
    let application = &lowering.plan.settings.web_app_id;
    let name = [application.as_slice(), b"_", collection.name().as_bytes()].concat().into();
    Ok(Act::Open(Open { collection, name, key: lowering.text(key), identity }))
}

pub(crate) fn expire(lowering: &mut Lowering<'_>, variable: &VariableKey, seconds: &[u8]) -> Lowered {
    persistent(variable.collection)?;
    let (key, seconds) = (lowering.text(&variable.key), lowering.text(seconds));
    Ok(Act::Expire { collection: variable.collection, key, seconds })
}

pub(crate) fn deprecate(
    lowering: &mut Lowering<'_>,
    variable: &VariableKey,
    amount: &[u8],
    seconds: &[u8],
) -> Lowered {
    persistent(variable.collection)?;
    let key = lowering.text(&variable.key);
    let (amount, seconds) = (lowering.text(amount), lowering.text(seconds));
    if seconds.as_literal().is_some_and(|text| portcullis_engine::addend(text) < 1) {
        return Err("deprecatevar needs a number of seconds above 0 behind the slash".to_owned());
    }
    Ok(Act::Deprecate { collection: variable.collection, key, amount, seconds })
}
