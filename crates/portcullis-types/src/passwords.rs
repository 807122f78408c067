//! The names of fields for passwords, in the languages of the web: the detector expects any characters there,
//! and events do not show them.

/// Names of fields for passwords, in lower case: all of its name or a part of it.
pub const PASSWORD_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    // German
    "passwort",
    "kennwort",
    // Spanish, Portuguese
    "contrasena",
    "contraseña",
    "contrasenya",
    "palavra_passe",
    "palavra-passe",
    "palavrapasse",
    // French
    "mot_de_passe",
    "mot-de-passe",
    "motdepasse",
    // Dutch
    "wachtwoord",
    // Swedish, Danish, Norwegian
    "losenord",
    "lösenord",
    "passord",
    "adgangskode",
    "kodeord",
    // Finnish, Estonian
    "salasana",
    "parool",
    // Polish, Czech, Slovak, Slovenian, Croatian, Serbian
    "haslo",
    "hasło",
    "heslo",
    "geslo",
    "lozinka",
    "zaporka",
    // Hungarian
    "jelszo",
    "jelszó",
    // Lithuanian
    "slaptazodis",
    "slaptažodis",
    // Turkish
    "sifre",
    "şifre",
    // Russian, Ukrainian, Bulgarian
    "пароль",
    "парола",
    // Greek
    "κωδικος",
    "κωδικός",
    // Indonesian, Vietnamese
    "kata_sandi",
    "katasandi",
    "mat_khau",
    "matkhau",
    // Chinese, Japanese, Korean
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
];

/// The same for shorter words, which stand in other words, too: all of the name, or its last word.
pub const PASSWORD_WORDS: &[&str] =
    &["pass", "pwd", "psw", "pswd", "passcode", "senha", "parola", "mdp", "mima"];

/// True if `name`, the innermost part of a field's name, is that of a field for a password.
pub fn is_password_name(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let ends_in = |word: &[u8]| match name.strip_suffix(word) {
        Some(rest) => matches!(rest.last(), None | Some(b'_' | b'-')),
        None => false,
    };
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    PASSWORD_WORDS.iter().any(|word| ends_in(word.as_bytes()))
        || PASSWORD_NAMES.iter().any(|part| has(part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_passwords() {
        for name in [
            "kennwort",
            "Neues_Passwort",
            "contraseña2",
            "PWD",
            "mot_de_passe",
            "пароль",
            "parola",
            "smtp_pass",
        ] {
            assert!(is_password_name(name.as_bytes()), "{name}");
        }
        for name in ["parola_chiave", "desenha", "passenger", "compass", "passage", "", "kennzeichen", "q"] {
            assert!(!is_password_name(name.as_bytes()), "{name}");
        }
    }
}
