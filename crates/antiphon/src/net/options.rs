//! Socket options, which are asked of the system and are no waits: by `std`'s names.

/// Methods that do the same as those of the socket of `std` in the field `socket`.
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
