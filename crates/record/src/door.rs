//! How a program asks for a file that it can't open by its path.
//!
//! It connects to a Unix socket of an abstract name, sends the secret and a byte that says which
//! file it wants, and gets a byte with the descriptor (`SCM_RIGHTS`), or nothing.

/// The environment variable with the name of the socket and the secret, separated by a colon.
pub const VARIABLE: &str = "ANTIPHON_DOOR";

/// Bytes of the secret: hexadecimal digits.
pub const SECRET_BYTES: usize = 32;

/// Which file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The recording ([`crate::VARIABLE`]).
    Recording,
    /// Policies by call site ([`crate::sites::VARIABLE`]).
    Sites,
}

impl Which {
    /// The byte that asks for it.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Recording => b'r',
            Self::Sites => b's',
        }
    }
}
