use portcullis_lex::sql::Word;

/// The role of a word in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Name,
    Constant,
    Unary,
    /// `and`, `or`, `xor`
    Join,
    /// `like`, `in`, `between`, ...
    Compare,
    /// `div`, `mod`
    Arithmetic,
    /// An operand follows: `from`, `where`, `limit`, ...
    Clause,
    /// Stands between operands and says little: `asc`, `end`, `inner`, ...
    Filler,
    /// Begins a statement.
    Statement,
}

pub(super) fn role(word: Word) -> Part {
    use Word::*;
    match word {
        Null | True | False | Unknown | Default => Part::Constant,
        Not | Binary | Distinct | Distinctrow | All | Any | Some | Prior | Interval | Exists | Row | Top
        | Case | Time => Part::Unary,
        And | Or | Xor => Part::Join,
        Like | Ilike | Rlike | Regexp | Glob | Similar | Sounds | In | Between | Is | Overlaps | Collate
        | Escape | Against => Part::Compare,
        Div | Mod => Part::Arithmetic,
        From | Where | Having | On | When | Then | Else | Using | Values | Returning | Limit | Offset
        | Join | Order | Group | Union | Except | Intersect | Minus | As | Into | Procedure | Fetch => {
            Part::Clause
        }
        Asc | Desc | End | Isnull | Notnull | Inner | Outer | Left | Right | Cross | Natural | Full | For => {
            Part::Filler
        }
        Select | Insert | Update | Delete | Drop | Create | Alter | Truncate | Exec | Execute | Declare
        | Set | Waitfor | Shutdown | Call | Do | Handler | Load | Merge | Replace | Rename | Grant
        | Revoke | Use | Show | Begin | Commit | Rollback | Copy | Print | Raiserror | Backup | Restore
        | Kill | Vacuum | Attach | Pragma | Dbcc | Explain | Describe | Analyze | Lock | Prepare | Start
        | Goto | If | While | With => Part::Statement,
        Name | Analyse | By | Database | Delay | Dumpfile | Function | Index | Login | Match | Outfile
        | Role | Schema | Table | Trigger | User | View => Part::Name,
    }
}
