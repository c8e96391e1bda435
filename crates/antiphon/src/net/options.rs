//! Socket options, by `std`'s names. They are system calls that never wait.

/// Defines methods that call the methods of the same names on the `std` socket in the field
/// `socket`.
macro_rules! options {
    (
        $($(#[$about:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $had:ty;)*
    ) => {$(
        $(#[$about])*
        ///
        /// # Errors
        ///
        /// The error of the operating system.
        pub fn $name(&self, $($argument: $type),*) -> io::Result<$had> {
            self.socket.get_ref().$name($($argument),*)
        }
    )*};
}

pub(super) use options;
