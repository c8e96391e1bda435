//! Socket options, which are asked of the system and are no waits: by `std`'s names.

/// Methods that do the same as those of the socket of `std` that `get_ref` of the field returns.
macro_rules! options {
    (
        $field:tt:
        $($(#[$about:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $had:ty;)*
    ) => {$(
        $(#[$about])*
        ///
        /// # Errors
        ///
        /// The error of the operating system.
        pub fn $name(&self, $($argument: $type),*) -> io::Result<$had> {
            self.$field.get_ref().$name($($argument),*)
        }
    )*};
}

pub(super) use options;
