use std::fmt;

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $title:literal)*) => {
        /// The class of an attack: its aim. The one list of classes: configuration, events, weights and
        /// metrics use these names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Class { $($(#[$doc])* $variant,)* }

        impl Class {
            /// All classes.
            pub const ALL: &'static [Class] = &[$(Class::$variant,)*];

            /// The names, in the order of `ALL`.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The name in configuration, events and files.
            pub fn name(self) -> &'static str {
                match self { $(Class::$variant => $name,)* }
            }

            /// Its title, for people.
            pub fn title(self) -> &'static str {
                match self { $(Class::$variant => $title,)* }
            }
        }
    };
}

classes! {
    /// SQL that ends a value and continues the statement.
    Sqli "sqli" "SQL injection"
    /// Markup or script that a browser would run.
    Xss "xss" "cross-site scripting"
    /// Commands of a shell: POSIX, cmd, PowerShell.
    Command "command" "command injection"
    /// Paths that leave their folder, and files named for inclusion.
    Path "path" "path traversal and file inclusion"
    /// A file included from another server.
    RemoteFile "remote-file" "remote file inclusion"
    /// Requests that the server is made to send.
    Ssrf "ssrf" "server-side request forgery"
    /// External entities of XML.
    Xxe "xxe" "XML external entity"
    /// Expressions of a template engine.
    Template "template" "template injection"
    /// Code of a programming or expression language: PHP, Java, OGNL, Node, Python, Ruby, ASP.
    Code "code" "code injection"
    /// Serialised objects that run code when they are read.
    Deserialization "deserialization" "unsafe deserialisation"
    /// Operators of document databases.
    NoSql "nosql" "NoSQL injection"
    /// Filters of LDAP.
    Ldap "ldap" "LDAP injection"
    /// XPath and XQuery.
    Xpath "xpath" "XPath injection"
    /// Server-side and edge-side includes.
    Ssi "ssi" "server-side include injection"
    /// Line ends that make headers, responses or log lines.
    Crlf "crlf" "CRLF injection"
    /// Header fields of mails, and commands of mail servers.
    Mail "mail" "mail header or command injection"
    /// Lookups of log4j.
    Log4j "log4j" "log4j lookup"
    /// Keys that reach an object's prototype.
    Prototype "prototype" "prototype pollution"
    /// Queries that cost too much or tell the schema.
    Graphql "graphql" "GraphQL abuse"
    /// Files that a server would run.
    Upload "upload" "malicious upload"
    /// Probing for files that were left behind, and the marks of scanners.
    Scanner "scanner" "scanner or leaked-file probing"
    /// Addresses of other hosts where a parameter says where a page leads.
    Redirect "redirect" "open redirect"
    /// Messages that two readers read differently.
    Protocol "protocol" "ambiguous message"
    /// Information in a response that should not leave the server.
    Leak "leak" "information leak in a response"
    /// Values unlike those that the field has carried on this site.
    Field "field" "unusual value of a field"
    /// Requests that differ from what the description of the API declares.
    Api "api" "deviation from the declared API"
}

impl Class {
    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.iter().copied().find(|class| class.name() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
