//! Protocol by which a program asks for a file that it can't open by its path.
//!
//! The program connects to a Unix socket with an abstract name, sends the secret and a byte for the
//! file, and receives a byte with the descriptor (`SCM_RIGHTS`), or nothing.

/// The environment variable with the name of the socket and the secret, separated by a colon.
pub const VARIABLE: &str = "ANTIPHON_DOOR";

/// Length of the secret, in hexadecimal digits.
pub const SECRET_BYTES: usize = 32;

/// The file that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The recording ([`crate::VARIABLE`]).
    Recording,
    /// Policies by call site ([`crate::sites::VARIABLE`]).
    Sites,
}

impl Which {
    /// The byte that requests the file.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Recording => b'r',
            Self::Sites => b's',
        }
    }
}
